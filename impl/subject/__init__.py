"""Our store as a subject of the black-box machine: a process that is asked on its input and answers on its output."""
