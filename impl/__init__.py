"""How it is done fast: a crash-safe log with consume queues, in the files of a RocketMQ broker. README.md says more."""
