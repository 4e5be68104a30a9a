"""Judgement of traces whose events come piece by piece: sorted rows, files in order, streams."""
