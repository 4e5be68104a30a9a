"""Data directories of Apache Kafka brokers: the partitions' logs, and all that lies next to them."""

KIND = "kafka-log"
PROFILE = "kafka"  # whose deviations count as anomalies
