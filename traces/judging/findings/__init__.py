"""Findings of judged traces: the reason of a refusal, its story and its pictures."""
