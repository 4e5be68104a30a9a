"""Joins the coordinator's table of transactions with what partitions have of them."""
