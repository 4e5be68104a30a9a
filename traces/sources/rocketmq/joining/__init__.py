"""Joins the segments of one log, and judges what needs the whole log."""
