"""/NAME/report: the page of `cdxmill report`. It is made once for each state of a collection, in a process of its own.

Files in the directory that all workers share:

    NAME/STATE.html      the page
    NAME/STATE.failed    why there is none
    making               locked by the process that makes a report: there is one at a time

A stranger's question must not read a cluster over a network, so only clusters on this machine have a report. With access rules
there is none: it would count what they hide.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import blake2b
from multiprocessing import get_context
from multiprocessing.context import SpawnProcess
from pathlib import Path, PurePath
from threading import Lock
from typing import Any

from cdxmill.errors import CdxmillError, StoppedError
from cdxmill.messages import say
from cdxmill.options.reports import Reporting
from cdxmill.running.failures import Failures
from cdxmill.running.processes import end_with_parent
from cdxmill.server.answers import RequestError, Response
from cdxmill.server.collections import Collection
from cdxmill.storage.local import write_atomic

_HTML = "text/html; charset=utf-8"
_KEPT = ((b"cache-control", b"public, max-age=60"),)
_MAKING = "making"
_WAIT = (
    b'<!doctype html><html lang="en"><meta charset="utf-8"><meta http-equiv="refresh" content="2"><title>Report</title>'
    b"<p>The report is being made. This page loads it when it is ready.</p></html>\n"
)
_NONE = "no report: it is made of clusters on the machine of the server only, and not where access rules hide captures"
_FAILED = b"the report could not be made; the messages of the server say why"
_NICE = 10


class Reports:
    """The reports of a worker's collections, in a directory that all workers share."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._process: SpawnProcess | None = None
        self._lock = Lock()

    def page(self, collection: Collection) -> Response:
        """The report; if it is not made yet, a page that asks for it again. Raises RequestError."""
        if not collection.has_report:
            raise RequestError(404, _NONE)
        collection.open()
        state = collection.state()
        if state is None:
            raise RequestError(404, _NONE)
        place = self.place(collection, state)
        with suppress(FileNotFoundError):
            return Response(200, _HTML, (place.with_suffix(".html").read_bytes(),), _KEPT)
        with suppress(FileNotFoundError):
            raise RequestError(500, place.with_suffix(".failed").read_text())
        self._start(place, [source.cluster for source in collection.sources])
        return Response(202, _HTML, (_WAIT,), ((b"retry-after", b"2"), (b"cache-control", b"no-store")))

    def place(self, collection: Collection, state: bytes) -> Path:
        """The file of a report, without its ending."""
        return self._directory / collection.name / blake2b(state, digest_size=16).hexdigest()

    def _start(self, place: Path, clusters: Sequence[str]) -> None:
        """Begin to make a report, unless one is being made."""
        with self._lock:
            if self._process is not None and self._process.is_alive():
                return
            with _alone(self._directory / _MAKING) as is_free:
                if not is_free:
                    return
            self._process = get_context("spawn").Process(target=make, args=(place, clusters), daemon=True)
            self._process.start()


@contextmanager
def _alone(path: Path) -> Iterator[bool]:
    """Hold the lock of a file. False if another process holds it."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True


def make(place: Path, clusters: Sequence[str]) -> None:
    """Write the page of a report, or why there is none, and delete those of earlier states. Runs in a process of its own."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent()
    os.nice(_NICE)
    with _alone(place.parent.parent / _MAKING) as is_free:
        if not is_free:
            return
        try:
            ending, data = ".html", _page(place.parent.name, clusters)
        except CdxmillError as error:
            say(f"cdxmill: the report of {place.parent.name}: {error}")
            ending, data = ".failed", _FAILED
        for old in place.parent.glob("*"):
            old.unlink()
        with write_atomic(place.with_suffix(ending), sync_file=False) as file:
            file.write(data)


def _page(name: str, clusters: Sequence[str]) -> bytes:
    from cdxmill.commands.reporting.parts import public_suffixes  # for this process only
    from cdxmill.commands.reporting.report import find_inputs, make_report
    from cdxmill.stages.report.page import format_page

    public_suffixes()  # raises UsageError if a library is missing, before anything is read
    failures = Failures(printed=False)
    inputs = find_inputs(clusters, failures)
    for part in inputs.parts:
        if part.shard is None:
            raise StoppedError(f"{part.path}: is no cluster any more")
    report = make_report(inputs, Reporting(list(clusters), processes=1), failures)
    return format_page(_without_paths(report, name))


def _without_paths(report: dict[str, Any], name: str) -> dict[str, Any]:
    """A report that does not show where files are on this machine."""
    shards = [shard | {"path": PurePath(shard["path"]).name} for shard in report["shards"]]
    failed = {kind: report[kind] | {"first": []} for kind in ("build_failures", "failures")}
    return report | {"inputs": [name], "shards": shards, "clusters": []} | failed
