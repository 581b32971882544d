"""Put a new cluster in the place of an old one. Every command, engine and job does it with this, in every storage.

    C       the cluster
    NEW     the new one while it is built: `.C.new` beside C. Its file `.replaces` marks it. On S3: C/.new
    OLD     `.C.old`: the old one after the switch, until its files are deleted. Not on S3

A disk and HDFS rename directories:

    1  exchange C and NEW. A disk of Linux does this in one step. Elsewhere there are two: C to OLD, NEW to C
    2  rename NEW to OLD, if they were exchanged
    3  move the files of OLD that cdxmill did not write to C
    4  delete the other files of OLD
    5  delete C/.replaces

S3 has no directories, so files are moved: S3 copies each of them itself, and then it is deleted.

    1  write NEW/.replaces.json: the files to delete in C, and those to move from NEW to C
    2  delete cluster.json and then the indexes of C. From now on, there is no cluster
    3  delete the other files of C that the new cluster does not have; move the shards, then all but the indexes
    4  move the indexes and then cluster.json
    5  delete what is left in NEW, .replaces.json last

A run whose tasks are elsewhere, on Hadoop or Spark, builds in a directory of its own, C/.run-ID (own_run.py): tasks of an older
run that wake up write to another one. If C has a cluster, a disk and HDFS rename it to NEW first. If C has none, its
files are moved as on S3. So they are on S3 in any case. C/.new/.replaces.json says from where.

A run may be killed at any step. What it leaves tells the next one, which calls `repair`, where to continue:

    state                            readers of C see           repair
    C, and NEW or not                the old cluster            nothing; a complete NEW of the same run is switched to
    no C, but OLD                    no cluster                 renames NEW to C if it is complete, else OLD
    C/.replaces                      the new cluster            steps 2 to 5 of renaming
    NEW/.replaces.json  until 2      the old cluster            steps 2 to 5 of moving
                        in 2 to 4    no cluster: no index       the same
                                        after 4      the new cluster            the same

So nobody who opens C sees files of both clusters under one index. Who has opened the old cluster and reads more: on a disk,
it reads the old files, or reports that the cluster was replaced. At a URL, where each file is opened by its name, it asks
every few seconds whether the index is the same (reader.py). In between it can read bytes of a new shard: for a long time,
open the cluster again for each query.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections import defaultdict
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from cdxmill.cluster.find import INDEXES, SWITCHED
from cdxmill.cluster.write import (
    COPIED,
    FINISHED,
    NUMBERED,
    cluster_files,
    directories_of,
    read_record,
    shards_of,
)
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.zipnum import ARCHIVES, INDEX, MANIFEST, SHARD, SUMMARY
from cdxmill.running.lock import LOCK, check_held
from cdxmill.running.resume import WORK, is_own_work, remove_work
from cdxmill.storage.local import OWN_TEMPORARY, stopping, sync_directory
from cdxmill.storage.location import Location, ask_all

MARK = ".replaces"
_BELOW, _PLAN = SWITCHED.split("/")
_READ_FIRST = frozenset({MANIFEST, INDEX, SUMMARY})
"""What readers open first. Without an index, there is no cluster."""
CHECKED = 60.0
"""Seconds after which a switch or a change at a URL, which may take long, asks again whether the lock is its own."""


def new_place(place: Location) -> Location:
    """Where the new cluster is built."""
    return place.with_name(f".{place.name}.new") if place.properties.has_directories else place / _BELOW


def old_place(place: Location) -> Location:
    """Where the old cluster is after the switch. Not on S3."""
    return place.with_name(f".{place.name}.old")


def check_switchable(place: Location) -> None:
    """Raise UsageError if another cluster cannot take the place of that in `place`."""
    reason = None if place.is_remote else _why_not_local(Path(place.local))
    if place.properties.has_directories:
        if old_place(place).exists():
            reason = (
                f"was replaced before, and {old_place(place)} has files that are left; move them away, or"
            )
        elif _is_foreign(new_place(place)):
            reason = f"cannot be replaced, because {new_place(place)} is not of cdxmill; move it away, or"
    elif other := set(place.entries()) & set(INDEXES) - {INDEX, SUMMARY}:
        reason = f"cannot be replaced, because readers would use {min(other)}; move it away, or"
    if reason is not None:
        raise UsageError(f"{place}: {reason} choose another directory")


def _why_not_local(directory: Path) -> str | None:
    here = Path.cwd()
    if os.path.ismount(directory):
        return "is a mount point, so it cannot be replaced; mount the directory above it, or"
    if directory == here or directory in here.parents:
        return "is the current directory, so it cannot be replaced; run it in another directory, or"
    if not os.access(directory.parent, os.W_OK | os.X_OK):
        return f"cannot be replaced, because {directory.parent} is not writable; change its access rights, or"
    return None


def _is_foreign(new: Location) -> bool:
    if not new.is_remote and Path(new.local).is_symlink():
        return True
    found = new.status()
    if found is None or not found.is_directory:
        return found is not None
    names = [name for name in entries(new) if not OWN_TEMPORARY.fullmatch(name)]  # of a run killed in `mark`
    return bool(names) and MARK not in names


def entries(place: Location) -> dict[str, bool]:
    """The names in a directory, and whether each is a directory. Links that lead nowhere have names, too."""
    if place.is_remote:
        return {name: entry.is_directory for name, entry in place.entries().items()}
    with (
        stopping(Path(place.local)),
        suppress(FileNotFoundError, NotADirectoryError),
        os.scandir(place.local) as found,
    ):
        return {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
    return {}


def mark(place: Location) -> Location:
    """Where the new cluster is built. It is marked as such, and created if it is missing. Raises StoppedError."""
    new = new_place(place)
    if place.properties.has_directories and not (new / MARK).exists():
        with (new / MARK).write_named():
            pass
        new.take_mode(place)
    return new


def discard(place: Location) -> None:
    """Delete the new cluster, but not its marks. On S3, which has no marks, files that are not cdxmill's stay."""
    new = new_place(place)
    if not place.properties.has_directories:
        _delete_files(new)
    else:  # the manifest first: without it, a cluster is not complete
        for name in sorted(entries(new).keys() - {MARK, LOCK}, key=lambda name: (name != MANIFEST, name)):
            (new / name).remove_tree()


def switch(place: Location, kept: Collection[str] = (), built: Location | None = None) -> list[str]:
    """Put the new cluster, which is complete, in the place of the old one. Raises StoppedError, InputError.

    `kept` are shards of the old cluster that the new one has, too. Only S3 can keep them where they are. `built` is the
    directory below `place` where the new one is, if a run has built it in one of its own; see own_run.py.
    Returns the paths of files that cdxmill did not write and that cannot be moved into the new one; they stay in OLD.
    """
    has_directories = place.properties.has_directories
    if has_directories and (built is None or MANIFEST in entries(place)):
        if built is not None:
            new_place(place).remove_tree()  # of a killed run: `check_switchable` has looked at it
            built.move(new_place(place))
        new = mark(place)
        _sync(new)
        if not new.exchange(place):
            _rename_both(place)
    else:
        with (place / SWITCHED).write_atomic() as file:
            file.write(json.dumps(_plan(place, kept, built)).encode())
    return repair(place)


def needs_repair(place: Location) -> bool:
    """Whether a run was killed while it switched."""
    if (place / SWITCHED).exists():
        return True
    if not place.properties.has_directories:
        return False
    return (place / MARK).exists() or (not place.exists() and old_place(place).exists())


def repair(place: Location) -> list[str]:
    """Do what is left of a switch; see `switch`."""
    _move_files(place)
    if not place.properties.has_directories:
        return []
    new, old = new_place(place), old_place(place)
    if not place.exists():  # killed between the two renames
        (new if entries(new).keys() >= {MARK, MANIFEST} else old).move(place)
    _sync(place.parent)
    if not (place / MARK).exists():
        return []
    if new.exists():
        new.move(old)
    left = _merge(old, place) if old.exists() else []
    (place / MARK).remove()
    return left


def _rename_both(place: Location) -> None:
    place.move(old_place(place))
    try:
        new_place(place).move(place)
    except StoppedError:
        old_place(place).move(place)
        raise


def _sync(place: Location) -> None:
    if not place.is_remote:
        with stopping(Path(place.local)):
            sync_directory(Path(place.local))


def _merge(old: Location, place: Location) -> list[str]:
    """Move what cdxmill did not write from `old` to `place`, and delete the rest of `old`."""
    own = _own(old)
    if (place / ARCHIVES).exists():  # it replaces that of the old cluster
        own.add(ARCHIVES)
    left = _move_foreign(old, place, own, directories_of(own))
    _sync(place)
    if old.is_remote and not left:  # HDFS deletes all in one step
        old.remove_tree()
        return left
    for name in sorted(own - {MANIFEST, FINISHED}):
        (old / name).remove_tree()
    for below in sorted(directories_of(own), reverse=True):
        with suppress(StoppedError):
            (old / below).remove()
    for name in (FINISHED, MANIFEST):  # last: they say which files are cdxmill's
        (old / name).remove()
    with suppress(StoppedError):
        old.remove()
    return left


def _own(place: Location) -> set[str]:
    """The names of the files in `place` that cdxmill wrote, some of which are deleted already."""
    try:
        own = cluster_files(shards_of(place))
    except InputError as error:
        if MANIFEST in entries(place):
            raise StoppedError(f"{error}; the files of the old cluster stay in {place}") from None
        own = {FINISHED}
    record = read_record(place)
    files = set(record.files if record is not None else ())
    own |= {LOCK, *([WORK] if is_own_work(place / WORK) else [])}
    return own | (files & {ARCHIVES} if place.is_remote else files)


def _move_foreign(
    old: Location, place: Location, own: set[str], directories: set[str], below: str = ""
) -> list[str]:
    left: list[str] = []
    there = entries(place / below)
    for found, is_directory in sorted(entries(old / below).items()):
        name = posixpath.join(below, found)
        if name in own:
            continue
        if found not in there:
            (old / name).move(place / name)
        elif name in directories and is_directory:
            left += _move_foreign(old, place, own, directories, name)
        else:
            left.append(str(old / name))
    return left


def _plan(place: Location, kept: Collection[str], built: Location | None) -> dict[str, str | list[str]]:
    """What is deleted from `place`, and moved to it from a directory below it."""
    new = built or new_place(place)
    moved = {ARCHIVES, *cluster_files(shards_of(new))} & new.entries().keys() - {COPIED, *kept}
    moved |= _moved_below(place, new)
    gone = _own(place) & place.entries().keys() - moved - {LOCK, *kept}
    return {"from": new.name, "delete": sorted(gone), "move": sorted(moved)}


def _moved_below(place: Location, new: Location) -> set[str]:
    """What a run has written below its directory and moves with the cluster: directories, or their files if `place` has one."""
    record = read_record(new)
    files = set(record.files if record is not None else ())
    directories = directories_of(files) & new.entries().keys()
    there = {below for below in directories if (place / below).exists()}
    return directories - there | _there_of(new, {name for name in files if posixpath.dirname(name) in there})


def _there_of(place: Location, names: Iterable[str]) -> set[str]:
    """Those of the names, with `/` in files of directories, that are in `place`."""
    by_directory: defaultdict[str, set[str]] = defaultdict(set)
    for name in names:
        by_directory[posixpath.dirname(name)].add(posixpath.basename(name))
    return {
        posixpath.join(below, name)
        for below, files in by_directory.items()
        for name in files & (place / below if below else place).entries().keys()
    }


def _move_files(place: Location) -> None:
    below = place / _BELOW
    if _PLAN not in below.entries():
        return
    steps = json.loads((place / SWITCHED).read_bytes())
    new = place / steps.get("from", _BELOW)
    left = _there_of(new, steps["move"])  # the others were moved already
    gone = set(steps["delete"]) | (left & _READ_FIRST)
    for names in ({MANIFEST}, {INDEX}, {SUMMARY}, gone - _READ_FIRST):
        check_held(CHECKED)
        ask_all(Location.remove, _places(place, gone & names))
    shards, start = {name for name in left if SHARD.fullmatch(name)}, len((new / "").text)
    for names in (shards, left - shards - _READ_FIRST, {INDEX, SUMMARY}, {MANIFEST}):
        check_held(CHECKED)
        _sync(place)
        ask_all(lambda moved: moved.move(place / moved.text[start:]), _places(new, left & names))
    _sync(place)
    if new == below:
        _delete_files(new)
        return
    new.remove_tree()
    (place / SWITCHED).remove()
    with suppress(StoppedError):  # another run may have begun to build there
        below.remove()


def _delete_files(new: Location) -> None:
    """Delete what cdxmill has written to `new`, without which no run can continue, last."""
    remove_work(new / WORK)
    found = new.entries().keys()
    own = {ARCHIVES, *cluster_files(())} & found | {name for name in found if NUMBERED.fullmatch(name)}
    for names in (found & {MANIFEST}, own - {MANIFEST}, found & {_PLAN}):  # without shards, no manifest
        ask_all(Location.remove, _places(new, names))
    if not new.entries():
        (new / "").remove()  # the object by which Hadoop creates a directory


def _places(directory: Location, names: Iterable[str]) -> list[Location]:
    return [directory / name for name in sorted(names)]
