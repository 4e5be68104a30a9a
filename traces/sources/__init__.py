"""Sources of events: one folder for each kind, behind one protocol."""
