"""The directory in which one run on Hadoop or Spark builds a cluster: C/.run-ID, below the directory C of the cluster.

Tasks of an older run may wake up at any time, and write. They write to the directory of that run, never to the cluster.
Only the run that holds the lock of C puts its own directory in the place of the cluster. The next run deletes what a
killed one has left. `.replaces` marks such a directory as cdxmill's.
"""

from __future__ import annotations

from cdxmill.cluster.switch import MARK, entries
from cdxmill.regex import regex
from cdxmill.storage.location import Location, ask_all

RUN = ".run-"
"""Begins the name of such a directory."""
_NAME = regex(r"\.run-([0-9a-f]{8,}(?:-\d+)?)")


def run_place(place: Location, run: str) -> Location:
    """The directory of a run: `run` is hexadecimal digits, and perhaps a hyphen and decimal ones."""
    return place / f"{RUN}{run}"


def start_run(place: Location, run: str) -> Location:
    """Create the directory of a run, with the access rights of `place`. Raises StoppedError."""
    own = run_place(place, run)
    with (own / MARK).write_named():
        pass
    if place.properties.has_directories:
        own.take_mode(place)
    return own


def left_runs(place: Location) -> list[str]:
    """The runs whose directories are below `place`. Raises InputError."""
    found = [match[1] for name in entries(place) if (match := _NAME.fullmatch(name))]
    marked = ask_all(lambda run: (run_place(place, run) / MARK).exists(), found)
    return [run for run, is_own in zip(found, marked, strict=True) if is_own]


def take_over(place: Location, run: str, name: str) -> None:
    """Let a run have the directory `name` of a killed one, if there is one. `place` is held. Raises StoppedError."""
    own = run_place(place, run) / name
    for left in left_runs(place):
        if not own.exists() and (run_place(place, left) / name).exists():
            (run_place(place, left) / name).move(own)


def remove_runs(place: Location, but: str = "") -> None:
    """Delete the directories of all runs, except that of the run `but`. `place` is held. Raises StoppedError."""
    for run in left_runs(place):
        if run != but:
            run_place(place, run).remove_tree()
