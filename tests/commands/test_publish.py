"""A cluster is checked and published completely, or not at all. Shards already there are not copied again."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml

from cdxmill.cli.main import main

from ..material.cdx_files import many_lines, sort_unique, write_plain
from ..material.clusters import check_cluster
from ..material.processes import stopped_at

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

SHARDS = 4
Files = dict[str, bytes]


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_plain(tmp_path_factory.mktemp("lines") / "a.cdxj", many_lines(20_000))


@pytest.fixture(scope="module")
def built(lines: Path, run_cdxmill: RunCdxmill, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster that no test changes."""
    directory = tmp_path_factory.mktemp("built") / "C"
    done = run_cdxmill("zipnum", "-q", "-s", str(SHARDS), "--numlines", "500", "-o", directory, lines)
    assert done.returncode == 0, done.stderr
    return directory


@pytest.fixture
def cluster(built: Path, tmp_path: Path) -> Path:
    """A copy of the cluster without the files that `publish` writes, as after a job."""
    directory = tmp_path / "C"
    shutil.copytree(built, directory)
    for name in ("cluster.idx", "cluster.summary", "cluster.loc"):
        (directory / name).unlink()
    return directory


def files_of(directory: Path) -> Files:
    """Its files; without the record of the run that built a cluster, which is not published."""
    return {path.name: path.read_bytes() for path in directory.iterdir() if path.name != ".finished.json"}


def test_a_published_cluster_is_one_as_it_was_built(
    cluster: Path, built: Path, lines: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = tmp_path / "indexes"
    before = files_of(cluster)
    done = run_cdxmill("publish", "-p", "2", cluster, target)
    assert done.returncode == 0
    assert done.stderr.startswith(f"{target}: {SHARDS} shards (".encode())
    assert done.stderr.endswith(f" blocks), {SHARDS} copied\n".encode())
    check_cluster(target, sort_unique([lines]), 500)
    wanted = files_of(built)
    assert files_of(target) == {**wanted, "cluster.loc": files_of(target)["cluster.loc"]}
    assert files_of(cluster) == before, "the source stays as it is"
    parts = b"".join(path.read_bytes() for path in sorted(target.glob("part-*")))
    numbered = [b"%b\t%d" % (line, number) for number, line in enumerate(parts.splitlines(), 1)]
    assert (target / "cluster.idx").read_bytes().splitlines() == numbered


def test_a_cluster_is_published_to_itself(cluster: Path, lines: Path, run_cdxmill: RunCdxmill) -> None:
    for target in (cluster, cluster.as_uri(), f"{cluster}/../C/"):
        assert run_cdxmill("publish", "-q", cluster, target).returncode == 0
        (cluster / "metadata.yaml").unlink()
        check_cluster(cluster, sort_unique([lines]), 500)


def test_locations_are_the_target_or_the_option_location(
    cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = tmp_path / "D"
    for options, base in (
        ([], target),
        (["--location", "https://host/c/"], "https://host/c"),
        (["--location", "relative"], tmp_path / "relative"),
    ):
        assert run_cdxmill("publish", "-q", cluster, target, *options, cwd=tmp_path).returncode == 0
        rows = (target / "cluster.loc").read_text().splitlines()
        assert rows == [f"cdx-{number:05d}.gz\t{base}/cdx-{number:05d}.gz" for number in range(SHARDS)]


def test_an_index_without_shards_has_the_locations_of_the_source(
    cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = tmp_path / "D"
    for _ in range(2):
        assert run_cdxmill("publish", "-q", "--index-only", cluster, target).returncode == 0
        assert list(target.glob("cdx-*")) == []
        assert (target / "cluster.json").read_bytes() == (cluster / "cluster.json").read_bytes()
    run_cdxmill("publish", "-q", cluster, cluster)
    wanted = run_cdxmill("lookup", cluster, "http://host003.com/*").stdout
    assert wanted
    assert run_cdxmill("lookup", target, "http://host003.com/*").stdout == wanted


def test_an_index_that_is_served_stays_until_its_shards_are_there(cluster: Path, tmp_path: Path) -> None:
    """One shard is corrupt, and so nothing was left of the index."""
    target, shard = tmp_path / "indexes", cluster / "cdx-00002.gz"
    assert main(["publish", "-q", "--index-only", str(cluster), str(target)]) == 0
    before, data = files_of(target), shard.read_bytes()
    shard.write_bytes(data[:-100] + b"x" + data[-99:])
    assert main(["publish", "-q", "-p", "1", str(cluster), str(target)]) == 1
    copied = {name: (cluster / name).read_bytes() for name in ("cdx-00000.gz", "cdx-00001.gz")}
    assert files_of(target) == {**before, **copied}


@pytest.mark.parametrize(
    "name", ["cluster.loc", "cluster.summary", "archives.tsv", "splits.txt", "splits.seq", ".published.json"]
)
def test_a_file_beside_which_there_is_no_cluster_is_not_overwritten(
    name: str, cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = tmp_path / "D"
    target.mkdir()
    (target / name).write_bytes(b"mine")
    for more in ([], ["--replace"], ["--index-only"]):
        done = run_cdxmill("publish", "-q", *more, cluster, target)
        assert done.returncode == 2
        assert f"D: has {name}, and no cluster.json says of which cluster it is".encode() in done.stderr
        assert {path.name: path.read_bytes() for path in target.iterdir()} == {name: b"mine"}
    if name.startswith("splits"):
        shutil.copy(cluster / name, target)
        assert run_cdxmill("publish", "-q", cluster, target).returncode == 0


@pytest.mark.parametrize("name", ["archives.tsv", "cluster.loc"])
def test_a_list_of_places_that_is_lost_is_written_again(
    name: str, cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    (cluster / "archives.tsv").write_text("a.warc.gz\t/warcs/a.warc.gz\n")
    target = tmp_path / "D"
    assert run_cdxmill("publish", "-q", cluster, target).returncode == 0
    before = files_of(target)
    (target / name).unlink()
    assert run_cdxmill("publish", "-q", cluster, target).returncode == 0
    assert files_of(target) == before


def test_an_index_is_not_written_beside_other_shards(
    cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = tmp_path / "D"
    target.mkdir()
    (target / "cdx-00001.gz").write_bytes(b"of another")
    done = run_cdxmill("publish", "-q", "--index-only", cluster, target)
    assert done.returncode == 2
    assert b"D: has cdx-00001.gz, and no cluster.json says of which cluster it is" in done.stderr
    assert files_of(target) == {"cdx-00001.gz": b"of another"}


@pytest.mark.parametrize(
    ("path", "options", "title"),
    [
        ("CC-MAIN-2024-42/indexes", [], "CC-MAIN-2024-42"),
        ("web: 'one' # \u00fc\U0001f577", [], "web: 'one' # \u00fc\U0001f577"),
        ("web", ["--title", 'October "2024"\tIndex'], 'October "2024"\tIndex'),
    ],
)
def test_the_collection_has_a_title(
    path: str, options: list[str], title: str, cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = tmp_path / path
    assert run_cdxmill("publish", "-q", cluster, target, *options).returncode == 0
    metadata = (target.parent if target.name == "indexes" else target) / "metadata.yaml"
    assert yaml.safe_load(metadata.read_bytes()) == {"title": title}
    metadata.write_bytes(b"title: kept\n")
    assert not run_cdxmill("publish", "-q", cluster, target).returncode
    assert metadata.read_bytes() == b"title: kept\n"


def test_only_missing_or_changed_shards_are_copied_again(
    cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = tmp_path / "indexes"
    assert run_cdxmill("publish", cluster, target).stderr.endswith(b", 4 copied\n")
    wanted = files_of(target)
    assert run_cdxmill("publish", cluster, target).stderr.endswith(b", 0 copied\n")
    assert files_of(target) == wanted

    for name, copied in (("cdx-00002.gz", 1), ("part-00000", 0), ("cluster.idx", 0), ("splits.txt", 0)):
        (target / name).write_bytes(b"cut")
        assert run_cdxmill("publish", cluster, target).stderr.endswith(b", %d copied\n" % copied)
        assert files_of(target) == wanted


@pytest.mark.parametrize("can_link", [True, False])
def test_shards_of_another_cluster_with_the_same_sizes_are_replaced(
    can_link: bool, cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard that is the same gets a second name, or is copied where a disk has none."""
    target = tmp_path / "indexes"
    run_cdxmill("publish", "-q", cluster, target)
    wanted = files_of(target)
    other = bytearray(wanted["cdx-00001.gz"])
    other[-1] ^= 1
    (target / "cdx-00001.gz").write_bytes(other)
    manifest = json.loads(wanted["cluster.json"])
    manifest["shards"][1]["sha256"] = hashlib.sha256(other).hexdigest()
    del manifest["sha256"]
    manifest["sha256"] = hashlib.sha256(json.dumps(manifest, indent=1).encode()).hexdigest()
    (target / "cluster.json").write_text(json.dumps(manifest, indent=1) + "\n")
    done = run_cdxmill("publish", cluster, target)
    assert (done.returncode, b"already has another cluster; --replace builds" in done.stderr) == (2, True)
    assert (target / "cdx-00001.gz").read_bytes() == other
    linked = (target / "cdx-00002.gz").stat().st_ino
    if not can_link:
        monkeypatch.setattr("os.link", lambda *names: Path("absent").stat())
    assert main(["publish", "-q", "-p", "1", "--replace", str(cluster), str(target)]) == 0
    assert ((target / "cdx-00002.gz").stat().st_ino == linked) == can_link
    assert files_of(target) == wanted


def test_a_repair_that_fails_takes_nothing_away_and_the_next_run_continues(
    cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = tmp_path / "indexes"
    run_cdxmill("publish", "-q", cluster, target)
    wanted = files_of(target)
    for name in ("cdx-00001.gz", "cdx-00003.gz"):
        (target / name).unlink()
    shard = cluster / "cdx-00003.gz"
    content = shard.read_bytes()
    shard.write_bytes(b"0" * len(content))
    done = run_cdxmill("publish", "-p", "1", cluster, target)
    assert done.returncode == 1
    assert (
        f"{shard}: its contents do not match cluster.json; build the cluster again\n".encode() in done.stderr
    )
    assert files_of(target) == {name: wanted[name] for name in wanted if name != "cdx-00003.gz"}
    assert run_cdxmill("publish", target, tmp_path / "E").returncode == 1, "it is not whole yet"
    shard.write_bytes(content)
    assert run_cdxmill("publish", cluster, target).stderr.endswith(b", 1 copied\n")
    assert files_of(target) == wanted


@pytest.mark.parametrize("moment", [".published.json", "cdx-00001.gz", "cluster.idx"])
def test_the_next_run_continues_after_a_kill_at_any_moment(
    moment: str, cluster: Path, lines: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    for target in (tmp_path / f"D{number}/indexes" for number in range(20)):  # it may be done before the kill
        stopped_at(target, moment, ["publish", "-p", "1", cluster, target])
        if moment == "cluster.idx" or not (target / "cluster.json").exists():
            break
    assert run_cdxmill("publish", "-q", cluster, target).returncode == 0
    check_cluster(target, sort_unique([lines]), 500)


def test_an_unfinished_cluster_is_refused_without_the_option_unfinished(
    cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = tmp_path / "indexes"
    (cluster / "cluster.json").unlink()
    done = run_cdxmill("publish", cluster, target)
    assert (done.returncode, done.stderr.decode()) == (
        2,
        f"cdxmill: {cluster}: not a finished cluster (no cluster.json); finish it, or use --unfinished\n",
    )
    assert not target.exists()
    for directory in (target, cluster):
        assert run_cdxmill("publish", "-q", "--unfinished", cluster, directory).returncode == 0
        assert not (directory / "cluster.json").exists(), "its contents are not known"
        assert (directory / "cluster.idx").exists()
    found = files_of(target).keys() - {".published.json"}
    assert {name for name in found if not name.startswith("cluster.")} == {
        name for name in files_of(cluster) if not name.startswith("cluster.") and name != "metadata.yaml"
    }


Damage = Callable[[Path], object]


def cut_shard(directory: Path) -> None:
    (directory / "cdx-00002.gz").write_bytes((directory / "cdx-00002.gz").read_bytes()[:-1])


def swap_lines(directory: Path) -> None:
    lines = (directory / "part-00001").read_bytes().splitlines(keepends=True)
    (directory / "part-00001").write_bytes(b"".join([lines[1], lines[0], *lines[2:]]))


def swap_parts(directory: Path) -> None:
    (directory / "part-00001").rename(directory / "part")
    (directory / "part-00002").rename(directory / "part-00001")
    (directory / "part").rename(directory / "part-00002")


def edit_part(change: Callable[[bytes], bytes]) -> Damage:
    return lambda directory: (directory / "part-00001").write_bytes(
        change((directory / "part-00001").read_bytes())
    )


DAMAGE: dict[str, tuple[Damage, str]] = {
    "a missing shard": (lambda directory: (directory / "cdx-00002.gz").unlink(), "cdx-00002.gz is missing"),
    "a missing part": (lambda directory: (directory / "part-00003").unlink(), "part-00003 is missing"),
    "a truncated shard": (cut_shard, "cdx-00002.gz has "),
    "lines out of order": (swap_lines, "line 1: the block does not start where the previous one ends"),
    "parts out of order": (swap_parts, "line 1: not a block of cdx-00001.gz"),
    "a part without its last line": (
        edit_part(lambda part: part[: part.rindex(b"\n", 0, -1) + 1]),
        "its blocks have ",
    ),
    "a truncated part": (edit_part(lambda part: part[:-1]), "the last line is truncated"),
    "an empty part": (edit_part(lambda part: b""), "it has 0 lines, but cluster.json has "),
    "a key of another shard": (
        edit_part(lambda part: b"zz,zz)/ 2020" + part[part.index(b"\t") :]),
        "line 2: out of order",
    ),
    "a fifth column": (edit_part(lambda part: part.replace(b"\n", b"\t1\n", 1)), "line 1: expected 4 columns"),
    "fifth columns, of which the first is reported": (edit_part(lambda part: part.replace(b"\n", b"\t1\n")), "line 1: expected 4 columns"),
    "a line that is not an index line": (edit_part(lambda part: b"\n" + part), "line 1: not a line of a ZipNum index"),
    "corrupt split points": (
        lambda directory: (directory / "splits.seq").write_bytes(b"precious"),
        "splits.txt or splits.seq has other split points than cluster.json",
    ),
    "a corrupt manifest": (
        lambda directory: (directory / "cluster.json").write_bytes(b"{"),
        "cluster.json: is corrupt (",
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_corrupt_cluster_is_reported_and_nothing_is_written(
    damage: str, cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    target = tmp_path / "indexes"
    run_cdxmill("publish", "-q", cluster, target)
    before = files_of(target)
    inflict, reason = DAMAGE[damage]
    inflict(cluster)
    done = run_cdxmill("publish", cluster, target)
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert line.startswith(f"cdxmill: {cluster}")
    assert reason in line
    assert line.endswith(("; build the cluster again", "; build or publish the cluster again"))
    assert files_of(target) == before


def test_keys_out_of_order_between_shards_are_reported(
    cluster: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    rows = (cluster / "part-00002").read_bytes().splitlines(keepends=True)
    (cluster / "part-00002").write_bytes(b"aa)/ 2020" + rows[0][rows[0].index(b"\t") :] + b"".join(rows[1:]))
    done = run_cdxmill("publish", cluster, tmp_path / "indexes")
    assert (done.returncode, b"part-00002: line 1: out of order" in done.stderr) == (1, True)


def test_shards_without_lines_are_published(run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    write_plain(tmp_path / "a.cdxj", [b"com,example)/ 2020 {}"])
    (tmp_path / "splits.txt").write_bytes(b"a\nb\nd\n")
    run_cdxmill(
        "zipnum", "-q", "--splits", tmp_path / "splits.txt", "-o", tmp_path / "C", tmp_path / "a.cdxj"
    )
    assert run_cdxmill("publish", "-q", tmp_path / "C", tmp_path / "D/indexes").returncode == 0
    check_cluster(tmp_path / "D/indexes", b"com,example)/ 2020 {}\n")


@pytest.mark.parametrize(
    ("name", "unfinished"),
    [
        ("absent", "not a ZipNum cluster (no such file or directory); check the path"),
        ("empty", "not a finished cluster"),
    ],
)
def test_a_directory_without_a_cluster_is_reported(
    name: str, unfinished: str, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    for options, reason in (
        ([], unfinished),
        (["--unfinished"], "not a ZipNum cluster (no cdx-00000.gz)"),
    ):
        done = run_cdxmill("publish", *options, tmp_path / name, tmp_path / "D")
        assert done.returncode == 2
        assert done.stderr.startswith(f"cdxmill: {tmp_path / name}: {reason}".encode())


@pytest.mark.parametrize("paths", [("https://host/c", "D"), ("C", "https://host/c"), ("C", "file://other/c")])
def test_impossible_paths_and_urls_are_reported(
    paths: tuple[str, str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["publish", *paths]) in (1, 2)
    (line,) = capfd.readouterr().err.splitlines()
    assert line.startswith(("cdxmill: https://host/c: ", "cdxmill: file://other/c: "))
