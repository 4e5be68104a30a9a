"""Records: their bytes, in Python and in native code, and the messages that no record can contain."""
