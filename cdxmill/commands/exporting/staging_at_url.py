"""A table at an s3 or hdfs URL, which appears when it is complete, and replaces one that an earlier export wrote.

It is written to the directory OUTPUT/.run-ID, as a cluster that other machines build is: tasks of an older run, which may wake
up at any time, write to the directory of theirs. S3 has no rename of directories, so files are moved one by one at the end:

1. `_cdxmill/switched.json` lists the old files and the new ones. From now on, all of them are known as cdxmill's.
2. The old files are deleted, their list first, and the new ones are moved, their list last.
3. `_cdxmill/switched.json` is deleted.

A run that was killed meanwhile is started again, and starts from the beginning.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from cdxmill.cluster.own_run import RUN, remove_runs, start_run
from cdxmill.cluster.switch import MARK
from cdxmill.commands.exporting.listed_files import LIST, check_replaceable, files_listed
from cdxmill.errors import InputError, StoppedError
from cdxmill.formats.own_records import APART
from cdxmill.running.lock import LOCK, check_held, hold, renew_held, run_id
from cdxmill.storage.location import Location
from cdxmill.storage.walk import files_below

_SWITCHED = f"{APART}/switched.json"


@contextmanager
def staged_at_url(place: Location, replace: bool, note: Callable[[str], None]) -> Iterator[Location]:
    """The directory in which a run writes. At the end of the `with`, its files are moved to `place`, which is held.

    Raises UsageError if there is something that may not be replaced, HeldError if another run writes there, StoppedError.
    """
    with hold(place, note):
        old = _old_files(place, replace)
        remove_runs(place)
        own = start_run(place, run_id())
        try:
            yield own
            check_held()
            _switch(own, place, old)
        finally:
            with suppress(InputError, StoppedError):
                own.remove_tree()


def _old_files(place: Location, replace: bool) -> set[str]:
    """The files that are replaced."""
    found = {name for name in _files_in(place) if name != LOCK and not name.startswith(RUN)}
    if others := found - files_listed(place, _SWITCHED):
        check_replaceable(str(place), others, files_listed(place), replace)
    return found


def _files_in(place: Location) -> list[str]:
    start = len(f"{place}/")
    return [path[start:] for path in files_below(str(place)).files]


def _switch(own: Location, place: Location, old: set[str]) -> None:
    """Put the new files in the place of the old ones. Directories are moved whole where the storage has them."""
    files = {*_files_in(own)} - {MARK, LIST}
    new = {name.split("/")[0] for name in files} if place.properties.has_directories else files
    with (place / _SWITCHED).write_atomic() as file:
        file.write(json.dumps({"files": sorted({*old, *files, LIST} - {_SWITCHED})}).encode())
    (place / LIST).remove()
    for name in sorted({name.split("/")[0] for name in old} - {APART}):
        (place / name).remove_tree()
        renew_held()
    for name in (*sorted(new), LIST):
        (own / name).move(place / name)
        renew_held()
    (place / _SWITCHED).remove()
