"""Explanations of departures in a store: its place, what lies there, and a story."""
