"""The next start of the broker: files, settings and tables that it reads, and those that stop it."""
