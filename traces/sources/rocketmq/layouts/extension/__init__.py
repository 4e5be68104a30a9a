"""Extensions of queues: units with an entry's tag code and a bitmap for filters."""
