"""Exactly what `cdxmill verify` reports about the files beside the shards: each fault once, and nothing else."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from cdxmill.checks import beside
from cdxmill.commands.clusters.verify import verify
from cdxmill.errors import InputError, OutageError
from cdxmill.options.clusters import Verifying
from cdxmill.running.failures import Failure
from cdxmill.storage import location, patience
from cdxmill.storage.interface import Entry
from cdxmill.storage.location import Location

from ..storage.range_server import serving
from .checking import Told, found

NAMES = [f"cdx-{number:05d}.gz" for number in range(4)]
USUAL = [f"{name}\t{name}" for name in NAMES]


def told_of(cluster: Path, name: str) -> list[str]:
    """What is reported about one file, without the advice. Nothing else may be reported."""
    lines = found(cluster)
    start = f"{cluster / name}: "
    assert all(line.startswith(start) for line in lines), lines
    return [line.removeprefix(start).partition(";")[0] for line in lines]


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        (USUAL, []),
        (USUAL[1:], ["cdx-00000.gz is missing"]),
        (USUAL[::-1], ["is not in the order of the shards"]),
        ([*USUAL, USUAL[3]], ["names a shard twice", "is not in the order of the shards"]),
        ([*USUAL, "cdx-9.gz\tcdx-00001.gz"], ["names cdx-9.gz, which is not a shard of this cluster"]),
        (["no tab", *USUAL[::-1]], ["line 1 is not a shard with its locations, b'no tab'"]),
        ([*USUAL[:3], "cdx-00003.gz\tcopy.gz\tcdx-00003.gz"], []),
        (
            [*USUAL[:3], "cdx-00003.gz\tlong.gz"],
            ["cdx-00003.gz is not at {}/long.gz: that file has {long} bytes, the shard {size}"],
        ),
        (
            [*USUAL[:3], "cdx-00003.gz\tchanged.gz"],
            ["cdx-00003.gz is not at {}/changed.gz: that file has other contents"],
        ),
        (
            [*USUAL[:2], "cdx-00002.gz\tabsent.gz", "cdx-00003.gz\tdirectory"],
            [
                "cdx-00002.gz is not at {}/absent.gz: the file is missing or unreadable",
                "cdx-00003.gz is not at {}/directory: the file is missing or unreadable",
            ],
        ),
    ],
)
def test_each_wrong_row_of_cluster_loc_is_reported(rows: list[str], told: list[str], cluster: Path) -> None:
    data = (cluster / NAMES[3]).read_bytes()
    (cluster / "copy.gz").write_bytes(data)
    (cluster / "long.gz").write_bytes(data + b"x")
    (cluster / "changed.gz").write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    (cluster / "directory").mkdir()
    (cluster / "cluster.loc").write_text("".join(f"{row}\n" for row in rows))
    sizes = {"long": len(data) + 1, "size": len(data)}
    assert told_of(cluster, "cluster.loc") == [one.format(cluster, **sizes) for one in told]


@pytest.mark.parametrize(
    ("kept", "told"),
    [
        ([], ["names cdx-00009.gz, which is not a shard of this cluster"]),
        (["cdx-00008.gz"], ["names cdx-00009.gz, which is not a shard of this cluster"]),
        (["cdx-00009.gz"], []),
        (["cdx-00009.gz", "cdx-00000.gz"], []),
    ],
)
def test_a_row_for_a_shard_that_is_kept_for_readers_is_not_wrong(
    kept: list[str], told: list[str], cluster: Path
) -> None:
    """Nor is its file looked for."""
    (cluster / ".kept.json").write_text(json.dumps(dict.fromkeys(kept, 1.0)))
    (cluster / "cluster.loc").write_text("".join(f"{row}\n" for row in [*USUAL, "cdx-00009.gz\tabsent.gz"]))
    assert told_of(cluster, "cluster.loc") == told


def test_files_of_shards_that_are_kept_for_readers_are_not_foreign(cluster: Path) -> None:
    shutil.copyfile(cluster / NAMES[3], cluster / "cdx-00003-1.gz")
    shutil.copyfile(cluster / "part-00003", cluster / "part-00003-1")
    assert len(found(cluster)) == 2
    (cluster / ".kept.json").write_text('{"cdx-00003-1.gz": 1.0}')
    assert found(cluster) == []


def test_without_the_manifest_rows_may_have_any_order(cluster: Path) -> None:
    (cluster / "cluster.json").unlink()
    (cluster / "cluster.loc").write_text("".join(f"{row}\n" for row in reversed(USUAL)))
    assert found(cluster) == []


def test_a_copy_of_a_corrupt_shard_is_not_compared_with_it(cluster: Path) -> None:
    shutil.copyfile(cluster / NAMES[3], cluster / "copy.gz")
    (cluster / "cluster.loc").write_text("".join(f"{row}\n" for row in [*USUAL[:3], f"{NAMES[3]}\tcdx-00003.gz\tcopy.gz"]))  # fmt: skip
    (cluster / NAMES[3]).write_bytes((cluster / NAMES[3]).read_bytes()[:-9])
    assert not any("cluster.loc" in line for line in found(cluster))


def test_of_a_copy_on_a_server_only_the_size_is_compared(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in (("FIRST_WAIT", 0.001), ("TRIES", 2), ("MORE_TRIES", 2)):
        monkeypatch.setattr(patience, name, value)
    data = (cluster / NAMES[3]).read_bytes()
    with serving() as server:
        server.add("/same-size", bytes(len(data)))
        server.add("/longer", data + b"x")
        server.add("/busy", data).statuses = [503] * 99
        reasons = {
            "same-size": [],
            "longer": [f"cdx-00003.gz is not at {server.url}/longer: that file has {len(data) + 1} bytes, the shard {len(data)}"],
            "absent": [f"cdx-00003.gz is not at {server.url}/absent: the file is missing or unreadable"],
            "busy": [f"cannot look up cdx-00003.gz at {server.url}/busy: "],
        }  # fmt: skip
        for name, told in reasons.items():
            row = f"{NAMES[3]}\tcdx-00003.gz\t{server.url}/{name}"
            (cluster / "cluster.loc").write_text("".join(f"{one}\n" for one in [*USUAL[:3], row]))
            lines = told_of(cluster, "cluster.loc")
            assert len(lines) == len(told)
            assert all(line.startswith(start) for line, start in zip(lines, told, strict=True)), lines


@pytest.mark.parametrize(("size", "is_wrong"), [(0, False), (-1, True), (None, True)])
def test_a_copy_on_a_server_may_have_an_unknown_size(
    size: int | None, is_wrong: bool, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = beside._size
    monkeypatch.setattr(beside, "_size", lambda place: size if place.is_remote else local(place))
    rows = [*USUAL, f"{NAMES[3]}\thttps://index.example.org/copy.gz"]
    (cluster / "cluster.loc").write_text("".join(f"{row}\n" for row in rows[:3] + rows[4:]))
    told = told_of(cluster, "cluster.loc")
    assert [line.partition(":")[0] for line in told] == (["cdx-00003.gz is not at https"] if is_wrong else [])
    (cluster / "empty.gz").touch()
    (cluster / "cluster.loc").write_text("".join(f"{row}\n" for row in [*USUAL[:3], f"{NAMES[3]}\tempty.gz"]))
    (line,) = told_of(cluster, "cluster.loc")
    assert line == f"cdx-00003.gz is not at {cluster}/empty.gz: that file has other contents"


def test_a_copy_that_cannot_be_looked_up_is_an_outage(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    status = Location.status

    def failing(place: Location) -> Entry | None:
        if place.name == "copy.gz":
            raise OutageError(place.text, "the disk fails", "check the disk")
        if place.name == "other.gz":
            raise InputError(place.text, "is too long")
        return status(place)

    monkeypatch.setattr(Location, "status", failing)
    rows = [*USUAL[:2], f"{NAMES[2]}\tother.gz", f"{NAMES[3]}\tcopy.gz"]
    (cluster / "cluster.loc").write_text("".join(f"{row}\n" for row in rows))
    told = Told()
    verify(Verifying(cluster), told)
    path = f"{cluster}/cluster.loc"
    away = f"cdx-00002.gz is not at {cluster}/other.gz: the file is missing or unreadable"
    assert told.items == [
        Failure(path, None, away, "if the cluster was moved, publish it to itself"),
        Failure(
            path,
            None,
            f"cannot look up cdx-00003.gz at {cluster}/copy.gz: the disk fails",
            "check the disk",
            True,
        ),
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", []),
        (b"a\t/a\nb\t/b\thttp://h/b\n", []),
        (b"a\t/a\na\t/a\n", ["line 2: out of order"]),
        (b"b\t/b\na\t/a\nb\t/b\n", ["line 2: out of order"]),
        (b"b\t/b\na\t/a\nA\t/a\n", ["line 2: out of order", "line 3: out of order"]),
        (b"a\nb\t\nc\t/c\t\n\t/d\n", [f"line {n}: expected a file name, a tab and a path or URL" for n in (1, 2, 3, 4)]),
    ],
)  # fmt: skip
def test_each_wrong_line_of_archives_tsv_is_reported(content: bytes, told: list[str], cluster: Path) -> None:
    (cluster / "archives.tsv").write_bytes(content)
    assert told_of(cluster, "archives.tsv") == told


@pytest.mark.parametrize(
    "name", ["splits.txt", "splits.seq", "cluster.idx", "cluster.summary", "cluster.loc"]
)
def test_each_file_that_is_missing_is_reported_once(name: str, cluster: Path) -> None:
    (cluster / name).unlink()
    assert sum(f"{name}: is missing" in line for line in found(cluster)) == 1
    (cluster / "cluster.json").unlink()
    assert not any(f"{name}: is missing" in line for line in found(cluster))


def test_the_first_place_where_the_two_indexes_differ_is_reported_alone(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are compared in pieces, and the place is the start of one."""
    monkeypatch.setattr(location, "_FILE_PIECE", 100)
    data = (cluster / "cluster.idx").read_bytes()
    (cluster / "cluster.json").unlink()
    last = (len(data) - 1) // 100 * 100
    assert last > 300
    for changed, place in (
        (data, None),
        (b"y" + data[1:-1] + b"y", 0),
        (data[:250] + b"y" * 300 + data[550:], 200),
        (data[:-1], last),
        (data[:300], 300),
        (data + b"x", last),
    ):
        (cluster / "cluster.summary").write_bytes(changed)
        wanted = [] if place is None else [f"differs from cluster.idx after byte {place}"]
        assert told_of(cluster, "cluster.summary") == wanted
