"""What `verify` returns and says of a cluster, by what was there to check it with."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.clusters.verify import Verified, verify
from cdxmill.errors import UsageError
from cdxmill.options.clusters import Verifying

from ..material.cdx_files import write_plain
from .checking import NUMLINES, SHARDS, Told, found

EXACT = "every byte was checked"
NOT_EXACT = "lines, offsets and order were checked (a check of every byte needs cluster.json)"
NOT_PROVEN = f"{NOT_EXACT}; it is not proven that the cluster is complete"
WHAT = "1 line in 2 blocks, 3 shards, 4 B"


@pytest.mark.parametrize(
    ("exact", "compared", "records", "faults", "text"),
    [
        (True, False, None, 0, f"{WHAT}: {EXACT}"),
        (True, True, None, 0, f"{WHAT}: {EXACT}, lines compared with the inputs"),
        (False, False, None, 0, f"{WHAT}: {NOT_PROVEN}"),
        (False, True, None, 0, f"{WHAT}: {NOT_EXACT}, lines compared with the inputs"),
        (True, False, 0, 0, f"{WHAT}: {EXACT}, 0 records read"),
        (True, False, 1, 2, f"{WHAT}: {EXACT}, 1 record read; 2 errors found"),
        (True, True, 2, 1, f"{WHAT}: {EXACT}, lines compared with the inputs, 2 records read; 1 error found"),
        (False, False, None, 1, f"{WHAT}: {NOT_PROVEN}; 1 error found"),
    ],
)
def test_a_summary_says_what_was_checked_and_what_was_not(
    exact: bool, compared: bool, records: int | None, faults: int, text: str
) -> None:
    assert str(Verified(3, 1, 2, 4, exact, compared, records, faults)) == text


def verified(cluster: Path, told: Told, **options: Any) -> Verified:
    return verify(Verifying(cluster, processes=1, **options), told)


@pytest.mark.parametrize("has_manifest", [True, False])
@pytest.mark.parametrize("is_compared", [True, False])
def test_the_result_has_the_numbers_of_a_whole_cluster(
    has_manifest: bool, is_compared: bool, made: Path, cluster: Path
) -> None:
    size = sum(path.stat().st_size for path in cluster.glob("cdx-*.gz"))
    blocks = (cluster / "cluster.idx").read_bytes().count(b"\n")
    if not has_manifest:
        (cluster / "cluster.json").unlink()
    against = {"against": [str(made / "inputs")]} if is_compared else {}
    done = verified(cluster, told := Told(), **against)
    assert told.lines == []
    assert done == Verified(SHARDS, 900, blocks, size, has_manifest, is_compared, None, 0)
    assert blocks >= 900 / NUMLINES


def test_inputs_may_be_named_in_any_way_that_finds_them(made: Path, cluster: Path) -> None:
    inputs = made / "inputs"
    for against in (str(inputs), [str(inputs)], [f"{inputs}/*.gz"], sorted(inputs.iterdir())):
        assert found(cluster, against=against) == []
    assert found(cluster, against=[f"{inputs}/0.cdxj.gz"]) != []
    (cluster / "empty").mkdir()
    assert "no CDX files" in found(cluster, against=[str(cluster / "empty")])[0]


@pytest.mark.parametrize("what", ["shard", "order"])
def test_a_cluster_that_is_not_valid_is_not_compared(what: str, made: Path, cluster: Path) -> None:
    shard, other = cluster / "cdx-00000.gz", cluster / "cdx-00001.gz"
    if what == "shard":
        shard.write_bytes(shard.read_bytes()[:-9])
    else:  # each shard and its part are right, but not where they are
        for one, two in ((shard, other), (cluster / "part-00000", cluster / "part-00001")):
            first, second = one.read_bytes(), two.read_bytes()
            one.write_bytes(second.replace(b"cdx-00001", b"cdx-00000"))
            two.write_bytes(first.replace(b"cdx-00000", b"cdx-00001"))
        for name in ("cluster.json", "cluster.idx", "cluster.summary"):
            (cluster / name).unlink()
        parts = sorted(cluster.glob("part-*"))
        (cluster / "cluster.idx").write_bytes(b"".join(part.read_bytes() for part in parts))
    done = verified(cluster, told := Told(), against=[str(made / "inputs")])
    assert not done.compared
    assert done.faults > 0
    note = "note: lines were not compared with the inputs because some shards are corrupt or out of order"
    assert told.lines.count(note) == 1
    assert not any("missing; the first one" in line for line in told.lines)


def test_a_corrupt_manifest_is_one_fault_and_nothing_else_is_guessed(cluster: Path) -> None:
    write_plain(cluster / "splits.txt", [b"a"])
    (cluster / "cluster.json").write_bytes(b"{")
    done = verified(cluster, told := Told())
    assert (done.exact, done.faults) == (False, len(told.lines))
    assert [line for line in told.lines if "cluster.json" not in line] == []
    (cluster / "cluster.json").unlink()
    assert any("splits.txt: has split points for 2 shards" in line for line in found(cluster))


def test_a_file_that_cannot_be_read_ends_only_its_own_check(cluster: Path) -> None:
    for name in ("cluster.loc", "splits.txt"):
        (cluster / name).unlink()
        (cluster / name).mkdir()
    (cluster / "cluster.summary").write_bytes(b"other\n")
    told = "\n".join(found(cluster))
    for name in ("cluster.loc", "splits.txt", "cluster.summary"):
        assert f"/{name}" in told


def test_a_sample_needs_a_place_of_the_archives(
    pywb_warcs: Path, tmp_path: Path, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shutil.copy(pywb_warcs / "example.warc.gz", "example.warc.gz")
    assert main(["build", "-q", "-p", "1", "-s", "1", "-o", "B", "example.warc.gz"]) == 0
    built = tmp_path / "B"
    for options, records in (
        ({}, None),
        ({"sample": 2}, 2),
        ({"sample": 9}, 3),
        ({"archives": str(tmp_path)}, 3),
        ({"archives": str(tmp_path), "sample": 1}, 1),
    ):
        done = verified(built, told := Told(), **options)
        assert (done.records, told.lines) == (records, [])
    (built / "archives.tsv").unlink()
    with pytest.raises(UsageError) as raised:
        verified(built, Told(), sample=2)
    assert str(raised.value) == f"{built}: has no archives.tsv, so --sample needs --archives LOCATION"
    assert verified(built, Told(), archives=str(tmp_path), sample=2).records == 2


def test_a_dictionary_that_cannot_be_read_is_wrong_usage(cluster: Path, tmp_path: Path) -> None:
    write_plain(tmp_path / "d", [b"no dictionary"])
    with pytest.raises(UsageError, match="--dictionary: "):
        verified(cluster, Told(), dictionary=tmp_path / "d")
