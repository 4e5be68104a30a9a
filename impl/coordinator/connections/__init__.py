"""Connections of clients and a coordinator: frames, sockets, sessions, and who is let in."""
