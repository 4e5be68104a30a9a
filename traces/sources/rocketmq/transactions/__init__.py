"""The transactions of a RocketMQ store: found, ordered, judged, joined."""
