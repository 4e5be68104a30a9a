"""Delayed messages: what waits in the delay levels, and what came out of them."""
