"""The index of a DLedger log: a unit for each of its entries."""
