"""What `publish` checks before it writes, in each case: the parts of the cluster, and what the target has."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdxmill.commands.clusters.publish_checks import PublishTarget, Shard, Way, check_parts, find_shards
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import InputError, UsageError
from cdxmill.running.failures import Failures
from cdxmill.storage.location import Location, locate

from ..material.cdx_files import write_plain

SHA = "5" * 64


def shard(number: int = 0, size: int = 10, sha256: str = SHA, blocks: int | None = None) -> Shard:
    return Shard(f"cdx-0000{number}.gz", f"part-0000{number}", size, sha256, blocks)


OVERLAY = Shard("overlay-00001-1.gz", "overlay-00001-1.idx", 10, SHA, 1)


def row(key: str, place: str = "0 10", number: int = 0, name: str = "") -> str:
    """A line of a part: a block of the shard with this number, its offset and its length."""
    return "\t".join([key, name or f"cdx-0000{number}.gz", *place.split()]) + "\n"


@pytest.mark.parametrize(
    ("shards", "parts", "blocks"),
    [
        ([shard()], [row("a", "0 4") + row("b", "4 6")], 2),
        ([shard()], [row("a", "0 4") + row("a", "4 6")], 2),  # many captures of one page
        ([shard(), shard(1)], [row("a"), row("a", number=1)], 2),
        ([shard(0, 20), shard(1)], ["", row("a", number=1)], 1),  # a shard without lines
        ([shard(blocks=1), shard(1, 20, blocks=0)], [row("a"), ""], 1),
        ([shard(), OVERLAY], [row("b"), row("a", name=OVERLAY.name)], 2),  # its keys begin again
    ],
)
def test_parts_that_fill_their_shards_in_order_are_right(
    shards: list[Shard], parts: list[str], blocks: int, tmp_path: Path
) -> None:
    for one, part in zip(shards, parts, strict=True):
        (tmp_path / one.part).write_text(part)
    assert check_parts(locate(tmp_path), shards) == blocks


@pytest.mark.parametrize(
    ("shards", "parts", "reason"),
    [
        ([shard()], [row("b", "0 4") + row("a", "4 6")], "line 2: out of order"),
        ([shard(), shard(1)], [row("b"), row("a", number=1)], "line 1: out of order"),
        ([shard()], [row("a", number=1)], "line 1: not a block of cdx-00000.gz"),
        ([shard()], [row("a", "1 9")], "line 1: the block does not start where the previous one ends"),
        ([shard()], [row("a", "0 4") + row("b", "3 7")], "line 2: the block does not start where"),
        ([shard()], [row("a", "0 4") + row("b", "5 5")], "line 2: the block does not start where"),
        ([shard()], [row("a", "0 9")], "its blocks have 9 bytes, but cdx-00000.gz has 10"),
        ([shard()], [row("a", "0 11")], "its blocks have 11 bytes, but cdx-00000.gz has 10"),
        ([shard(blocks=2)], [row("a")], "it has 1 lines, but cluster.json has 2 blocks"),
        ([shard(blocks=0)], [row("a")], "it has 1 lines, but cluster.json has 0 blocks"),
        ([shard(blocks=1)], [""], "it has 0 lines, but cluster.json has 1 blocks"),
        ([shard()], [row("a")[:-1]], "the last line is truncated"),
        ([shard()], [row("a", "0 10 1")], "line 1: expected 4 columns"),
        ([shard()], ["\n"], "line 1: not a line of a ZipNum index"),
        # the first of several is reported
        ([shard(blocks=7)], [row("b", "0 4 1") + row("a", "5 5")], "line 1: expected 4 columns"),
        ([shard(blocks=7)], [row("b", "0 4") + row("a", "5 5", 1)], "line 2: out of order"),
        ([shard(blocks=7)], [row("a", "0 9")], "its blocks have 9 bytes"),
        ([shard(blocks=7)], [row("a", "0 4") + row("b", "4 9")[:-1]], "the last line is truncated"),
        ([shard(), OVERLAY], [row("b"), row("a", number=1)], f"line 1: not a block of {OVERLAY.name}"),
    ],
)
def test_a_part_that_is_wrong_is_reported(
    shards: list[Shard], parts: list[str], reason: str, tmp_path: Path
) -> None:
    for one, part in zip(shards, parts, strict=True):
        (tmp_path / one.part).write_text(part)
    with pytest.raises(InputError) as raised:
        check_parts(locate(tmp_path), shards)
    assert raised.value.reason.startswith(reason)
    assert raised.value.path == str(tmp_path / shards[-1].part)
    assert raised.value.hint == "build the cluster again"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster of two shards that no test changes."""
    directory = tmp_path_factory.mktemp("made")
    cdx = write_plain(directory / "a.cdxj", [b"com,a)/ 2020 {}", b"com,b)/ 2020 {}"])
    options = ZipnumOptions(shards=2, points=(b"com,b)/",), quiet=True)
    build_cluster([str(cdx)], directory / "C", options, Failures())
    return directory / "C"


@pytest.fixture
def cluster(made: Path, tmp_path: Path) -> Path:
    """A copy of it, with what says that it is finished, and its split points."""
    directory = tmp_path / "C"
    directory.mkdir()
    for name in (
        "cdx-00000.gz",
        "cdx-00001.gz",
        "part-00000",
        "part-00001",
        "cluster.json",
        "splits.txt",
        "splits.seq",
    ):
        (directory / name).write_bytes((made / name).read_bytes())
    return directory  # fmt: skip


def names(cluster: Path, *, unfinished: bool = False) -> list[str]:
    return [one.name for one in find_shards(locate(cluster), unfinished)]


@pytest.mark.parametrize("unfinished", [True, False])
def test_the_shards_of_a_finished_cluster_are_those_of_its_manifest(unfinished: bool, cluster: Path) -> None:
    (cluster / "cdx-00002.gz").write_bytes(b"of somebody")
    (cluster / "part-00002").write_bytes(b"")
    found = find_shards(locate(cluster), unfinished)
    listed = json.loads((cluster / "cluster.json").read_bytes())["shards"]
    assert [(one.name, one.bytes, one.sha256, one.blocks) for one in found] == [
        (one["name"], one["bytes"], one["sha256"], one["blocks"]) for one in listed
    ]
    assert [one.part for one in found] == ["part-00000", "part-00001"]


def test_without_a_manifest_the_shards_are_those_that_are_there(cluster: Path) -> None:
    (cluster / "cluster.json").unlink()
    (cluster / "splits.txt").write_bytes(b"whatever")
    size = (cluster / "cdx-00001.gz").stat().st_size
    assert find_shards(locate(cluster), True)[1] == ("cdx-00001.gz", "part-00001", size, "", None)
    with pytest.raises(UsageError, match=r"not a finished cluster \(no cluster\.json\); finish it"):
        names(cluster)
    (cluster / "cdx-00000.gz").rename(cluster / "cdx-00002.gz")
    with pytest.raises(InputError, match=r"cdx-00000\.gz is missing; build the cluster again"):
        names(cluster, unfinished=True)


@pytest.mark.parametrize(
    ("name", "content", "reason"),
    [
        ("cdx-00001.gz", None, "cdx-00001.gz is missing"),
        ("part-00001", None, "part-00001 is missing"),
        ("cdx-00001.gz", b"short", "cdx-00001.gz has 5 bytes, but cluster.json has "),
        ("splits.txt", b"a\n", "splits.txt or splits.seq has other split points than cluster.json"),
        ("splits.txt", None, "splits.txt or splits.seq has other split points than cluster.json"),
        ("splits.seq", None, "splits.txt or splits.seq has other split points than cluster.json"),
    ],
)
def test_a_cluster_without_one_of_its_files_is_reported(
    name: str, content: bytes | None, reason: str, cluster: Path
) -> None:
    (cluster / name).unlink()
    if content is not None:
        (cluster / name).write_bytes(content)
    with pytest.raises(InputError) as raised:
        names(cluster)
    assert raised.value.path == str(cluster)
    assert raised.value.reason.startswith(reason)
    assert raised.value.hint == "build the cluster again"


def test_split_points_may_be_missing_as_after_a_job(cluster: Path) -> None:
    for name in ("splits.txt", "splits.seq"):
        (cluster / name).unlink()
    assert names(cluster) == ["cdx-00000.gz", "cdx-00001.gz"]


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "D").mkdir()
    return tmp_path / "D"


def fill(target: Path, files: dict[str, object]) -> Location:
    """Write files; a number is that of bytes, and what is not text is written as JSON."""
    for name, content in files.items():
        if isinstance(content, int):
            (target / name).write_bytes(bytes(content))
        else:
            (target / name).write_text(content if isinstance(content, str) else json.dumps(content))
    return locate(target)


ZERO, ONE = "cdx-00000.gz", "cdx-00001.gz"
BOTH = [shard(), shard(1, 20, "6" * 64)]


@pytest.mark.parametrize(
    ("noted", "sizes", "present", "surplus"),
    [
        ({ZERO: SHA}, {ZERO: 10}, [ZERO], []),
        ({ZERO: SHA, ONE: "6" * 64}, {ZERO: 10, ONE: 20}, [ZERO, ONE], []),
        ({ZERO: SHA}, {ZERO: 9}, [], [ZERO]),  # of another size
        ({ZERO: SHA}, {}, [], [ZERO]),  # lost
        ({ZERO: "6" * 64}, {ZERO: 10}, [], [ZERO]),  # of another cluster
        ({}, {ZERO: 10}, [], []),
        ({ZERO: ""}, {ZERO: 10}, [], [ZERO]),  # not known to be whole
        ({ZERO: SHA, "cdx-00002.gz": SHA}, {ZERO: 10, "cdx-00002.gz": 3}, [ZERO], ["cdx-00002.gz"]),
    ],
)
def test_shards_that_are_known_and_have_their_size_are_not_copied(
    noted: dict[str, str], sizes: dict[str, object], present: list[str], surplus: list[str], target: Path
) -> None:
    there = PublishTarget(fill(target, {".published.json": noted, **sizes}))
    assert there.present(BOTH) == {one.name: one.sha256 for one in BOTH if one.name in present}
    assert there.surplus(BOTH, index_only=True) == surplus
    assert there.surplus(BOTH) == [name for name in surplus if name not in (ZERO, ONE)]


def test_a_shard_whose_sum_is_not_known_is_always_copied(target: Path) -> None:
    there = PublishTarget(fill(target, {".published.json": {ZERO: ""}, ZERO: 10}))
    assert there.present([shard(sha256="")]) == {}


def test_shards_of_a_finished_cluster_are_known(cluster: Path) -> None:
    there, shards = PublishTarget(locate(cluster)), find_shards(locate(cluster), False)
    assert there.present(shards) == {one.name: one.sha256 for one in shards}
    assert there.surplus(shards[:1]) == [ONE]
    (cluster / "cluster.json").write_text("{")
    assert PublishTarget(locate(cluster)).known == {}


@pytest.mark.parametrize(
    "content", ["mine", "[]", "[" * 100_000, "5"], ids=["text", "list", "deep", "number"]
)
def test_a_list_of_copied_shards_of_somebody_else_is_left_alone(content: str, target: Path) -> None:
    with pytest.raises(UsageError, match=r"D: has \.published\.json, and no cluster\.json says"):
        PublishTarget(fill(target, {".published.json": content}))


OF_ANOTHER = "of another cluster"


@pytest.mark.parametrize(
    ("files", "way"),
    [
        ({}, Way.THERE),
        ({"notes.txt": "mine", "cdx-1.gz": "mine"}, Way.THERE),
        ({ZERO: 10}, "has cdx-00000.gz, and no cluster.json"),
        ({"part-00009": ""}, "has part-00009, and no cluster.json"),
        ({"cluster.loc": "", "all.idx": ""}, "has all.idx, and no cluster.json"),
        ({"archives.tsv": ""}, "has archives.tsv, and no cluster.json"),
        ({"splits.txt": "other"}, "has splits.txt, and no cluster.json"),
        ({"splits.txt": "those"}, Way.THERE),
        ({"splits.seq": "any"}, Way.THERE),  # the source has none, so none is written
        # a copy that was not finished
        ({".published.json": {ZERO: SHA}, ZERO: 10, "cluster.idx": ""}, Way.THERE),
        ({".published.json": {ZERO: ""}, ZERO: 10}, Way.THERE),
        ({".published.json": {ZERO: "6" * 64}, ZERO: 10}, f"has cdx-00000.gz {OF_ANOTHER}; use --replace"),
        ({".published.json": {"cdx-00002.gz": SHA, "cdx-00003.gz": SHA}}, f"has cdx-00002.gz {OF_ANOTHER}; use --replace"),
        ({".published.json": {"cdx-00002.gz": ""}}, Way.THERE),
    ],
)  # fmt: skip
def test_where_a_cluster_is_written_depends_on_what_is_there(
    files: dict[str, object], way: Way | str, target: Path, tmp_path: Path
) -> None:
    (tmp_path / "S").mkdir()
    there, source = PublishTarget(fill(target, files)), fill(tmp_path / "S", {"splits.txt": "those"})
    if isinstance(way, Way):
        assert there.way(source, BOTH, False, False) is way
        return
    with pytest.raises(UsageError, match=way):
        there.way(source, BOTH, False, False)
    if OF_ANOTHER in way:
        assert there.way(source, BOTH, False, True) is Way.THERE


def test_a_copy_of_a_cluster_whose_sums_are_not_known_is_continued_from_any(target: Path) -> None:
    there = PublishTarget(fill(target, {".published.json": {ZERO: SHA}, ZERO: 10}))
    assert there.way(locate(target), [shard(sha256="")], False, False) is Way.THERE


@pytest.mark.parametrize("is_finished", [True, False])
def test_an_index_is_not_written_beside_shards_that_readers_would_use(
    is_finished: bool, cluster: Path, target: Path
) -> None:
    if is_finished:
        for path in cluster.iterdir():
            (target / path.name).write_bytes(path.read_bytes())
    else:
        fill(target, {".published.json": {ONE: "6" * 64, "cdx-00007.gz": SHA}, ONE: 19, "cdx-00007.gz": 3})
    why = f"D: has cdx-00001.gz {OF_ANOTHER}, and readers would use it; omit --index-only, use --replace"
    shards = [find_shards(locate(cluster), False)[0], shard(1)] if is_finished else BOTH
    there = PublishTarget(locate(target))
    with pytest.raises(UsageError, match=why):
        there.way(locate(cluster), shards, True, False)
    for index_only, replace in ((False, True), (True, True), (False, False)):
        if is_finished or index_only or replace:
            there.way(locate(cluster), shards, index_only, replace)
    if not is_finished:
        (target / ONE).unlink()
        (target / "cdx-00007.gz").unlink()
        with pytest.raises(UsageError, match=f"D: has cdx-00001.gz {OF_ANOTHER}; use --replace, or"):
            PublishTarget(locate(target)).way(locate(cluster), BOTH[:1], True, False)


def test_a_finished_cluster_is_repaired_kept_or_replaced(made: Path, cluster: Path, tmp_path: Path) -> None:
    shards = find_shards(locate(made), False)
    assert PublishTarget(locate(made)).way(locate(cluster), shards, False, False) is Way.NOTHING
    assert PublishTarget(locate(cluster)).way(locate(made), shards, False, False) is Way.THERE  # no index
    job = tmp_path / "job"
    job.mkdir()
    for name in ("cdx-00000.gz", "part-00000"):
        (job / name).write_bytes((made / name).read_bytes())
    for source in (locate(job), fill(job, {"cluster.json": "{}"})):
        with pytest.raises(UsageError, match=r"C: already has another cluster; --replace builds"):
            PublishTarget(locate(made)).way(source, shards, False, False)
        assert PublishTarget(locate(made)).way(source, shards, False, True) is Way.BESIDE
    (cluster / "cdx-00002.gz").write_bytes(b"mine")
    with pytest.raises(UsageError, match=r"cdx-00002\.gz is not of the cluster there"):
        PublishTarget(locate(cluster)).way(locate(job), shards, False, True)


def test_the_shards_of_an_index_are_elsewhere(made: Path, tmp_path: Path) -> None:
    index = tmp_path / "I"
    index.mkdir()
    for path in made.iterdir():
        if path.is_file() and not path.name.startswith("cdx-"):
            (index / path.name).write_bytes(path.read_bytes())
    shards = find_shards(locate(made), False)
    assert PublishTarget(locate(index)).way(locate(made), shards, True, False) is Way.NOTHING
    assert PublishTarget(locate(index)).way(locate(made), shards, False, False) is Way.THERE
