"""Where events come from: one folder for each kind of source, behind one protocol."""
