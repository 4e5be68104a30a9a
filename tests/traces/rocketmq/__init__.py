"""Tests of the RocketMQ source."""
