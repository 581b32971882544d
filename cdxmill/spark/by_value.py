"""The functions that Spark's nodes run. PySpark sends them by value, because they have no name in a module.

They must import everything themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def working(archive: str, blob: bytes) -> Callable[[Any], Any]:
    """What does the tasks of a partition: `blob` has the call, which is read once, and not for each of many small tasks."""
    load = _loading(archive)

    def work(numbered: Any) -> Any:
        call = load(blob)
        for number, task in numbered:
            yield number, call(load(task))

    return work


def joining(archive: str, blob: bytes) -> Callable[[int, Any], Any]:
    """What does the tasks of a shuffle: `blob` has the call, and what all of them share."""
    load = _loading(archive)

    def join(number: int, pairs: Any) -> Any:
        from collections.abc import Iterator

        call, shared = load(blob)
        result = call(shared, number, (part for _, part in pairs))
        if isinstance(result, Iterator):
            yield from result
        elif result is not None:
            yield result

    return join


def _loading(archive: str) -> Callable[[bytes], Any]:
    def load(blob: bytes) -> Any:
        """Put the cdxmill that was sent on the path of the node, and read what needs it."""
        import pickle
        import sys

        if archive:
            from pyspark import SparkFiles

            directory = SparkFiles.get(archive)
            if directory not in sys.path:
                sys.path.insert(0, directory)
        return pickle.loads(blob)

    return load
