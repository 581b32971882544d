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
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path

from cdxmill.cluster.find import INDEXES, SWITCHED
from cdxmill.cluster.own_files import (
    COPIED,
    FINISHED,
    NUMBERED,
    WORK,
    cluster_files,
    folders_of,
    read_record,
    shards_of,
)
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.formats.clusters.path_index import ARCHIVES
from cdxmill.formats.clusters.zipnum_index import INDEX, MANIFEST, SHARD, SUMMARY
from cdxmill.running.lock import LOCK
from cdxmill.storage.choose import (
    ask_all,
    exchange,
    exists,
    has_directories,
    is_remote,
    join,
    list_folder,
    move,
    read_bytes,
    remove,
    remove_tree,
    status,
    write_atomic,
)
from cdxmill.storage.local.files import stopping, sync_folder

MARK = ".replaces"
_BELOW, _PLAN = SWITCHED.split("/")
_READ_FIRST = frozenset({MANIFEST, INDEX, SUMMARY})
"""What readers open first. Without an index, there is no cluster."""


def new_place(place: str) -> str:
    """Where the new cluster is built."""
    return _beside(place, "new") if has_directories(place) else join(place, _BELOW)


def old_place(place: str) -> str:
    """Where the old cluster is after the switch. Not on S3."""
    return _beside(place, "old")


def _beside(place: str, kind: str) -> str:
    parent, _, name = place.rpartition("/")
    return f"{parent}/.{name}.{kind}"


def check_switchable(place: str) -> None:
    """Raise UsageError if another cluster cannot take the place of that in `place`."""
    reason = None if is_remote(place) else _why_not_local(Path(place))
    if reason is None and has_directories(place):
        if exists(old_place(place)):
            reason = (
                f"was replaced before, and {old_place(place)} has files that are left; move them away, or"
            )
        elif _is_foreign(new_place(place)):
            reason = f"cannot be replaced, because {new_place(place)} is not of cdxmill; move it away, or"
    elif reason is None and (other := set(list_folder(place)) & set(INDEXES) - {INDEX, SUMMARY}):
        reason = f"cannot be replaced, because readers would use {min(other)}; move it away, or"
    if reason is not None:
        raise UsageError(f"{place}: {reason} choose another directory")


def _why_not_local(folder: Path) -> str | None:
    here = Path.cwd()
    if os.path.ismount(folder):
        return "is a mount point, so it cannot be replaced; mount the directory above it, or"
    if folder == here or folder in here.parents:
        return "is the current directory, so it cannot be replaced; run it in another directory, or"
    if not os.access(folder.parent, os.W_OK | os.X_OK):
        return f"cannot be replaced, because {folder.parent} is not writable; change its access rights, or"
    return None


def _is_foreign(new: str) -> bool:
    found = status(new)
    is_own = found is not None and found.is_folder and (not entries(new) or exists(join(new, MARK)))
    return found is not None and not is_own


def entries(place: str) -> dict[str, bool]:
    """The names in a directory, and whether each is a directory. Links that lead nowhere have names, too."""
    if is_remote(place):
        return {name: entry.is_folder for name, entry in list_folder(place).items()}
    with (
        stopping(Path(place)),
        suppress(FileNotFoundError, NotADirectoryError),
        os.scandir(place) as found,
    ):
        return {entry.name: entry.is_dir(follow_symlinks=False) for entry in found}
    return {}


def mark(place: str) -> str:
    """Where the new cluster is built. It is marked as such, and created if it is missing. Raises StoppedError."""
    new = new_place(place)
    if has_directories(place) and not exists(join(new, MARK)):
        with write_atomic(join(new, MARK)):
            pass
    return new


def discard(place: str) -> None:
    """Delete the new cluster, but not its marks. On S3, which has no marks, files that are not cdxmill's stay."""
    new = new_place(place)
    if not has_directories(place):
        _delete_files(new)
    elif is_remote(place):  # in one step
        remove_tree(new)
        mark(place)
    else:
        for name in entries(new).keys() - {MARK, LOCK}:
            remove_tree(join(new, name))


def switch(place: str, kept: Collection[str] = ()) -> list[str]:
    """Put the new cluster, which is complete, in the place of the old one. Raises StoppedError, InputError.

    `kept` are shards of the old cluster that the new one has, too. Only S3 can keep them where they are.
    Returns the paths of files that cdxmill did not write and that cannot be moved into the new one; they stay in OLD.
    """
    new = mark(place)
    if has_directories(place):
        _sync(new)
        if not exchange(new, place):
            _rename_both(place)
    else:
        with write_atomic(join(new, _PLAN)) as file:
            file.write(json.dumps(_plan(place, kept)).encode())
    return repair(place)


def needs_repair(place: str) -> bool:
    """Whether a run was killed while it switched."""
    if not has_directories(place):
        return exists(join(new_place(place), _PLAN))
    return exists(join(place, MARK)) or (not exists(place) and exists(old_place(place)))


def repair(place: str) -> list[str]:
    """Do what is left of a switch; see `switch`."""
    if not has_directories(place):
        _move_files(place)
        return []
    new, old = new_place(place), old_place(place)
    if not exists(place) and exists(old):  # killed between the two renames
        move(new if entries(new).keys() >= {MARK, MANIFEST} else old, place)
    _sync(posixpath.dirname(place))
    if not exists(join(place, MARK)):
        return []
    if exists(new):
        move(new, old)
    left = _merge(old, place) if exists(old) else []
    remove(join(place, MARK))
    return left


def _rename_both(place: str) -> None:
    move(place, old_place(place))
    try:
        move(new_place(place), place)
    except StoppedError:
        move(old_place(place), place)
        raise


def _sync(folder: str) -> None:
    if not is_remote(folder):
        with stopping(Path(folder)):
            sync_folder(Path(folder))


def _merge(old: str, place: str) -> list[str]:
    """Move what cdxmill did not write from `old` to `place`, and delete the rest of `old`."""
    own = _own(old)
    if exists(join(place, ARCHIVES)):  # it replaces that of the old cluster
        own.add(ARCHIVES)
    left = _move_foreign(old, place, own, folders_of(own))
    _sync(place)
    if is_remote(old) and not left:  # HDFS deletes all in one step
        remove_tree(old)
        return left
    for name in sorted(own - {MANIFEST, FINISHED}):
        remove_tree(join(old, name))
    for below in sorted(folders_of(own), reverse=True):
        with suppress(StoppedError):
            remove(join(old, below))
    for name in (FINISHED, MANIFEST):  # last: they say which files are cdxmill's
        remove(join(old, name))
    with suppress(StoppedError):
        remove(old)
    return left


def _own(place: str) -> set[str]:
    """The names of the files in `place` that cdxmill wrote, some of which are deleted already."""
    try:
        own = cluster_files(shards_of(place))
    except InputError as error:
        if MANIFEST in entries(place):
            raise StoppedError(f"{error}; the files of the old cluster stay in {place}") from None
        own = {FINISHED}
    record = read_record(place)
    files = set(record.files if record is not None else ())
    return own | {WORK, LOCK} | (files & {ARCHIVES} if is_remote(place) else files)


def _move_foreign(old: str, place: str, own: set[str], folders: set[str], below: str = "") -> list[str]:
    left: list[str] = []
    there = entries(join(place, below))
    for found, is_folder in sorted(entries(join(old, below)).items()):
        name = posixpath.join(below, found)
        if name in own:
            continue
        if found not in there:
            move(join(old, name), join(place, name))
        elif name in folders and is_folder:
            left += _move_foreign(old, place, own, folders, name)
        else:
            left.append(join(old, name))
    return left


def _plan(place: str, kept: Collection[str]) -> dict[str, list[str]]:
    """What is deleted from `place`, and moved to it, where directories cannot be moved."""
    new = new_place(place)
    moved = {ARCHIVES, *cluster_files(shards_of(new))} & list_folder(new).keys() - {COPIED, *kept}
    gone = _own(place) & list_folder(place).keys() - moved - set(kept)
    return {"delete": sorted(gone), "move": sorted(moved)}


def _move_files(place: str) -> None:
    new = new_place(place)
    found = list_folder(new).keys()
    if _PLAN not in found:
        return
    steps = json.loads(read_bytes(join(new, _PLAN)))
    left = found & set(steps["move"])  # the others were moved already
    gone = set(steps["delete"]) | (left & _READ_FIRST)
    for names in ({MANIFEST}, {INDEX}, {SUMMARY}, gone - _READ_FIRST):
        ask_all(remove, _paths(place, gone & names))
    shards = {name for name in left if SHARD.fullmatch(name)}
    for names in (shards, left - shards - _READ_FIRST, {INDEX, SUMMARY}, {MANIFEST}):
        ask_all(lambda path: move(path, join(place, posixpath.basename(path))), _paths(new, left & names))
    _delete_files(new)


def _delete_files(new: str) -> None:
    """Delete what cdxmill has written to `new`, without which no run can continue, last."""
    remove_tree(join(new, WORK))
    found = list_folder(new).keys()
    own = {ARCHIVES, *cluster_files(())} & found | {name for name in found if NUMBERED.fullmatch(name)}
    for names in (found & {MANIFEST}, own - {MANIFEST}, found & {_PLAN}):  # without shards, no manifest
        ask_all(remove, _paths(new, names))
    if not list_folder(new):
        remove(f"{new}/")  # the object by which Hadoop creates a directory


def _paths(place: str, names: Iterable[str]) -> list[str]:
    return [join(place, name) for name in sorted(names)]
