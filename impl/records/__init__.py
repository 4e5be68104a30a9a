"""What a record is: its bytes, in Python and in native code, and what no record can hold."""
