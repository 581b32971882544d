"""The files beside a cluster's shards, held against what is in the shards: manifest, splits, locations."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence

from cdxmill.cluster.files import ClusterFiles
from cdxmill.cluster.locations import resolved
from cdxmill.cluster.manifest import Manifest
from cdxmill.errors import InputError
from cdxmill.formats.cluster_manifest import splits_digest
from cdxmill.formats.split_points import format_sequence_file, parse_text
from cdxmill.formats.zipnum_index import LOCATIONS, MANIFEST
from cdxmill.inputs.split_files import SPLITS
from cdxmill.stages.zipnum.check_shard import CheckedShard
from cdxmill.storage.choose import (
    PathOrUrl,
    absolute,
    ask_all,
    is_remote,
    join,
    open_ranges,
    pieces,
    read_bytes,
    same_location,
    status,
)


def check_manifest(
    manifest: Manifest, reports: Mapping[str, CheckedShard | None]
) -> Iterator[tuple[str, str]]:
    """(file, what is wrong) where cluster.json is not what the sound shards make of it."""
    entries = manifest.content["shards"]
    for entry in entries:
        report = reports.get(entry["name"])
        if report is None or report.faults:
            continue
        for field, value in _entry_of(report).items():
            if entry[field] != value:
                yield (
                    entry["name"],
                    f"{field} {value} of the file are not {entry[field]}, as {MANIFEST} has it",
                )
    for field in ("lines", "blocks"):
        total = sum(entry[field] for entry in entries)
        if manifest.content[field] != total:
            yield MANIFEST, f"{field} {manifest.content[field]}, but its shards have {total}"
    if (json.dumps(manifest.content, indent=1) + "\n").encode() != manifest.data:
        yield MANIFEST, "is not written as cdxmill writes it: it was changed"


def _entry_of(report: CheckedShard) -> dict[str, int | str]:
    return {
        "bytes": report.size,
        "lines": report.lines,
        "blocks": report.blocks,
        "sha256": report.sha256,
    }


def check_splits(
    files: ClusterFiles, manifest: Manifest, reports: Mapping[str, CheckedShard | None]
) -> Iterator[tuple[str, str]]:
    """(file, what is wrong) where the split points are not those of the manifest, or not of the shards."""
    text, sequence = SPLITS
    for name in SPLITS:
        if not files.has(name):
            yield name, "is absent"
            return
    try:
        points = parse_text(read_bytes(files.place(text)))
    except ValueError as error:
        yield text, str(error)
        return
    data = read_bytes(files.place(text))
    if hashlib.sha256(data).hexdigest() != manifest.content["splits_sha256"]:
        yield text, f"its SHA-256 is not that of {MANIFEST}"
    elif splits_digest(points) != manifest.content["splits_sha256"]:
        yield text, "is not written as cdxmill writes it: it was changed"
    if read_bytes(files.place(sequence)) != format_sequence_file(points):
        yield sequence, f"has not the split points of {text}"
    if len(points) + 1 != len(manifest.names):
        yield text, f"has {len(points)} split points for {len(manifest.names)} shards"
        return
    yield from _beyond(manifest.names, points, reports)


def _beyond(
    names: Sequence[str], points: Sequence[bytes], reports: Mapping[str, CheckedShard | None]
) -> Iterator[tuple[str, str]]:
    for name, low, high in zip(names, [None, *points], [*points, None], strict=True):
        report = reports.get(name)
        if report is None or not report.lines:
            continue
        if low is not None and report.first < low:
            yield name, f"begins with {report.first[:80]!r}, which is below its split point {low[:80]!r}"
        if high is not None and report.last >= high:
            yield (
                name,
                f"ends with {report.last[:80]!r}, which is not below the next split point {high[:80]!r}",
            )


def check_locations(
    files: ClusterFiles, reports: Mapping[str, CheckedShard | None], base: PathOrUrl | None, exact: bool
) -> Iterator[tuple[str, str]]:
    """(file, what is wrong) where cluster.loc names not exactly the shards, or what it names is not they.

    With a `base` every shard has to have its first location there, and nothing is looked up. `exact`
    where it has to be in the order of the shards, and a file elsewhere on this machine is read.
    """
    rows, wrong = _rows(read_bytes(files.place(LOCATIONS)))
    yield from ((LOCATIONS, reason) for reason in wrong)
    names = [name for name, _ in rows]
    for name in sorted(reports.keys() - set(names)):
        yield LOCATIONS, f"{name} is not in it"
    for name in sorted(set(names) - reports.keys()):
        yield LOCATIONS, f"names {name}, which is no shard of this cluster"
    if len(set(names)) < len(names):
        yield LOCATIONS, "names a shard twice"
    if exact and not wrong and set(names) == set(reports) and names != list(reports):
        yield LOCATIONS, "is not in the order of the shards"
    if base is not None:
        for name, locations in rows:
            if locations[0] != join(absolute(base), name):
                yield LOCATIONS, f"{name} is not at {join(absolute(base), name)}, but at {locations[0]}"
        return
    named = [
        (name, resolved(files.cluster, place)) for name, places in rows for place in places if name in reports
    ]
    for (name, place), size in zip(named, ask_all(_size, [place for _, place in named]), strict=True):
        report = reports[name]
        if (reason := _wrong_place(files, name, place, size, report, exact)) is not None:
            yield LOCATIONS, f"{name} is not at {place}: {reason}"


def _rows(data: bytes) -> tuple[list[tuple[str, list[str]]], list[str]]:
    rows, wrong = [], []
    lines = data.split(b"\n")
    if lines.pop():
        wrong.append("its last line is cut")
    for number, line in enumerate(lines, 1):
        name, *places = line.decode("utf-8", "surrogateescape").split("\t")
        if places and all(places):
            rows.append((name, places))
        else:
            wrong.append(f"line {number} is no shard with its locations, {line[:80]!r}")
    return rows, wrong


def _size(place: str) -> int | None:
    try:
        found = status(place)
    except InputError:
        return None
    return None if found is None or found.is_folder else found.size


def _wrong_place(
    files: ClusterFiles, name: str, place: str, size: int | None, report: CheckedShard | None, exact: bool
) -> str | None:
    if size is None:
        return "no file can be read there (where the cluster was moved, publish it to itself)"
    if report is None or report.faults or same_location(place, files.shard_place(name)):
        return None
    if size and size != report.size:
        return f"the file there has {size} bytes, the shard {report.size}"
    if exact and not is_remote(place) and _sha256(place) != report.sha256:
        return "the file there is another one"
    return None


def _sha256(place: str) -> str:
    digest = hashlib.sha256()
    with open_ranges(place) as read_at:
        for piece in pieces(read_at):
            digest.update(piece)
    return digest.hexdigest()
