"""Are reports fit to be looked at? `make look` opens them in Chromium, and is no part of `make test`."""
