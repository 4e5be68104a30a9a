"""Data directories of Apache Kafka brokers: the partitions' logs, and the files around them."""
