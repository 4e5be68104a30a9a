"""The timer wheel: a log of units, and slots that lead into it."""
