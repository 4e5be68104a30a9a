"""The files of a store: the commit log, consume queues, and what lies beside them; who is told of each step."""
