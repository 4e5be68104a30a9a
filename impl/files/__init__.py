"""The files of a store: the commit log, consume queues, and what lies beside them; the observers of their steps."""
