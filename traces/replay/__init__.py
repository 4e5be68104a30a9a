"""A trace through a spec: compiled kernels, exact replay, possible states, stories."""
