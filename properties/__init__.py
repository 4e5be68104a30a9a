"""Why we believe it: proofs, exploration, planted faults, false friends; README.md tells of each."""
