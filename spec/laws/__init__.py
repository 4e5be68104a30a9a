"""Laws of the specs, each in a module named after its spec: which steps are enabled, and when.

They are proved wherever all invariants hold, and never assumed.
"""
