"""The files of a store: the commit log, consume queues and other files; the observers of their steps."""
