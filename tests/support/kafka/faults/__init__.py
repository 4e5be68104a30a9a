"""Faults in Kafka's files, by what they are in: each takes a case, and gives its label."""
