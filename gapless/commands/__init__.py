"""One module for each command, with what they share in `options` and `terminal`."""
