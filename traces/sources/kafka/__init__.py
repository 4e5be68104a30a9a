"""Data directories of Apache Kafka brokers: the partitions' logs, and all that lies beside them."""
