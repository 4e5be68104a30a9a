"""The Spark engines: of classic sessions and of Spark Connect, with what both share."""
