"""Files by address, their times, and the temporary folders of a check."""
