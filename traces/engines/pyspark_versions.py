"""Calls that differ between the versions of pyspark, 3.5 to 4.x."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from gapless.traces.problems import UsageError, shown

if TYPE_CHECKING:
    from pyarrow import Table
    from pyspark.sql.connect.session import SparkSession
    from pyspark.sql.dataframe import DataFrame

OLDEST = 3, 5
INSTALL = "pip install 'gapless[spark]'"
LOAD, CONNECT = "_load_from_socket", "local_connect_and_auth"
TRIES, LONGEST = 5, 4000  # of a request to Spark Connect, and ms between two: in all some seconds, not ten minutes


def refuse_older(version: str) -> None:
    """Raise UsageError for a pyspark that lacks what the engine needs."""
    if [*map(int, re.findall(r"\d+", version)[:2])] < [*OLDEST]:
        oldest = ".".join(map(str, OLDEST))
        raise UsageError(f"the engine spark needs pyspark {oldest} or later, and this is {shown(version)}: {INSTALL}")


def loaded(socket: Any, deserializer: Any) -> list[Any]:
    """Return all rows that come from a socket of the JVM."""
    from pyspark import java_gateway, util  # noqa: PLC0415 - few need Spark

    load: Any = getattr(util, LOAD, None)
    if hasattr(load, "__wrapped__"):  # a context
        with load(socket, deserializer) as rows:
            return list(rows)
    connect: Any = getattr(util, CONNECT, None) or getattr(java_gateway, CONNECT)
    file, connection = connect(*socket[:2])  # up to 4.0 the function above left it to be collected as garbage
    with connection, file:
        connection.settimeout(None)  # tasks take as long as they take
        return list(deserializer.load_stream(file))


def collected(frame: DataFrame) -> Table:
    """Return all rows of a DataFrame of Spark Connect."""
    if hasattr(frame, "toArrow"):
        return frame.toArrow()
    older: Any = frame
    client = older._session.client  # noqa: SLF001 - as `toPandas` itself does in 3.5
    rows: Table = client.to_table(older._plan.to_proto(client))[0]  # noqa: SLF001 - as above
    return rows


def channel(master: str) -> Any:
    """Return a channel to a server of Spark Connect."""
    from pyspark.sql.connect.client import core  # noqa: PLC0415 - few need Spark

    builder: Any = getattr(core, "DefaultChannelBuilder", core.ChannelBuilder)
    return builder(master).toChannel()


def limit_retries(session: SparkSession) -> None:
    """Let requests to a server that is gone fail within seconds."""
    client: Any = session.client
    if hasattr(client, "set_retry_policies"):
        from pyspark.sql.connect.client.retries import DefaultPolicy  # noqa: PLC0415 - few need Spark

        client.set_retry_policies([DefaultPolicy(max_retries=TRIES, max_backoff=LONGEST)])
    else:
        client._retry_policy |= {"max_retries": TRIES, "max_backoff": LONGEST}  # noqa: SLF001 - no other way in 3.5
