"""`lookup`, `verify`, `split-points` and `publish` find a cluster by the same paths and URLs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.clusters.zipnum import build_cluster, output_place
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import UsageError
from cdxmill.options.clusters import ClusterOutput
from cdxmill.running.failures import Failures
from tests.storage.range_server import serving

from ..material.cdx_files import many_lines, write_gzip

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill

LAYOUTS = ["cluster.idx", "cluster.summary", "all.idx", "indexes/cluster.idx"]
KEPT = ("cdx-", "part-", "cluster.json", "splits.")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cluster that no test changes."""
    directory = tmp_path_factory.mktemp("paths")
    path = write_gzip(directory / "a.cdxj.gz", many_lines(900))
    build_cluster(
        [str(path)], directory / "C", ZipnumOptions(shards=2, block_lines=40, quiet=True), Failures()
    )
    return directory / "C"


@pytest.fixture(params=LAYOUTS)
def index(request: pytest.FixtureRequest, built: Path, tmp_path: Path) -> Path:
    """The only index of a cluster in or below the folder COLL, which has no cluster.loc."""
    found: Path = tmp_path / "COLL" / request.param
    found.parent.mkdir(parents=True)
    for path in built.iterdir():
        if path.name.startswith(KEPT):
            shutil.copy(path, found.parent / path.name)
    shutil.copy(built / "cluster.idx", found)
    return found


@pytest.fixture(params=["directory", "file"])
def cluster(request: pytest.FixtureRequest, index: Path, tmp_path: Path) -> Path:
    """The cluster as a user names it: by the folder COLL, or by its index file."""
    return index if request.param == "file" else tmp_path / "COLL"


def test_lookup_and_split_points_read_the_index(
    cluster: Path, built: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    wanted = run_cdxmill("lookup", built, "http://host003.com/*").stdout
    assert wanted
    assert run_cdxmill("lookup", cluster, "http://host003.com/*").stdout == wanted
    for source, name in ((built, "wanted"), (cluster, "found")):
        done = run_cdxmill(
            "split-points", "-q", "--from-cluster", source, "-s", "3", "-o", tmp_path / f"{name}.txt"
        )
        assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "found.txt").read_bytes() == (tmp_path / "wanted.txt").read_bytes()


def test_verify_reads_the_cluster(cluster: Path, index: Path, run_cdxmill: RunCdxmill) -> None:
    for path in [*index.parent.glob("part-*"), index.parent / "cluster.json"]:
        path.unlink()
    done = run_cdxmill("verify", cluster)
    assert done.returncode == 0, done.stderr
    assert b"900 lines" in done.stderr
    (index.parent / "cdx-00001.gz").unlink()
    done = run_cdxmill("verify", cluster)
    assert (done.returncode, b"cdx-00001.gz: cannot be read" in done.stderr) == (1, True)


def test_publish_copies_the_cluster(
    cluster: Path, built: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("publish", "-q", cluster, tmp_path / "D")
    assert (done.returncode, done.stderr) == (0, b"")
    for name in ("cdx-00000.gz", "cdx-00001.gz", "cluster.idx", "cluster.json"):
        assert (tmp_path / "D" / name).read_bytes() == (built / name).read_bytes()


def test_publish_to_itself_writes_the_index_beside_the_shards(
    cluster: Path, index: Path, run_cdxmill: RunCdxmill
) -> None:
    assert run_cdxmill("publish", "-q", cluster, cluster).returncode == 0
    assert (index.parent / "cluster.loc").read_text().startswith(f"cdx-00000.gz\t{index.parent}/cdx")
    assert run_cdxmill("verify", "-q", cluster).returncode == 0
    assert sorted(path.name for path in index.parents[1].glob("**/cdx-*")) == ["cdx-00000.gz", "cdx-00001.gz"]


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_cluster_on_a_web_server_is_found(
    name: str, built: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving() as server:
        for path in built.glob("cdx-*"):
            server.add(f"/COLL/{Path(name).parent}/{path.name}".replace("/./", "/"), path.read_bytes())
        server.add(f"/COLL/{name}", (built / "cluster.idx").read_bytes())
        for url in (f"{server.url}/COLL", f"{server.url}/COLL/{name}"):
            assert main(["lookup", url, "http://host003.com/*"]) == 0
            assert main(["verify", "-q", url]) == 0
            out = str(tmp_path / "splits.txt")
            call = ["split-points", "-q", "--from-cluster", url, "-s", "2", "-o", out, "--replace"]
            assert main(call) == 0
    assert capfd.readouterr().err == ""


def test_an_index_of_any_name_has_its_locations_beside_it(
    built: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "index").mkdir()
    shutil.copy(built / "cluster.idx", tmp_path / "index/crawl.idx")
    shutil.copy(built / "cluster.loc", tmp_path / "index/crawl.loc")
    done = run_cdxmill("verify", tmp_path / "index/crawl.idx")
    assert done.returncode == 0, done.stderr
    locations = tmp_path / "index/crawl.loc"
    locations.write_bytes(locations.read_bytes().replace(b"cdx-00001.gz\t", b"cdx-00009.gz\t"))
    done = run_cdxmill("verify", tmp_path / "index/crawl.idx")
    assert (done.returncode, b"index/crawl.loc: " in done.stderr) == (1, True)


def test_a_cluster_in_the_directory_comes_before_a_published_one_below_it(
    built: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    directory = Path(shutil.copytree(built, tmp_path / "C"))
    for name in ("cluster.idx", "cluster.summary", "cluster.loc"):
        (directory / name).unlink()
    for copied in (b", 2 copied\n", b", 0 copied\n"):
        assert run_cdxmill("publish", directory, directory / "indexes").stderr.endswith(copied)
    assert not (directory / "cluster.idx").exists(), "the source stays as it is"


@pytest.mark.parametrize("name", ["absent", "absent.idx", "empty", "empty/cluster.idx"])
def test_a_path_without_a_cluster_is_wrong_usage(name: str, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    (tmp_path / "empty").mkdir()
    cluster = tmp_path / name
    for call in (
        ["lookup", cluster, "http://a.com/"],
        ["verify", cluster],
        ["split-points", "--from-cluster", cluster, "-s", "2", "-o", tmp_path / "splits.txt"],
        ["publish", cluster, tmp_path / "D"],
    ):
        done = run_cdxmill(*call)
        assert (done.returncode, done.stderr.count(b"\n")) == (2, 1), done.stderr


def test_a_directory_may_be_named_like_an_index(built: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    directory = Path(shutil.copytree(built, tmp_path / "crawl.idx"))
    assert run_cdxmill("lookup", directory, "http://host003.com/*").stdout
    assert run_cdxmill("verify", "-q", directory).returncode == 0


@pytest.mark.parametrize("is_local", [True, False])
def test_no_engine_writes_a_cluster_to_a_place_that_its_files_cannot_name(is_local: bool) -> None:
    for output, reason in (("a\tb", "a tab or a line end"), ("http://host/c", "not a local directory")):
        with pytest.raises(UsageError, match=reason):
            output_place(ClusterOutput(output=output), is_local=is_local)
    if is_local:
        with pytest.raises(UsageError, match="build the cluster locally, then copy it with cdxmill publish"):
            output_place(ClusterOutput(output="s3://bucket/c"), is_local=True)
    else:
        assert output_place(ClusterOutput(output="s3://bucket/c"), is_local=False) == "s3://bucket/c"
