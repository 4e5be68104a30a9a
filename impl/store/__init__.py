"""The store: a commit log, its consume queues, recovery, and the public `Store`."""
