"""Files of recorded events, NDJSON or Parquet, from any broker."""

from gapless.traces.options import Options

PROFILE = Options().profile  # until event files carry their own
