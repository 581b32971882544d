"""What `publish` writes, copies and leaves as it is, with clusters of a few lines."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import pytest

from cdxmill.cluster.output import place_of
from cdxmill.cluster.switch import discard, new_place
from cdxmill.commands.clusters import publish as publishing
from cdxmill.commands.clusters.publish import PublishSummary, _ClusterCopy, _copy, publish
from cdxmill.commands.clusters.publish_checks import Shard
from cdxmill.commands.clusters.verify import verify
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.collections.add import add
from cdxmill.errors import InputError, StoppedError, UsageError
from cdxmill.options.clusters import Publishing, Verifying
from cdxmill.options.collections import Adding
from cdxmill.running.failures import Failures
from cdxmill.storage.location import Location, locate

from ..material.cdx_files import write_plain

LINES = [b"com,%c)/ 2020 {}" % letter for letter in b"abcd"]
BESIDE = ["cluster.idx", "cluster.json", "cluster.loc", "cluster.summary", "splits.seq", "splits.txt"]


def make(directory: Path, lines: list[bytes] = LINES, points: tuple[bytes, ...] = (b"com,c)/",)) -> Path:
    cdx = write_plain(directory.with_suffix(".cdxj"), lines)
    options = ZipnumOptions(shards=len(points) + 1, points=points, block_lines=1, quiet=True)
    build_cluster([str(cdx)], directory, options, Failures())
    return directory


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """C, with two shards of two blocks each, in the current directory."""
    monkeypatch.chdir(tmp_path)
    return make(Path("C"))


def published(source: str = "C", target: str = "D", **options: object) -> PublishSummary:
    asked = Publishing(source, target, processes=1, **options)  # type: ignore[arg-type]
    return publish(asked)


def inodes(target: str = "D") -> dict[str, int]:
    return {path.name: path.stat().st_ino for path in Path(target).iterdir()}


def age() -> None:
    """Let the files of D be old."""
    for path in Path("D").iterdir():
        os.utime(path, (5, 5))


def written_since() -> list[str]:
    """The files of D that are not old."""
    return sorted(path.name for path in Path("D").iterdir() if path.stat().st_mtime != 5)


def test_a_summary_has_what_was_published_and_copied(cluster: Path) -> None:
    size = sum(path.stat().st_size for path in cluster.glob("cdx-*"))
    assert published() == PublishSummary(shards=2, copied=2, blocks=4, bytes=size)
    assert published() == PublishSummary(shards=2, copied=0, blocks=4, bytes=size)
    Path("D/cdx-00001.gz").unlink()
    again = published()
    assert again.copied == 1
    assert str(again) == f"2 shards ({size} B, 4 blocks), 1 copied"
    assert str(again._replace(shards=1, blocks=1, copied=0)) == f"1 shard ({size} B, 1 block), 0 copied"


def test_overlays_are_published_with_their_index_and_keys(cluster: Path) -> None:
    write_plain(Path("new.cdxj"), [b"com,b)/new 2021 {}", b"com,d)/new 2021 {}"])
    add(Adding("C", ["new.cdxj"], cdx=True, mode="overlay", processes=1), Failures())
    names = {path.name for path in cluster.glob("overlay-*")}
    assert {Path(name).suffix for name in names} == {".gz", ".idx", ".keys"}
    before = (cluster / "cluster.idx").read_bytes()
    assert published("C", "C").copied == 0
    assert (cluster / "cluster.idx").read_bytes() == before
    done = published()
    assert (done.shards, done.copied, done.blocks) == (3, 3, 5)
    for name in (*names, "cluster.idx", "cluster.json"):
        assert Path("D", name).read_bytes() == (cluster / name).read_bytes()
    assert Path("D/cluster.loc").read_text().count("\toverlay") == 0
    assert Path("D/cluster.loc").read_text().count("overlay-") == 2
    found = verify(Verifying("D", processes=1), Failures(printed=False))
    assert (found.faults, found.lines) == (0, 6)


@pytest.mark.parametrize("target", ["C", "C/", "C/../C", "file"])
def test_to_itself_a_cluster_gets_only_its_index(target: str, cluster: Path) -> None:
    before = {name: (cluster / name).read_bytes() for name in BESIDE}
    for name in ("cluster.idx", "cluster.summary", "cluster.loc"):
        (cluster / name).unlink()
    shards = {name: ino for name, ino in inodes("C").items() if name.startswith(("cdx-", "part-"))}
    done = published("C", cluster.absolute().as_uri() if target == "file" else target)
    assert (done.shards, done.copied, done.blocks) == (2, 0, 4)
    assert {name: (cluster / name).read_bytes() for name in BESIDE} == before
    assert inodes("C").items() >= shards.items()
    assert not (cluster / ".published.json").exists()


def test_a_cluster_below_the_directory_that_is_named_stays_there(cluster: Path) -> None:
    Path("COLL").mkdir()
    cluster.rename("COLL/indexes")
    assert published("COLL", "COLL").copied == 0
    assert Path("COLL/metadata.yaml").read_text() == 'title: "COLL"\n'
    assert list(Path("COLL").glob("cdx-*")) == []


@pytest.mark.parametrize(
    ("change", "options", "written"),
    [
        (lambda: None, {}, []),
        (lambda: Path("D/cluster.loc").write_text("cdx-00000.gz\tx\ncdx-00001.gz\ty\n"), {}, ["cluster.loc"]),
        (lambda: None, {"location": "https://host/c"}, ["cluster.loc"]),
        (lambda: Path("C/archives.tsv").write_text("a.warc\t/a.warc\n"), {}, ["archives.tsv"]),
        (lambda: Path("D/archives.tsv").unlink(), {}, ["archives.tsv"]),
        (lambda: Path("C/archives.tsv").unlink(), {}, []),
        (lambda: None, {"title": "Other"}, ["metadata.yaml"]),
    ],
)
def test_of_a_published_cluster_only_what_differs_is_written(
    change: Callable[[], object], options: dict[str, str], written: list[str], cluster: Path
) -> None:
    Path("C/archives.tsv").write_text("a.warc\t/one/a.warc\n")
    assert published().copied == 2
    change()
    age()
    assert published(**options).copied == 0
    assert written_since() == written
    listed = Path("C/archives.tsv")
    if listed.exists():
        assert Path("D/archives.tsv").read_bytes() == listed.read_bytes()


@pytest.mark.parametrize(
    ("target", "title", "path", "text"),
    [
        ("web", None, "web/metadata.yaml", 'title: "web"\n'),
        ("web/indexes", None, "web/metadata.yaml", 'title: "web"\n'),
        ("web/indexes/x", None, "web/indexes/x/metadata.yaml", 'title: "x"\n'),
        ("web", 'A "b"\té', "web/metadata.yaml", 'title: "A \\"b\\"\\té"\n'),
        ("web/indexes", "", "web/metadata.yaml", 'title: ""\n'),
    ],
)
def test_a_title_is_written_beside_the_index_and_kept(
    target: str, title: str | None, path: str, text: str, cluster: Path
) -> None:
    published(target=target, title=title)
    assert [str(one) for one in Path().glob("**/metadata.yaml")] == [path]
    assert Path(path).read_text() == text
    Path(path).write_text("title: mine\n")
    published(target=target)
    assert Path(path).read_text() == "title: mine\n"
    published(target=target, title="")
    assert Path(path).read_text() == 'title: ""\n'


@pytest.mark.parametrize("missing", [[], ["splits.txt", "splits.seq"]])
def test_split_points_are_copied_if_there_are_any(missing: list[str], cluster: Path) -> None:
    for name in missing:
        (cluster / name).unlink()
    published()
    beside = {path.name for path in Path("D").iterdir() if not path.name.startswith(("cdx-", "part-"))}
    assert beside == {*BESIDE, "metadata.yaml"} - {*missing}


def test_an_unfinished_cluster_is_never_a_finished_one_elsewhere(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cluster / "cluster.json").unlink()
    assert published(unfinished=True).copied == 2
    assert not Path("D/cluster.json").exists()
    sums = {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in Path("C").glob("cdx-*")}
    noted = Path("D/.published.json").read_text()
    assert all(f'"{name}": "{digest}"' in noted for name, digest in sums.items())
    assert published(unfinished=True).copied == 2  # nothing tells whether the shards are the same
    monkeypatch.setattr(publishing, "is_switched", lambda directory: True)
    with pytest.raises(UsageError, match="not a finished cluster"):  # its manifest is on the way
        published(unfinished=True)


@pytest.fixture
def other(cluster: Path) -> Path:
    """D, a copy of C; and C with another second shard."""
    published()
    (cluster / ".finished.json").unlink()
    for path in cluster.iterdir():
        path.unlink()
    make(cluster, [*LINES, b"com,e)/ 2020 {}", b"com,f)/ 2020 {}"], (b"com,c)/", b"com,e)/", b"com,f)/"))
    return cluster


def failing(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Let no shard of this name be copied."""
    copy = publishing._copy

    def fail(task: _ClusterCopy) -> str:
        if task.shard.name == name:
            raise InputError(str(task.source), "cannot be read")
        return copy(task)

    monkeypatch.setattr(publishing, "_copy", fail)


def test_a_replacement_that_failed_continues(other: Path) -> None:
    """What is the same has a second name, and what was copied is not copied again."""
    linked = {name: inodes()[name] for name in ("cdx-00000.gz", "cdx-00001.gz")}
    whole = {path.name: path.read_bytes() for path in Path("D").iterdir()}
    with pytest.raises(UsageError, match="D: already has another cluster"):
        published()
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, "cdx-00003.gz")
        with pytest.raises(InputError, match="cannot be read"):
            published(replace=True)
    assert {path.name: path.read_bytes() for path in Path("D").iterdir()} == whole
    done = published(replace=True)
    assert (done.shards, done.copied) == (4, 1)
    assert inodes().items() >= linked.items()
    assert [path.name for path in Path().iterdir() if path.name.startswith(".D")] == []
    assert verify(Verifying("D", processes=1), Failures(printed=False)).faults == 0


def test_a_replacement_by_another_cluster_begins_again(other: Path) -> None:
    with pytest.MonkeyPatch.context() as patch:
        failing(patch, "cdx-00003.gz")
        with pytest.raises(InputError):
            published(replace=True)
    make(Path("E"), [b"org,a)/ 2020 {}", b"org,b)/ 2020 {}"], (b"org,b)/",))
    assert published("E", replace=True) == published("E", "F")
    assert {path.name for path in Path("D").glob("*-0*")} == {path.name for path in Path("F").glob("*-0*")}
    assert verify(Verifying("D", processes=1), Failures(printed=False)).faults == 0


def test_for_an_index_alone_nothing_of_the_old_cluster_is_kept(other: Path) -> None:
    done = published(replace=True, index_only=True)
    assert (done.shards, done.copied) == (4, 0)
    assert list(Path("D").glob("cdx-*")) == []
    rows = Path("D/cluster.loc").read_text().splitlines()
    assert [row.split("\t")[1] for row in rows] == [
        str(path.absolute()) for path in sorted(other.glob("cdx-*"))
    ]


DATA = b"a shard" * 9


@pytest.mark.parametrize(
    ("size", "sha256", "is_same"),
    [
        (len(DATA), hashlib.sha256(DATA).hexdigest(), True),
        (len(DATA), "", True),
        (len(DATA) + 1, hashlib.sha256(DATA).hexdigest(), False),
        (len(DATA) - 1, "", False),
        (len(DATA), "0" * 64, False),
    ],
)
def test_a_copy_is_that_of_the_manifest_or_none(
    size: int, sha256: str, is_same: bool, tmp_path: Path
) -> None:
    source, target = tmp_path / "one", tmp_path / "two"
    source.write_bytes(DATA)
    task = _ClusterCopy(
        Shard("cdx-00000.gz", "part-00000", size, sha256, None), locate(source), locate(target)
    )
    if is_same:
        assert _copy(task) == hashlib.sha256(DATA).hexdigest()
        assert target.read_bytes() == DATA
        return
    with pytest.raises(InputError) as raised:
        _copy(task)
    assert str(raised.value) == f"{source}: its contents do not match cluster.json; build the cluster again"
    assert list(tmp_path.iterdir()) == [source]


@pytest.mark.parametrize(("source", "target"), [("http://127.0.0.1:1/C", "D"), ("C", "http://127.0.0.1:1/D")])
def test_a_place_that_cannot_be_listed_or_written_is_refused_before_it_is_asked(
    source: str, target: str, cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mend", "find_directory"):
        monkeypatch.setattr(publishing, name, lambda *given: pytest.fail("it is asked"))
    with pytest.raises(UsageError, match="http://127"):
        published(source, target)
    assert not Path("D").exists()


def test_a_cluster_that_may_not_be_published_is_told_without_waiting_for_the_lock(
    other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(publishing, "hold", lambda place: pytest.fail("it waits for another run"))
    with pytest.raises(UsageError, match="D: already has another cluster"):
        published()


def stopped(monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where a replacement of D was stopped after some shards."""
    with monkeypatch.context() as patch:
        failing(patch, "cdx-00003.gz")
        with pytest.raises(InputError):
            published(replace=True)
    return Path(new_place(place_of(locate("D"))).local)


@pytest.mark.parametrize("is_finished", [True, False])
def test_what_another_command_has_left_where_the_new_cluster_is_built_is_discarded(
    is_finished: bool, other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed `zipnum --replace`, or a `publish` that was killed just before it switched."""
    new = stopped(monkeypatch)
    if is_finished:
        (new / "cluster.json").write_bytes(Path("D/cluster.json").read_bytes())
    else:
        (new / ".published.json").unlink()
        (new / ".work").mkdir()
        for name in (".work/job.json", ".work/shards.json", "cdx-00007.gz", "part-00007"):
            (new / name).write_text("9")
    calls: list[str] = []

    def noting(place: Location) -> None:
        calls.append(place.name)
        discard(place)

    monkeypatch.setattr(publishing, "discard", noting)
    assert published(replace=True).shards == 4
    assert calls == ["D"]
    assert {".work", "cdx-00007.gz", "part-00007"} & {path.name for path in Path("D").iterdir()} == set()
    assert not new.exists()
    assert verify(Verifying("D", processes=1), Failures(printed=False)).faults == 0


def test_what_a_killed_run_has_noted_of_another_cluster_is_forgotten_before_its_names_are_used(
    other: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a shard that gets such a name would be taken for that of the other cluster, if this run is killed, too."""
    new = stopped(monkeypatch)
    for shard in new.glob("cdx-*"):
        shard.unlink()  # it may be one of D by a second name
        shard.write_bytes(b"of another cluster")
    noted = {"cdx-00001.gz": "7" * 64}
    (new / ".published.json").write_text(json.dumps(noted))
    seen: list[object] = []

    def fail(old: Location, new: Location, name: str) -> bool:
        seen.append(json.loads((new / ".published.json").read_bytes()))
        raise StoppedError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(publishing, "_link", fail)
        with pytest.raises(StoppedError, match="the disk is full"):
            published(replace=True)
    assert seen == [{}]
    assert published(replace=True).copied == 2
    assert verify(Verifying("D", processes=1), Failures(printed=False)).faults == 0


def test_a_run_that_has_lost_its_lock_finishes_no_cluster(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> None:
        raise StoppedError("the lock was lost")

    monkeypatch.setattr(publishing, "check_held", lost)
    with pytest.raises(StoppedError, match="the lock was lost"):
        published()
    assert not Path("D/cluster.json").exists()
    assert Path("D/.published.json").exists()


def test_where_publish_writes_is_held(other: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[str] = []

    def noting(place: Location, *note: object) -> AbstractContextManager[object]:
        held.append(place.name)
        return nullcontext()

    monkeypatch.setattr(publishing, "hold", noting)
    monkeypatch.setattr(publishing, "hold_new", lambda place, note: noting(new_place(place)))
    monkeypatch.setattr(publishing, "_copy_and_switch", lambda *given: 0)
    published(replace=True)
    assert held == ["D", ".D.new"]


def test_an_index_that_replaces_a_copy_takes_its_shards_away(cluster: Path) -> None:
    """Readers would use a shard beside the index, which is of another cluster."""
    Path("D").mkdir()
    Path("D/cdx-00000.gz").write_bytes(b"of another")
    Path("D/.published.json").write_text(json.dumps({"cdx-00000.gz": "7" * 64}))
    assert published(index_only=True, replace=True).copied == 0
    assert list(Path("D").glob("cdx-*")) == []
    assert verify(Verifying("D", processes=1), Failures(printed=False)).faults == 0
