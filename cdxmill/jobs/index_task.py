"""Map of the index job on a node of Hadoop: archives, one after another, each to its CDX file.

The node needs cdxmill's own libraries (bootstrap.sh, or --python-bin of a packed
environment); cdxmill itself comes with the job.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cdxmill.commands.index import IndexOptions, IndexResult, IndexTask, index_one
from cdxmill.inputs.named import Input
from cdxmill.running.failures import Failure
from cdxmill.running.processes import bytes_done

_TELL = 30.0
"""Seconds between two signs of life: Hadoop ends tasks that are silent for ten minutes."""


def format_failure(failure: Failure) -> bytes:
    """`<path> TAB [at <offset>: ]<reason>`, as in the job's output."""
    where = "" if failure.offset is None else f"at {failure.offset}: "
    line = "\t".join(
        text.replace("\t", "%09").replace("\r", "%0D").replace("\n", "%0A")
        for text in (failure.path, where + failure.reason)
    )
    return line.encode("utf-8", "surrogateescape") + b"\n"


def index_archives(arguments: list[str]) -> None:
    """Index what standard input lists, a JSON object with `archive` and `output` per line."""
    parser = argparse.ArgumentParser(prog="hadoop_task.py index")
    parser.add_argument("--scratch")
    options = parser.parse_args(arguments)
    with (
        tempfile.TemporaryDirectory(prefix="cdxmill-", dir=options.scratch or ".") as folder,
        _signs_of_life(),
    ):
        for number, line in enumerate(sys.stdin.buffer):
            item = json.loads(line)
            task = IndexTask(
                Input(**item["archive"]), item["output"], None, Path(folder) / str(number), IndexOptions()
            )
            _tell(task.archive.path, index_one(task))


def _tell(path: str, result: IndexResult) -> None:
    failures = result.failures(path)
    for failure in failures:
        sys.stdout.buffer.write(format_failure(failure))
    counts = {"archives": 1, "captures": result.findings.captures, "archive bytes": result.size}
    for name, count in {**counts, "failures": len(failures), "failed archives": bool(failures)}.items():
        sys.stderr.write(f"reporter:counter:cdxmill,{name},{int(count)}\n")
    sys.stderr.flush()


@contextmanager
def _signs_of_life() -> Iterator[None]:
    """Tell Hadoop of bytes that were read; a task that reads none is silent, and ended in the end."""
    stop = threading.Event()

    def tell() -> None:
        told = 0
        while not stop.wait(_TELL):
            if (done := bytes_done()) > told:
                told = done
                sys.stderr.write(f"reporter:status:{done >> 20} MiB read\n")
                sys.stderr.flush()

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
