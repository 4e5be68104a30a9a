"""Z3 reads the specs: induction, liveness, joining of pieces, translation of kernels, and the ledger."""
