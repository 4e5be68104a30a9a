"""The prover is tried on specs that nobody wrote: Hypothesis builds them, and exploration has its say on each."""
