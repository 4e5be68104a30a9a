"""Recorded behaviour: sources become events, events become verdicts, verdicts become stories."""
