"""The store that `gapless demo` checks: a RocketMQ 5.5.0 broker's, after 3,000 sends and 800 transactions."""
