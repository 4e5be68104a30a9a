"""The pages of this repository as a site, and the man pages: `make docs`.

The pages stay what they are for readers of the repository: `staging` copies them, and rewrites links that a site does
not resolve. `reference` and `commands` write what code says of itself. Sphinx makes the rest, by `conf.py`.
"""
