"""`python -m gapless`."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] == [os.getcwd()]:  # noqa: PTH109 - pathlib is not loaded yet
    del sys.path[0]  # a user's queue.py or json.py next to the recordings is none of Python's, as for `gapless` itself

from gapless.entry import main

main()
