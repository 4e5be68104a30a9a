"""What clients of a RocketMQ broker were told, held against its store."""
