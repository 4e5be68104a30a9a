"""The files of a RocketMQ store, read."""
