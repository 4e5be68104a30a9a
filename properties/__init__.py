"""Evidence for the checker: proofs, exploration, planted faults, false friends. README.md describes each."""
