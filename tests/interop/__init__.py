"""A real RocketMQ broker opens a store that is ours: `python -m tests.interop`. README.md says what is done."""
