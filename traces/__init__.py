"""What really happened: sources become events, events become verdicts, verdicts become stories."""
