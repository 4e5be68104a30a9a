"""Stores with transactions, open ones among them, between our implementation and a broker."""
