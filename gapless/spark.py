"""What a program on Spark needs: `register` makes files of events and RocketMQ stores tables that Spark reads."""

from gapless.traces.spark.data_sources import register

__all__ = ["register"]
