"""What named brokers do instead of what the design says, beside the spec of the same name."""
