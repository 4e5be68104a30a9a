"""Why we believe it: proofs, exploration, mutants. Empty so far; README.md says what will be here."""
