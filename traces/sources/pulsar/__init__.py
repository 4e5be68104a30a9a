"""Recordings of Pulsar transaction coordinators and clients, as events of `coordinator` and `permits`."""

PROFILE = "pulsar"  # whose deviations are known ways of these coordinators
RECORDING = "trace.ndjson"  # the file by which a recording is known
KIND = "pulsar-recording"
