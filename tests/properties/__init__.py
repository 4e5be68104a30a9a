"""Tests of the provers, explorers and machines."""
