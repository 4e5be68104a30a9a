"""The implementation: a crash-safe log with consume queues, in the files of a RocketMQ broker (README.md)."""
