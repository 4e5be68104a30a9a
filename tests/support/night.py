"""Whether there is time: `make night` sets this profile, and `make test` has ten minutes."""

import os

NIGHT = os.environ.get("HYPOTHESIS_PROFILE") == "night"
