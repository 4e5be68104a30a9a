"""Why we believe it: exploration, and in time proofs and mutants; README.md says what will be here."""
