"""The RocketMQ source: a store directory, as a broker left it, becomes events of `log` and `queue`."""

PROFILE = "rocketmq"  # whose deviations are known ways of these brokers
