"""Public bug reports, stores and recordings that show them, and what a check says of each.

`docs/reports.md` is made of them (`page.py`), and `tests/traces/test_public_reports.py` checks every one.
"""
