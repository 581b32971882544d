"""Put a new cluster in the place of an old one at an s3 or hdfs URL, where directories cannot be exchanged in one step.

    C            the cluster
    C/.new       the new one while it is built. C is complete and readable
    C/.new/.replaces.json
                 the names of the files to delete and to move; it exists during the switch

1  write .replaces.json
2  delete cluster.json, the index of C and the files that the new cluster does not have. From now on there is no cluster
3  move the shards of C/.new to C, then its other files, cluster.json last. HDFS renames them; S3 copies and deletes them
4  delete .replaces.json

A run that is killed leaves .replaces.json. `repair` does the steps that are left. Only files that the new cluster lists
are moved, and only files with the names of a cluster are deleted.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Collection, Iterable

from cdxmill.cluster.files import part_of
from cdxmill.cluster.finished import BESIDE, COPIED, FINISHED, WORK
from cdxmill.cluster.manifest import read_manifest
from cdxmill.errors import InputError
from cdxmill.formats.clusters.path_index import ARCHIVES
from cdxmill.formats.clusters.zipnum_index import MANIFEST, SHARD
from cdxmill.inputs.split_files import SPLITS
from cdxmill.storage.choose import ask_all, join, list_folder, move, read_bytes, remove, write_atomic

NEW = ".new"
_REPLACES = ".replaces.json"
_FILES = frozenset({MANIFEST, *BESIDE, *SPLITS, ARCHIVES, FINISHED})
_NUMBERED = re.compile(r"cdx-\d{5,}\.gz|part-\d{5,}")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{32}\.tmp")
"""What a killed upload to HDFS leaves."""


def new_place(url: str) -> str:
    """Where the new cluster is built."""
    return join(url, NEW)


def switch(url: str, kept: Collection[str] = ()) -> None:
    """Put the new cluster, which is complete, in the place of the one at `url`. Raises StoppedError, InputError.

    `kept` are shards of the old cluster that belong to the new one, too.
    """
    new = new_place(url)
    shards = _shards_of(new)
    moved = {*_FILES, *(shards - set(kept)), *map(part_of, shards)} & list_folder(new).keys()
    try:
        before = _shards_of(url) - set(kept)
    except InputError:  # corrupt: which shards it had is not known
        before = set()
    gone = {*_FILES, COPIED, *before, *map(part_of, before)} - moved
    with write_atomic(join(new, _REPLACES)) as file:
        file.write(json.dumps({"delete": sorted(gone), "move": sorted(moved)}).encode())
    repair(url)


def repair(url: str) -> None:
    """Do what is left of a switch, if one was interrupted. Raises StoppedError, InputError."""
    new = new_place(url)
    found = list_folder(new).keys()
    if _REPLACES not in found:
        return
    steps = json.loads(read_bytes(join(new, _REPLACES)))
    left = found & set(steps["move"])  # the others were moved already
    gone = {*steps["delete"], *(left & {MANIFEST, *BESIDE})}
    remove_all(url, gone & {MANIFEST})
    remove_all(url, gone - {MANIFEST})
    shards = {name for name in left if SHARD.fullmatch(name)}
    for moved in (shards, left - shards - {MANIFEST}, left & {MANIFEST}):
        ask_all(lambda path: move(path, join(url, posixpath.basename(path))), _paths(new, moved))
    clear(new)


def clear(new: str) -> None:
    """Delete a new cluster that is not wanted, or what a switch has left of it. Other files stay."""
    work = join(new, WORK)
    remove_all(work, list_folder(work))
    found = list_folder(new).keys()
    remove_all(new, found & {MANIFEST})  # without its shards, it would seem to be complete
    own = {
        name for name in found if name in _FILES or _NUMBERED.fullmatch(name) or _TEMPORARY.fullmatch(name)
    }
    remove_all(new, (own | {COPIED, _REPLACES, WORK} & found) - {MANIFEST})
    if not list_folder(new):
        remove(new)  # a directory of HDFS


def _shards_of(url: str) -> set[str]:
    return {shard.name for shard in read_manifest(join(url, MANIFEST)).shards}


def remove_all(url: str, names: Iterable[str]) -> None:
    """Delete files below `url`. Raises StoppedError."""
    ask_all(remove, _paths(url, names))


def _paths(url: str, names: Iterable[str]) -> list[str]:
    return [join(url, name) for name in sorted(names)]
