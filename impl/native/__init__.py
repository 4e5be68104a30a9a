"""Native code for the bytes of a commit log, and for memory by address."""
