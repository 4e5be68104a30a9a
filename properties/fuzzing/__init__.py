"""Tests of the prover on random specs: Hypothesis builds them, and exploration judges each, too."""
