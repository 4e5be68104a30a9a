"""Who runs the tasks of a check: processes of this machine, or a Spark cluster."""
