"""The process that Spark forks its Python workers from, on this machine: `pyspark.daemon`, which starts faster here.

Spark puts archives of its Python sources in front of the path, and Python compiles them at each start. The same
sources are installed, and compiled. What all tasks need is imported before the fork.
"""

from __future__ import annotations

import sys

if __name__ == "__main__":
    sys.path.sort(key=lambda place: place.endswith(".zip"))

    from pyspark.daemon import manager

    import cdxmill.spark.tasks  # noqa: F401

    manager()
