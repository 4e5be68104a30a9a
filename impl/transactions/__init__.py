"""Transactions in the file form of RocketMQ, without threads and without a clock."""
