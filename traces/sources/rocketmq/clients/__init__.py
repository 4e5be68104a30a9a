"""Evidence of clients: a client log and trace topics, compared with the broker's store."""
