"""Recordings of Pulsar transaction coordinators and their clients, as events of `coordinator` and `permits`."""
