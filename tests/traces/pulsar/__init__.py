"""Tests of the Pulsar source."""
