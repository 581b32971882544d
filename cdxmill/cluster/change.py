"""Change the shards of a cluster while it is read. Every command that adds or removes lines does it with this.

    cdx-00003-7.gz         shard 3 as change 7 has written it. No name is used twice, so no reader takes it for another
    overlay-00007-7.gz     an overlay, with lines that were added by change 7: see cluster/overlays
    .change/plan.json      the number of the change. Without ready.json, its shards and this directory are deleted
    .change/               the files that will replace those of the cluster
    .change/ready.json     their names, in order, and paths to delete then. From now on, that is done, also after a kill
    .kept.json             the shards that were replaced. They stay for readers of the old index

    1  write the changed shards and their parts, and the new files to .change
    2  write cluster.loc with the old and the new shards
    3  write .change/ready.json
    4  move the files of .change to the cluster. With cluster.idx, readers change from the old lines to the new ones
    5  delete .change

The lock of the directory is held all the time. After a kill, the next command finishes it or takes it back: `settle`.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import groupby
from typing import NamedTuple

from cdxmill.cluster.find import Directory, has_cluster, not_a_cluster
from cdxmill.cluster.output import check_settled, mend, place_of
from cdxmill.cluster.split_files import SPLITS
from cdxmill.cluster.switch import CHECKED
from cdxmill.cluster.write import (
    FINISHED,
    KEPT,
    NUMBERED,
    RunRecord,
    fault_of,
    kept_shards,
    read_manifest,
    read_record,
    write_index,
    write_record,
)
from cdxmill.errors import AbsentError, InputError, StoppedError, UsageError
from cdxmill.formats.clusters.manifest import Manifest, ShardEntry, format_manifest, origin_of
from cdxmill.formats.clusters.split_points import parse
from cdxmill.formats.clusters.zipnum import (
    CHANGE,
    INDEX,
    LOCATIONS,
    MANIFEST,
    OVERLAY,
    SHARD,
    SUMMARY,
    files_of_shard,
    format_location,
    format_part_line,
    parse_index_line,
    parse_locations,
    part_of,
)
from cdxmill.running.failures import Failure
from cdxmill.running.lock import check_held, hold
from cdxmill.running.resume import check_work
from cdxmill.stages.lines.line_lists import split_lines
from cdxmill.storage.location import Location, PathOrUrl, ask_all, locate, pieces

LOCATIONS_FIRST = 0.3
"""Seconds for which cluster.loc is new before cluster.idx is. pywb asks whether the first has changed and then opens the
second; on a busy machine it may have to wait in between, and would not find the new shards."""
_PLAN, _READY = "plan.json", "ready.json"
_LAST = (SUMMARY, INDEX, FINISHED, MANIFEST)
"""The order of the last files that are moved. Readers find the new cluster.json in .change until all are."""


class Change(NamedTuple):
    """A cluster that is changed: its directory, its manifest and split points, and the number of the change."""

    place: Location
    manifest: Manifest
    points: list[bytes]
    number: int

    @property
    def staged(self) -> Location:
        """The directory of the files that will replace those of the cluster."""
        return self.place / CHANGE

    def commit(
        self,
        shards: Sequence[ShardEntry],
        record: RunRecord,
        files: Mapping[str, bytes],
        stale: Sequence[str] = (),
    ) -> None:
        """Switch to `shards` and overlays, which are written. `files` are others to replace, `stale` are paths to delete after it.

        Raises StoppedError.
        """
        check_held(CHECKED)
        now = time.time()
        old = {shard.name for shard in self.manifest.files}
        kept = {**kept_shards(self.place), **dict.fromkeys(sorted(old - {one.name for one in shards}), now)}
        manifest = self._manifest(shards)
        write_index(self.staged, self._parts(manifest.shards))
        write_record(self.staged, record)
        locations = changed_locations(self.place, [one.name for one in shards], kept)
        contents = {**files, KEPT: json.dumps(kept).encode(), MANIFEST: format_manifest(manifest)}
        for name, data in contents.items():
            _write(self.staged / name, data)
        check_held()
        _write(self.place / LOCATIONS, locations)
        if not self.place.is_remote:
            time.sleep(LOCATIONS_FIRST)
        names = [*sorted(contents.keys() - {*_LAST}), *_LAST]
        ready = {"files": names, "stale": list(stale)}
        _write(self.staged / _READY, json.dumps(ready).encode())
        settle(self.place)

    def _manifest(self, files: Sequence[ShardEntry]) -> Manifest:
        """The manifest with these shards and overlays."""
        overlays = tuple(one for one in files if OVERLAY.fullmatch(one.name))
        shards = tuple(one for one in files if one not in overlays)
        origin = origin_of(self.manifest)
        return self.manifest._replace(shards=shards, change=self.number, origin=origin, overlays=overlays)

    def _parts(self, shards: Sequence[ShardEntry]) -> Iterator[bytes]:
        """The part of each shard. cluster.idx has those of shards that stay, in one file."""
        groups = _index_parts(self.place)
        found = next(groups, None)
        for one in shards:
            while found is not None and _number_of(found[0]) < _number_of(one.name):
                found = next(groups, None)
            if found is not None and found[0] == one.name:
                yield found[1]
            else:
                yield (self.place / part_of(one.name)).read_bytes()


@contextmanager
def open_change(path: PathOrUrl, note: Callable[[str], None]) -> Iterator[Change]:
    """Hold a finished cluster to change it. If the change is not committed, the cluster stays as it was.

    Raises UsageError if another run holds it, InputError if it is no cluster of cdxmill or has a fault.
    """
    place = place_of(locate(path))
    place.check_writable()
    mend(place, note)
    if not (place / MANIFEST).exists() and not is_ready(place):
        if not has_cluster(Directory(place)):
            raise not_a_cluster(place, f"{INDEX}, {SUMMARY} or {MANIFEST}")
        raise UsageError(
            f"{place}: has no {MANIFEST}, so it cannot be changed; make a copy that can: cdxmill merge -o NEW {place}"
        )
    with hold(place, note):
        check_settled(place)
        check_work(place / CHANGE, frozenset({_PLAN, _READY}))
        settle(place)
        manifest = read_manifest(place / MANIFEST)
        if fault := fault_of(place):
            raise InputError(str(place), fault, "check it with cdxmill verify")
        points = parse((place / SPLITS[0]).read_bytes())
        change = Change(place, manifest, points, manifest.change + 1)
        try:
            _write(change.staged / _PLAN, json.dumps({"change": change.number}).encode())
            yield change
        finally:
            if (change.staged / _PLAN).exists() and not is_ready(place):
                _take_back(place)


def _index_parts(place: Location) -> Iterator[tuple[str, bytes]]:
    """The shards in cluster.idx, in order, and the part of each. Nothing if there is none."""
    with suppress(AbsentError), (place / INDEX).open_ranges() as read_at:
        rows = (parse_index_line(line) for lines in split_lines(pieces(read_at)) for line in lines)
        for shard, found in groupby(rows, key=lambda block: block.shard):
            yield shard.decode(), b"".join(map(format_part_line, found))


def is_changeable(path: PathOrUrl) -> bool:
    """Whether a cluster has what a change needs. One of another tool has not: `collections.adopt` writes it."""
    place = place_of(locate(path))
    return (place / MANIFEST).exists() or is_ready(place)


def is_ready(place: Location) -> bool:
    """Whether a change of the cluster only has to be moved in."""
    return (place / CHANGE / _READY).exists()


def settle(place: Location) -> None:
    """Finish the change that is ready, or take back one that is not. Requires: the cluster is held. Raises StoppedError."""
    staged = place / CHANGE
    try:
        ready = json.loads((staged / _READY).read_bytes())
        names, stale = list(map(str, ready["files"])), list(map(str, ready["stale"]))
    except AbsentError:
        _take_back(place)
        return
    except (ValueError, TypeError, KeyError):
        raise _foreign(staged) from None
    found = staged.entries()
    for name in names:
        check_held(CHECKED)
        if name == MANIFEST:
            _write(place / name, (staged / name).read_bytes())
        elif name in found:
            (staged / name).move(place / name)
    ask_all(Location.remove, [place / name for name in stale])
    (staged / _READY).remove()
    _delete(staged)


def _delete(staged: Location) -> None:
    """Delete the directory. What shows that it is of cdxmill goes last."""
    for name in sorted(staged.entries(), key=lambda name: name == _PLAN):
        (staged / name).remove_tree()
    staged.remove_tree()


def _foreign(staged: Location) -> StoppedError:
    return StoppedError(f"{staged}: is not of cdxmill, or corrupt; move it away")


def _take_back(place: Location) -> None:
    """Delete what a change has written that is not ready."""
    staged = place / CHANGE
    try:
        number = int(json.loads((staged / _PLAN).read_bytes())["change"])
    except AbsentError:
        return
    except (ValueError, TypeError, KeyError):
        raise _foreign(staged) from None
    check_held()  # else all of this is of the run that has taken the directory
    shards = read_manifest(place / MANIFEST).files
    listed = {name for shard in shards for name in files_of_shard(shard.name)}
    lost = [name for name in place.entries() if _change_of(name) == number and name not in listed]
    rows = parse_locations((place / LOCATIONS).read_bytes()).rows
    if any(row.shard in lost for row in rows):
        _write(
            place / LOCATIONS, _formatted((row.shard, row.locations) for row in rows if row.shard not in lost)
        )
    ask_all(Location.remove, [place / name for name in lost])
    _delete(staged)


def _change_of(name: str) -> int:
    """The number of the change that wrote a file of a shard or an overlay; 0 for another file."""
    overlay = OVERLAY.fullmatch(f"{name.rpartition('.')[0]}.gz")
    if overlay is not None and NUMBERED.fullmatch(name):
        return int(overlay[2])
    found = SHARD.fullmatch(name) or SHARD.fullmatch(name.replace("part-", "cdx-") + ".gz")
    return int(found[2] or 0) if found is not None and NUMBERED.fullmatch(name) else 0


def _write(place: Location, data: bytes) -> None:
    with place.write_atomic() as file:
        file.write(data)


def changed_locations(place: Location, shards: Sequence[str], kept: Mapping[str, float]) -> bytes:
    """cluster.loc with `shards` and, behind them, `kept` ones.

    A new shard is where the older one of its number is, a new overlay where the first shard is.
    """
    rows = {row.shard: row.locations for row in parse_locations((place / LOCATIONS).read_bytes()).rows}
    by_number = {_number_of(name): (name, locations) for name, locations in rows.items()}
    listed: list[tuple[str, list[str]]] = []
    for shard in shards:
        if shard in rows:
            listed.append((shard, rows[shard]))
            continue
        name, locations = by_number[0 if OVERLAY.fullmatch(shard) else _number_of(shard)]
        listed.append(
            (shard, [f"{one.removesuffix(name)}{shard}" for one in locations if one.endswith(name)])
        )
    return _formatted([*listed, *((name, rows[name]) for name in kept if name in rows)])


def _formatted(rows: Iterator[tuple[str, list[str]]] | Sequence[tuple[str, list[str]]]) -> bytes:
    return b"".join(format_location(shard, "\t".join(locations)) for shard, locations in rows)


def _number_of(shard: str) -> int:
    found = SHARD.fullmatch(shard)
    return int(found[1]) if found is not None else -1


def delete_kept(place: Location, seconds: float) -> list[str]:
    """Delete the replaced shards that were kept for `seconds`. Returns their names. Requires: the cluster is held."""
    kept = kept_shards(place)
    due = [name for name, since in kept.items() if time.time() - since >= seconds]
    listed = {shard.name for shard in read_manifest(place / MANIFEST).files}
    due = [name for name in due if name not in listed]
    if not due:
        return []
    rows = parse_locations((place / LOCATIONS).read_bytes()).rows
    _write(
        place / LOCATIONS, _formatted([(row.shard, row.locations) for row in rows if row.shard not in due])
    )
    ask_all(Location.remove, [place / name for shard in due for name in files_of_shard(shard)])
    left = {name: since for name, since in kept.items() if name not in due}
    if left:
        _write(place / KEPT, json.dumps(left).encode())
    else:
        (place / KEPT).remove()
    return due


def changed_record(
    place: Location, change: int, failures: Sequence[Failure], files: Sequence[str]
) -> RunRecord:
    """The record of a changed cluster: no build has this fingerprint, so none takes it for its own."""
    before = read_record(place) or RunRecord("", [], [], [])
    with_new = list(dict.fromkeys([*before.files, *files]))
    return RunRecord(f"change {change}", before.summary, [*before.failures, *failures], with_new)
