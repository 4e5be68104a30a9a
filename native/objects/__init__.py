"""Object code: linked, kept on disk, sent to other hosts, and called."""
