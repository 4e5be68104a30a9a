"""A spec's search as functions of the language of native code."""
