"""The client log: its requests and answers, read line by line or in bulk, as columns."""
