"""The process from which Spark forks its Python workers, in sessions of ours: `spark.python.daemon.module`.

It imports what tasks need before the first fork: each worker would take more than a second of its processor for that.
Some of it would go into Spark's archive of pyspark, whose directory is read again for each package in it. Here pyspark
comes from its folder.
"""

from __future__ import annotations

import gc
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from gapless.entry import NoPandas, work_steadily

NEEDED = ("pyspark.worker", "llvmlite.binding", "gapless.traces.sources.event_files.file")
ARCHIVE = "pyspark.zip"


def main() -> None:
    """Import what workers need, and fork them when Spark asks for them."""
    prefer_folder()
    work_steadily()
    sys.meta_path.insert(0, NoPandas(also_for_spark=True))
    for name in NEEDED:
        import_module(name)
    gc.collect()
    gc.freeze()  # a worker would copy the memory of all objects that it looks at for cycles
    import_module("pyspark.daemon").manager()


def prefer_folder() -> None:
    """Leave out the archive of pyspark if it comes from the folder of the same package here."""
    before = sys.path
    sys.path = [path for path in before if Path(path).name != ARCHIVE]
    found = find_spec("pyspark")
    folder = Path(str(found and found.origin)).resolve().parent
    archives = [Path(path) for path in before if path not in sys.path]
    if not all(path.resolve().is_relative_to(folder) for path in archives):  # another Spark's, perhaps another version
        sys.path = before
        return
    for path in archives:
        sys.path_importer_cache.pop(str(path), None)


if __name__ == "__main__":
    main()
