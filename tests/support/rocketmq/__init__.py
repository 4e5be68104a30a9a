"""A second opinion on RocketMQ stores, the recordings of real brokers, and faults to plant in both."""
