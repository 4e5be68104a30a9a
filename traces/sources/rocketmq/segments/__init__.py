"""A part of the log, read and judged where its bytes are."""
