"""The registration of data sources, which Spark takes in Python from version 4.0 on."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gapless.traces.problems import UsageError
from gapless.traces.sources.registry import tabled
from gapless.traces.spark.tables import EVENT_FORMAT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def register(spark: SparkSession) -> None:
    """Register the format of files of events, and those of sources that have a table; enable filter pushdown.

    Raises UsageError with a Spark before 4.0.
    """
    try:
        from gapless.traces.spark import data_sources  # noqa: PLC0415 - an older Spark has not what it needs
    except ModuleNotFoundError as error:
        if error.name != "pyspark.sql.datasource":
            raise
        formats = " and ".join([EVENT_FORMAT, *(source.table_format for source in tabled())])
        raise UsageError(
            f"{formats} need Spark 4.0 or later, and this is {spark.version}: read Parquet by "
            "spark.read.parquet, and judge it by gapless.spark.check"
        ) from None
    data_sources.register(spark)
