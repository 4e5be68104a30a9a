"""Tests of what benchmarks are run on."""
