"""Joins the parts of each partition, and judges what needs the whole partition."""
