"""Hypothesis drives the implementation and its model: it offers every step, and both take it, or both refuse."""

try:
    import hypothesis  # noqa: F401 - asked for here, so that the error says what to do
except ModuleNotFoundError as error:
    raise ModuleNotFoundError("these machines need Hypothesis: pip install 'gapless[spec]'") from error
