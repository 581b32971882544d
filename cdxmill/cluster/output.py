"""Where a run may write a cluster. What a user has in the folder stays, unless --replace is given.

A folder without a cluster       the cluster is written there
A stopped run's unfinished one   the run continues, or another starts from the beginning
A cluster of the same run        nothing is to be done
Another cluster                  refused. With --replace the new one is built beside it and switched
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

from cdxmill.cluster.find import INDEXES
from cdxmill.cluster.finished import (
    COPIED,
    WORK,
    Finished,
    cluster_files,
    fault_of,
    read_finished,
    write_finished,
)
from cdxmill.cluster.switch import (
    MARK,
    check_switchable,
    mark,
    needs_repair,
    new_folder,
    old_folder,
    repair,
    switch,
)
from cdxmill.errors import AbsentError, InputError, RefusedError, StoppedError, UsageError
from cdxmill.formats.clusters.path_index import ARCHIVES
from cdxmill.formats.clusters.zipnum_index import LOCATIONS, MANIFEST
from cdxmill.inputs.split_files import SPLITS, read_splits
from cdxmill.running.failures import Failures
from cdxmill.running.lock import LOCK, hold
from cdxmill.storage.local.files import stopping, sync_folder, write_atomic

_NUMBERED = re.compile(r"(?:part-(\d{5,})|cdx-(\d{5,})\.gz)")
_SHARDS = "shards.json"
"""In the work folder: shards with smaller numbers are of the run that has not finished."""
REPLACE = "--replace builds the new one beside it and then switches; or choose another directory"


class Output:
    """Where a run writes: `work` is the cluster's `folder`, or the folder beside it that takes its place.

    If `finished` is not None, nothing is to be done: the cluster is there.
    """

    def __init__(
        self, folder: Path, work: Path, failures: Failures, finished: Finished | None = None
    ) -> None:
        self.folder, self.work, self.finished = folder, work, finished
        self._failures, self._reported = failures, len(failures.items)

    def start(self, shards: int) -> None:
        """Note, before the first shard is written, that shards with numbers below `shards` are this run's."""
        with write_atomic(self.work / WORK / _SHARDS) as file:
            file.write(str(shards).encode())
        with stopping(self.work):
            sync_folder(self.work)

    def clear(self) -> None:
        """Delete the shards of an unfinished run with other inputs or options."""
        with stopping(self.work):
            for name in _own_shards(self.work):
                (self.work / name).unlink()

    def record(self, run: str, summary: Sequence[int], files: Sequence[str]) -> None:
        """Write the record of the run; `files` are those that it wrote below the folder. cluster.json comes after it."""
        if not files and (before := read_finished(self.folder)) is not None:
            # The folder of indexes stays, or moves to the new cluster.
            files = [name for name in before.files if name != ARCHIVES]
        failures = self._failures.items[self._reported :]
        write_finished(self.work, Finished(run, list(summary), failures, list(files)))

    def finish(self) -> None:
        """Put the cluster in its place, if it was written beside it."""
        if self.work != self.folder:
            put_in_place(self.folder, self._failures.note)


@contextmanager
def open_output(
    folder: Path,
    run: str,
    replace: bool,
    failures: Failures,
    points: Sequence[bytes] | None = None,
) -> Iterator[Output]:
    """The place for a cluster that the run with this fingerprint writes; nobody else writes there.

    `points` are the split points if they are known: a split file of them may be in the folder already.
    Raises UsageError, and nothing is changed, if the folder may not be written.
    """
    place = folder.resolve()
    mend(place, failures.note)
    with ExitStack() as locks:
        finished = check_output(place, run, replace, points)
        if finished is None or (place / LOCK).exists():
            locks.enter_context(hold(place, failures.note))
            finished = check_output(place, run, replace, points)  # again: from now on nobody else writes
            if finished is not None:  # its run was killed before it had deleted these
                shutil.rmtree(place / WORK, ignore_errors=True)
        work = place
        if finished is None and (place / MANIFEST).exists():
            work = mark(place)
            locks.enter_context(hold(work, failures.note))
            finished = _built_before(place, work, run, failures)
        if finished is not None:
            finished.report(folder, failures)
        try:
            yield Output(place, work, failures, finished)
        except InputError:  # no input can be read, so nothing was made
            if work != place and (work / MARK).exists():  # else it is the old cluster, already
                shutil.rmtree(work, ignore_errors=True)
            raise


def _built_before(folder: Path, new: Path, run: str, failures: Failures) -> Finished | None:
    """The record of the run if it was killed just before the switch, which is done now."""
    if not (new / MANIFEST).exists():
        return None
    built = read_finished(new)
    if built is None or built.run != run:
        empty(new)
        return None
    put_in_place(folder, failures.note)
    return built


def check_output(
    folder: Path, run: str, replace: bool, points: Sequence[bytes] | None = None
) -> Finished | None:
    """The record of the run if its cluster is in the folder. Raises UsageError if the run may not write there."""
    names = _names(folder)
    if MANIFEST not in names:
        _check_foreign(folder, names, points)
        return None
    finished = read_finished(folder)
    is_same = finished is not None and finished.run == run
    fault = fault_of(folder) if is_same else None
    if finished is not None and is_same and fault is None and not (replace and finished.failures):
        return finished
    if not replace:
        held = "a cluster of other inputs or options" if fault is None else f"this cluster, but {fault}"
        raise UsageError(f"{folder}: already has {held}; {REPLACE}")
    check_replaceable(folder)
    return None


def check_replaceable(folder: Path) -> None:
    """Raise UsageError if the cluster in a folder cannot be replaced as a whole, StoppedError if the disk fails."""
    check_switchable(folder)
    try:
        own = cluster_files(folder)
    except InputError as error:
        if error.reason.startswith("is corrupt") or isinstance(error, (AbsentError, RefusedError)):
            raise UsageError(f"{error}; choose another directory") from None
        raise StoppedError(str(error)) from None
    for name in sorted(_names(folder)):
        if _NUMBERED.fullmatch(name) and name not in own:
            raise UsageError(
                f"{folder}: {name} is not of the cluster there ({MANIFEST} does not list it); move it away,"
                " or choose another directory"
            )


def _check_foreign(folder: Path, names: set[str], points: Sequence[bytes] | None) -> None:
    """Raise UsageError if a folder without cluster.json has files that would be overwritten."""
    is_unfinished = (folder / WORK / _SHARDS).exists()
    own = _own_shards(folder) if is_unfinished else set()
    written = {name for name in names if _NUMBERED.fullmatch(name)}
    written |= names & {*INDEXES, LOCATIONS, ARCHIVES, COPIED} if not is_unfinished else set()
    if not is_unfinished and not _has_points(folder, names, points):
        written |= names & set(SPLITS)
    foreign = sorted(written - own)
    if foreign:
        raise UsageError(
            f"{folder}: has {foreign[0]}, which is not of a cluster of this command (no {MANIFEST});"
            " choose another directory, or move it away"
        )


def _has_points(folder: Path, names: set[str], points: Sequence[bytes] | None) -> bool:
    """Whether the split files in the folder, if any, are those that would be written."""
    try:
        return all(tuple(read_splits(str(folder / name))) == points for name in SPLITS if name in names)
    except (UsageError, InputError):
        return False


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} if folder.is_dir() else set()


def _shards_of(folder: Path) -> int:
    try:
        return int(json.loads((folder / WORK / _SHARDS).read_bytes()))
    except (OSError, ValueError, TypeError):
        return 0


def _own_shards(folder: Path) -> set[str]:
    """The names of shards and parts that an unfinished run wrote."""
    most = _shards_of(folder)
    found = [match for match in map(_NUMBERED.fullmatch, _names(folder)) if match is not None]
    return {match[0] for match in found if int(match[1] or match[2]) < most}


def empty(new: Path) -> None:
    """Delete a new cluster that other inputs made, but not the marks of the folder."""
    with stopping(new):
        for path in new.iterdir():
            if path.name in (MARK, LOCK):
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()


def put_in_place(folder: Path, note: Callable[[str], None]) -> None:
    """Put the new cluster, which is complete, in the place of the one in `folder`. Raises StoppedError."""
    _tell(switch(folder), note)
    with stopping(folder):
        (folder / LOCK).unlink(missing_ok=True)


def mend(folder: Path, note: Callable[[str], None]) -> None:
    """Do what is left if a run was killed while it replaced the cluster in `folder`. Raises StoppedError."""
    if needs_repair(folder):
        places = (folder, new_folder(folder), old_folder(folder))
        with hold(next(place for place in places if place.exists()), note):
            _tell(repair(folder), note)
            with stopping(folder):
                (folder / LOCK).unlink(missing_ok=True)


def _tell(left: list[str], note: Callable[[str], None]) -> None:
    for path in left:
        note(f"{path}: note: this file stays here, because the new cluster has one of the same name")
