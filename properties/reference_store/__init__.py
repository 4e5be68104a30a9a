"""Our own store as the subject of the machines: the first of them, and the only one that this package knows."""
