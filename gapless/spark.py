"""Functions for programs on Spark; traces/README.md describes them.

`check` judges the traces in a DataFrame. `register` makes files of events and RocketMQ stores tables that Spark reads.
`judged` is a stream of event files that are judged as they come; `verdicts` says what is known of every trace so far.
"""

from gapless.traces.spark.dataframes import check
from gapless.traces.spark.registration import register
from gapless.traces.spark.stream import judged, verdicts

__all__ = ["check", "judged", "register", "verdicts"]
