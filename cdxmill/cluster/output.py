"""Where a run may write a cluster: a path or URL. What a user has there stays, unless --replace is given.

A directory without a cluster    the cluster is written there
A stopped run's unfinished one   the run continues, or another starts from the beginning
A cluster of the same run        nothing is to be done
Another cluster                  refused. With --replace the new one is built in another place, and then switched

A run whose tasks are on other machines always builds in a place of its own (own_run.py), and then switches.

The directory is locked (running/lock.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext, suppress
from pathlib import Path

from cdxmill.cluster.find import INDEXES
from cdxmill.cluster.own_run import remove_runs, start_run, take_over
from cdxmill.cluster.split_files import SPLITS, stored_splits
from cdxmill.cluster.switch import (
    MARK,
    check_switchable,
    discard,
    entries,
    mark,
    needs_repair,
    new_place,
    old_place,
    repair,
    switch,
)
from cdxmill.cluster.write import (
    COPIED,
    FINISHED,
    NUMBERED,
    RunRecord,
    cluster_files,
    fault_of,
    read_record,
    shards_of,
    write_record,
)
from cdxmill.errors import AbsentError, InputError, OutageError, RefusedError, StoppedError, UsageError
from cdxmill.formats.clusters.zipnum import ARCHIVES, CDX_DIRECTORY, LOCATIONS, MANIFEST
from cdxmill.running.failures import Failures
from cdxmill.running.lock import LOCK, check_held, hold
from cdxmill.running.resume import WORK, check_work, remove_work
from cdxmill.storage.location import Location, ask_all, locate
from cdxmill.storage.reading import json_if_any

_SHARDS = f"{WORK}/shards.json"
"""Shards with smaller numbers are of the run that has not finished."""
REPLACE = "--replace builds the new one beside it and then switches; or choose another directory"


class Output:
    """Where a run writes: `work` is the cluster's `place`, or where the cluster is built that replaces it.

    If `finished` is not None, nothing is to be done: the cluster is there.
    """

    def __init__(
        self, place: Location, work: Location, failures: Failures, finished: RunRecord | None = None
    ) -> None:
        self.place, self.work, self.finished = place, work, finished
        self._failures, self._reported = failures, len(failures.items)

    def start(self, shards: int) -> None:
        """Note, before the first shard is written, that shards with numbers below `shards` are this run's."""
        with (self.work / _SHARDS).write_atomic() as file:
            file.write(str(shards).encode())

    def clear(self) -> None:
        """Delete the shards of an unfinished run with other inputs or options."""
        _remove_shards(self.work)

    def record(self, run: str, summary: Sequence[int], files: Sequence[str]) -> None:
        """Write the record of the run; `files` are those that it wrote below the directory. cluster.json comes after it."""
        if not files and (before := read_record(self.place)) is not None:
            # The directory of indexes stays, or moves to the new cluster.
            files = [name for name in before.files if name != ARCHIVES]
        check_held()
        failures = self._failures.items[self._reported :]
        write_record(self.work, RunRecord(run, list(summary), failures, list(files)))

    def finish(self) -> None:
        """Put the cluster in its place, if it was written elsewhere."""
        if self.work != self.place:
            put_in_place(self.place, self._failures.note, built=self.work)


def place_of(path: Location) -> Location:
    """The path of the directory, without symbolic links, or its URL."""
    return locate(path.absolute() if path.is_remote else Path(path.local).resolve())


def check_settled(place: Location) -> None:
    """Raise StoppedError if a run was killed while it switched, after `mend` and before `place` was held."""
    if needs_repair(place):
        raise StoppedError(f"{place}: another run was killed while it replaced the cluster; run it again")


def hold_new(place: Location, note: Callable[[str], None]) -> AbstractContextManager[object]:
    """Hold the directory where the new cluster is built, which is marked. On S3, it is below `place`, which is held."""
    new = mark(place)
    return hold(new, note) if place.properties.has_directories else nullcontext()


@contextmanager
def open_output(
    path: Location,
    run: str,
    replace: bool,
    failures: Failures,
    points: Sequence[bytes] | None = None,
    is_far: bool = False,
) -> Iterator[Output]:
    """The place for a cluster that the run with this fingerprint writes; nobody else writes there.

    `points` are the split points if they are known: a split file of them may be in the directory already. A run that
    `is_far` has tasks on other machines: it builds in a directory of its own.
    Raises UsageError, and nothing is changed, if the run may not write there.
    """
    place = place_of(path)
    mend(place, failures.note)
    with ExitStack() as locks:
        finished = check_output(place, run, replace, points)
        if finished is None or LOCK in entries(place):
            locks.enter_context(hold(place, failures.note))
            check_settled(place)
            finished = check_output(place, run, replace, points)  # again: from now on nobody else writes
        if finished is not None:
            _remove_work(place)
        work = place
        if finished is None and is_far:
            work = _own_place(place, run)
        if finished is None:
            remove_runs(place, but=run if is_far else "")
        if finished is None and is_far:
            finished = _built_before(place, work, run, failures)
        elif finished is None and (place / MANIFEST).exists():
            work = new_place(place)
            locks.enter_context(hold_new(place, failures.note))
            finished = _built_before(place, work, run, failures)
        elif finished is None and (new_place(place) / MARK).exists():
            new_place(place).remove_tree()  # of a killed run that would have replaced a cluster that is gone
        if finished is not None:
            finished.report(path, failures)
        try:
            yield Output(place, work, failures, finished)
        except InputError as error:
            if work != place and not isinstance(error, OutageError):  # a rerun continues after an outage
                _discard_work(place, work, is_far)
            raise


def _discard_work(place: Location, work: Location, is_far: bool) -> None:
    """Delete the directory of a run in which nothing was made, because no input can be read."""
    if not needs_repair(place):  # else it is the old cluster, already
        check_held()
        work.remove_tree() if is_far or place.properties.has_directories else discard(place)


def _own_place(place: Location, run: str) -> Location:
    """The directory of a run that is far. It gets the indexes of a killed one."""
    work = start_run(place, run)
    take_over(place, run, CDX_DIRECTORY)
    if not (place / MANIFEST).exists():
        _clear_unfinished(place)
    return work


def _clear_unfinished(place: Location) -> None:
    """Delete what a run on this machine has left, which this one cannot continue."""
    _remove_shards(place)
    _remove_work(place)


def _remove_shards(place: Location) -> None:
    ask_all(Location.remove, [place / name for name in sorted(_own_shards(place))])


def _built_before(place: Location, new: Location, run: str, failures: Failures) -> RunRecord | None:
    """The record of the run if it was killed just before the switch, which is done now."""
    if not (new / MANIFEST).exists():
        if (new / COPIED).exists():  # of `publish`
            discard(place)
        return None
    built = read_record(new)
    if built is None or built.run != run:
        discard(place)
        return None
    _remove_work(new)
    put_in_place(place, failures.note, built=new)
    return built


def _remove_work(place: Location) -> None:
    """Delete the work directory of a run that was killed after it had written cluster.json."""
    with suppress(StoppedError):
        remove_work(place / WORK)


def check_output(
    place: Location, run: str, replace: bool, points: Sequence[bytes] | None = None
) -> RunRecord | None:
    """The record of the run if its cluster is in the place. Raises UsageError if the run may not write there."""
    names = entries(place).keys()
    if MANIFEST not in names:
        _check_foreign(place, set(names), points)
        return None
    finished, fault = read_record(place), None
    if finished is not None and finished.run == run:
        fault = fault_of(place, exact=replace)
        if fault is None and not (replace and finished.failures):
            return finished
    if not replace:
        _own_files(place)  # else --replace would be refused, too
        held_by = "a cluster of other inputs or options" if fault is None else f"this cluster, but {fault}"
        raise UsageError(f"{place}: already has {held_by}; {REPLACE}")
    check_replaceable(place)
    return None


def check_replaceable(place: Location) -> None:
    """Raise UsageError if the cluster in a place cannot be replaced as a whole, StoppedError if the disk fails."""
    check_switchable(place)
    for name in sorted(entries(place).keys() - _own_files(place)):
        if NUMBERED.fullmatch(name):
            raise UsageError(
                f"{place}: {name} is not of the cluster there ({MANIFEST} does not list it); move it away,"
                " or choose another directory"
            )


def _own_files(place: Location) -> set[str]:
    """The names of the files of the finished cluster in a place. Raises UsageError if they are not known, StoppedError."""
    try:
        return cluster_files(shards_of(place))
    except InputError as error:
        if error.reason.startswith("is corrupt") or isinstance(error, (AbsentError, RefusedError)):
            raise UsageError(
                f"{error.path}: {error.reason}; move this directory away, or choose another directory"
            ) from None
        raise StoppedError(str(error)) from None


def _check_foreign(place: Location, names: set[str], points: Sequence[bytes] | None) -> None:
    """Raise UsageError if a directory without cluster.json has files that would be overwritten."""
    if WORK in names:
        check_work(place / WORK)
    is_unfinished = WORK in names and (place / _SHARDS).exists()
    own = _own_shards(place) if is_unfinished else set()
    written = {name for name in names if NUMBERED.fullmatch(name)}
    written |= names & {*INDEXES, LOCATIONS, ARCHIVES, COPIED} if not is_unfinished else set()
    if not is_unfinished and not _has_points(place, names, points):
        written |= names & set(SPLITS)
    if FINISHED in names and read_record(place) is None:
        written.add(FINISHED)
    foreign = sorted(written - own)
    if foreign:
        raise UsageError(
            f"{place}: has {foreign[0]}, which is not of a cluster of this command (no {MANIFEST});"
            " choose another directory, or move it away"
        )


def _has_points(place: Location, names: set[str], points: Sequence[bytes] | None) -> bool:
    """Whether the split files in the directory, if any, are those that would be written."""
    found = [place / name for name in SPLITS if name in names]
    return points is not None and all(stored_splits(one) == list(points) for one in found)


def _own_shards(place: Location) -> set[str]:
    """The names of shards and parts that an unfinished run wrote. Raises OutageError."""
    try:
        most = int(json_if_any(place / _SHARDS))
    except (ValueError, TypeError):
        return set()
    found = [match for match in map(NUMBERED.fullmatch, entries(place)) if match is not None]
    return {match[0] for match in found if int(match[1] or match[2] or most) < most}


def put_in_place(
    place: Location, note: Callable[[str], None], kept: Sequence[str] = (), built: Location | None = None
) -> None:
    """Put the new cluster, which is complete, in the place of the old one; see `switch`. Raises StoppedError.

    It is in `built`, or in the usual place beside the old one. If the directories are exchanged, both are held.
    """
    check_held()
    if built is None or built == new_place(place):
        _tell(place, switch(place, kept), note)
        return
    is_exchanged = place.properties.has_directories and (place / MANIFEST).exists()
    with hold(built, note) if is_exchanged else nullcontext():
        _tell(place, switch(place, kept, built), note)


def mend(place: Location, note: Callable[[str], None]) -> None:
    """Do what is left if a run was killed while it replaced the cluster in `place`. Raises StoppedError."""
    if needs_repair(place):
        places = (place, new_place(place), old_place(place))
        holder = next(filter(Location.exists, places), place)
        with hold(holder, note):
            _tell(place, repair(place), note)
            if place.is_remote and holder != place:  # the lock has moved with its directory
                (place / LOCK).remove()


def _tell(place: Location, left: list[str], note: Callable[[str], None]) -> None:
    for path in left:
        note(f"{path}: note: this file stays here, because the new cluster has one of the same name")
    if not place.is_remote:
        (place / LOCK).remove()
