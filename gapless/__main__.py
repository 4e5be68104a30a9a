"""`python -m gapless`, and the program of `spark-submit`."""

import os
import sys

if not sys.flags.safe_path and sys.path[:1] in ([os.getcwd()], [os.path.dirname(__file__)]):  # noqa: PTH109, PTH120 - pathlib is not loaded yet
    del sys.path[0]  # a user's queue.py or json.py next to the recordings is none of Python's, as for `gapless` itself

from gapless.entry import main

main()
