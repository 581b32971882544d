"""`build` and `zipnum` never change what a folder has already, unless --replace is given."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cdxmill import build as build_by_function
from cdxmill import zipnum
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.clusters.split_points import format_sequence_file, format_text

from ..conftest import RunCdxmill
from ..material.cdx_files import cdxj, sort_unique, write_gzip, write_plain
from ..material.clusters import check_cluster, published

Tree = dict[str, tuple[bytes, int]]


def tree(directory: Path) -> Tree:
    """Every file below a folder: content and time."""
    found = {}
    for path in sorted(directory.rglob("*")):
        if path.is_file():
            found[str(path.relative_to(directory))] = (path.read_bytes(), path.stat().st_mtime_ns)
    return found


@pytest.fixture
def archives(pywb_warcs: Path, tmp_path: Path) -> Path:
    directory = tmp_path / "warcs"
    directory.mkdir()
    for name in ("iana.warc.gz", "example.warc.gz"):
        shutil.copy(pywb_warcs / name, directory / name)
    return directory


@pytest.fixture
def indexes(tmp_path: Path) -> Path:
    directory = tmp_path / "indexes"
    directory.mkdir()
    for letter in "abc":
        write_gzip(
            directory / f"{letter}.cdx.gz", [cdxj(f"com,{letter})/{number:03d}") for number in range(99)]
        )
    return directory


@pytest.fixture(params=["build", "zipnum"])
def command(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def inputs(command: str, archives: Path, indexes: Path) -> Path:
    return archives if command == "build" else indexes


@pytest.fixture
def good(command: str, inputs: Path, run_cdxmill: RunCdxmill, tmp_path: Path) -> Path:
    """A finished cluster."""
    done = run_cdxmill(command, "-q", "-s", "2", "-o", tmp_path / "C", inputs)
    assert done.returncode == 0, done.stderr
    return tmp_path / "C"


@pytest.mark.parametrize("options", [(), ("--replace",)])
@pytest.mark.parametrize("case", ["an empty directory", "an empty manifest", "a mistyped path"])
def test_without_any_input_nothing_is_touched(
    case: str, options: tuple[str, ...], command: str, good: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "list").write_text("# none\n")
    given: dict[str, list[str | Path]] = {
        "an empty directory": [tmp_path / "empty"],
        "an empty manifest": ["--manifest", tmp_path / "list"],
    }
    if command == "zipnum":  # it has no manifest
        given["an empty manifest"] = [tmp_path / "empty", tmp_path / "empty"]
    before = tree(tmp_path)
    arguments = given.get(case, [tmp_path / "mistyped"])
    for directory in (good, tmp_path / "new"):
        done = run_cdxmill(command, *options, "-s", "2", "-o", directory, *arguments)
        assert done.returncode == (1 if case == "a mistyped path" and (options or directory != good) else 2)
        assert done.stderr.count(b"\n") <= 2, done.stderr
        shutil.rmtree(tmp_path / "new", ignore_errors=True)
        assert tree(tmp_path) == before
        assert [path.name for path in tmp_path.iterdir() if path.name[0] == "."] == []


def test_the_same_command_again_does_nothing(
    command: str, inputs: Path, good: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    before = tree(tmp_path)
    for options in ([], ["-p", "1"], ["--replace"]):
        done = run_cdxmill(command, *options, "-s", "2", "-o", good, inputs)
        assert done.returncode == 0
        assert b"; unchanged, because it has these inputs already\n" in done.stderr
        assert tree(tmp_path) == before


def test_other_inputs_or_options_are_refused_without_replace(
    command: str, inputs: Path, good: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    before = tree(tmp_path)
    one = next(inputs.iterdir())
    for arguments in ([*["-s", "2"], one], ["-s", "3", inputs], ["-s", "2", "--location", "/x", inputs]):
        done = run_cdxmill(command, "-o", good, *arguments)
        assert done.returncode == 2
        (line,) = done.stderr.decode().splitlines()
        assert line == (
            f"cdxmill: {good}: already has a cluster of other inputs or options; --replace builds the new one beside it"
            " and then switches; or choose another directory"
        )
        assert tree(tmp_path) == before


def test_inputs_that_have_changed_are_other_inputs(
    command: str, inputs: Path, good: Path, run_cdxmill: RunCdxmill
) -> None:
    os.utime(next(inputs.iterdir()), (1, 1))
    assert run_cdxmill(command, "-o", good, "-s", "2", inputs).returncode == 2


def test_replace_builds_the_same_as_in_a_new_directory(
    command: str, inputs: Path, good: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    (good / "notes").mkdir()
    (good / "notes/mine.txt").write_bytes(b"mine")
    (good / "link").symlink_to("notes")
    one = sorted(inputs.iterdir())[0]
    assert run_cdxmill(command, "-o", tmp_path / "fresh", "-s", "3", one).returncode == 0
    done = run_cdxmill(command, "--replace", "-o", good, "-s", "3", one)
    assert done.returncode == 0, done.stderr
    assert published(good) == published(tmp_path / "fresh")
    assert (good / "link/mine.txt").read_bytes() == b"mine"
    assert (good / "cluster.loc").read_text().startswith(f"cdx-00000.gz\t{good}/cdx-00000.gz\n")
    assert [path.name for path in tmp_path.iterdir() if path.name[0] == "."] == []
    assert not (good / ".replaces").exists()
    assert not (good / ".lock").exists()
    assert run_cdxmill(command, "-o", good, "-s", "3", one).returncode == 0


def test_build_with_replace_uses_the_indexes_that_exist(
    archives: Path, run_cdxmill: RunCdxmill, pywb_warcs: Path, tmp_path: Path
) -> None:
    call = ["build", "-s", "2", "-o", tmp_path / "C", archives]
    assert run_cdxmill(*call).returncode == 0
    shutil.copy(pywb_warcs / "post-test.warc.gz", archives)
    (tmp_path / "C/cdx/mine").mkdir()
    (tmp_path / "C/cdx/mine/notes.txt").write_bytes(b"mine")
    made = {path.name: path.stat().st_ino for path in (tmp_path / "C/cdx").rglob("*.cdx.gz")}
    done = run_cdxmill(*call, "--replace")
    assert done.returncode == 0, done.stderr
    assert b" of 1 archive (" in done.stderr
    now = {path.name: path.stat().st_ino for path in (tmp_path / "C/cdx").rglob("*.cdx.gz")}
    assert len(now) == 3
    assert made.items() <= now.items()
    assert (tmp_path / "C/cdx/mine/notes.txt").read_bytes() == b"mine"
    (archives / "iana.warc.gz").unlink()
    assert run_cdxmill(*call, "--replace").returncode == 0
    assert len(list((tmp_path / "C/cdx").rglob("*.cdx.gz"))) == 2


def test_zipnum_keeps_the_indexes_of_build(archives: Path, run_cdxmill: RunCdxmill, tmp_path: Path) -> None:
    call = ["build", "-q", "-s", "2", "-o", tmp_path / "C", archives]
    assert run_cdxmill(*call).returncode == 0
    before = tree(tmp_path / "C/cdx")
    done = run_cdxmill("zipnum", "--replace", "-s", "3", "-o", tmp_path / "C", tmp_path / "C/cdx")
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "C/cdx") == before
    assert b"note: still has" not in done.stderr
    assert run_cdxmill(*call).returncode == 2
    assert run_cdxmill(*call, "--replace").returncode == 0


def test_zipnum_says_that_indexes_of_build_stay_which_are_not_of_the_new_cluster(
    archives: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    cluster = tmp_path / "C"
    assert run_cdxmill("build", "-q", "-s", "2", "-o", cluster, archives).returncode == 0
    before = tree(cluster / "cdx")
    one = min((cluster / "cdx").glob("*.cdx.gz"))
    note = b"C/cdx: note: still has 1 index file of the cluster that was replaced, not of the new one"
    for shards in "34":
        done = run_cdxmill("zipnum", "--replace", "-s", shards, "-o", cluster, one)
        assert (done.returncode, note in done.stderr) == (0, True), done.stderr
    assert tree(cluster / "cdx") == before
    assert run_cdxmill("verify", cluster, "--against", one).returncode == 0


def test_failures_are_reported_again_until_replace_tries_them_again(
    archives: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    whole = (archives / "iana.warc.gz").read_bytes()
    state = (archives / "iana.warc.gz").stat()
    (archives / "iana.warc.gz").write_bytes(whole[:1000] + bytes(100) + whole[1100:])
    os.utime(archives / "iana.warc.gz", ns=(state.st_mtime_ns, state.st_mtime_ns))
    call = ["build", "-s", "2", "-o", tmp_path / "C", archives]
    first = run_cdxmill(*call)
    assert first.returncode == 1
    told = [line for line in first.stderr.splitlines() if b"iana.warc.gz@" in line]
    before = tree(tmp_path)
    again = run_cdxmill(*call)
    assert again.returncode == 1
    assert [line for line in again.stderr.splitlines() if b"iana.warc.gz@" in line] == told
    assert b"C: note: these failures are of the run that built it; --replace tries them again" in again.stderr
    assert tree(tmp_path) == before
    (archives / "iana.warc.gz").write_bytes(whole)  # as from a disk that reads again
    os.utime(archives / "iana.warc.gz", ns=(state.st_mtime_ns, state.st_mtime_ns))
    assert run_cdxmill(*call).returncode == 1
    done = run_cdxmill(*call, "--replace")
    assert (done.returncode, b" of 1 archive (" in done.stderr) == (0, True), done.stderr
    assert run_cdxmill(*call).returncode == 0


@pytest.mark.parametrize(
    ("name", "cut", "fault"),
    [
        ("cdx-00001.gz", None, "cdx-00001.gz is missing or has another size than in cluster.json"),
        ("part-00000", None, "cluster.idx has another size than the parts"),
        ("cluster.summary", None, "cluster.summary has another size than the parts"),
        ("cluster.loc", None, "cluster.loc does not have cdx-00000.gz"),
        ("cluster.loc", -1, "cluster.loc: line 2 is truncated"),
        ("splits.txt", None, "splits.txt or splits.seq has other split points than cluster.json"),
        ("splits.seq", None, "splits.txt or splits.seq has other split points than cluster.json"),
    ],
)
def test_a_cluster_with_another_file_is_not_called_finished(
    name: str, cut: int | None, fault: str, command: str, inputs: Path, good: Path, run_cdxmill: RunCdxmill
) -> None:
    whole = published(good)
    (good / name).write_bytes((good / name).read_bytes()[:cut] if cut else b"precious")
    done = run_cdxmill(command, "-o", good, "-s", "2", inputs)
    assert done.returncode == 2
    assert f"C: already has this cluster, but {fault};".encode() in done.stderr
    assert run_cdxmill(command, "--replace", "-o", good, "-s", "2", inputs).returncode == 0
    assert published(good) == whole


def test_split_files_of_another_cluster_are_noticed(
    command: str, inputs: Path, good: Path, run_cdxmill: RunCdxmill
) -> None:
    (good / "splits.txt").write_bytes(format_text([b"precious"]))
    (good / "splits.seq").write_bytes(format_sequence_file([b"precious"]))
    done = run_cdxmill(command, "-o", good, "-s", "2", inputs)
    assert done.returncode == 2
    assert b"splits.txt or splits.seq has other split points than cluster.json" in done.stderr


def test_replace_builds_a_cluster_with_a_corrupt_shard_again(
    command: str, inputs: Path, good: Path, run_cdxmill: RunCdxmill
) -> None:
    """verify advises to build it again."""
    whole, shard = published(good), good / "cdx-00000.gz"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 1
    shard.write_bytes(data)
    assert run_cdxmill("verify", good).returncode == 1
    assert run_cdxmill(command, "--replace", "-o", good, "-s", "2", inputs).returncode == 0
    assert published(good) == whole


@pytest.mark.parametrize("options", [(), ("--replace",)])
@pytest.mark.parametrize(
    "name", ["cdx-00007.gz", "part-00000", "cluster.idx", "all.idx", "splits.txt", ".finished.json"]
)
def test_files_of_another_cluster_are_never_deleted(
    name: str, options: tuple[str, ...], command: str, inputs: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    directory = tmp_path / "D"
    directory.mkdir()
    (directory / name).write_bytes(b"mine\n")
    done = run_cdxmill(command, *options, "-s", "2", "-o", directory, inputs)
    assert done.returncode == 2
    assert f"{directory}: has {name}, which is not of a cluster of this command".encode() in done.stderr
    assert [path.name for path in directory.iterdir()] == [name]


def test_a_shard_that_the_cluster_does_not_list_is_never_deleted(
    command: str, inputs: Path, good: Path, run_cdxmill: RunCdxmill
) -> None:
    (good / "cdx-00002.gz").write_bytes(b"mine")
    done = run_cdxmill(command, "--replace", "-s", "3", "-o", good, inputs)
    assert done.returncode == 2
    assert b"C: cdx-00002.gz is not of the cluster there (cluster.json does not list it)" in done.stderr
    assert (good / "cdx-00002.gz").read_bytes() == b"mine"


def test_what_a_killed_replacement_left_of_a_lost_cluster_is_deleted(
    command: str, inputs: Path, good: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    new = tmp_path / ".C.new"
    (new / ".work").mkdir(parents=True)
    for name in (".replaces", ".work/job.json", "cdx-00000.gz"):
        (new / name).write_bytes(b"")
    whole = published(good)
    shutil.rmtree(good)
    assert run_cdxmill(command, "-o", good, "-s", "2", inputs).returncode == 0
    assert published(good) == whole
    assert not new.exists()


def test_given_split_points_may_be_in_the_directory(
    indexes: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    splits = tmp_path / "D/splits.txt"
    splits.parent.mkdir()
    write_plain(splits, [b"com,b)/"])
    done = run_cdxmill("zipnum", "--splits", splits, "-o", tmp_path / "D", indexes)
    assert done.returncode == 0, done.stderr
    check_cluster(tmp_path / "D", sort_unique(sorted(indexes.iterdir())))


def test_an_unfinished_run_with_other_inputs_deletes_only_its_own_files(
    indexes: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    directory = tmp_path / "C"
    assert run_cdxmill("zipnum", "-q", "-s", "9", "-o", directory, indexes).returncode == 0
    (directory / ".work").mkdir()
    (directory / ".work/job.json").write_text('"other"')
    (directory / ".work/shards.json").write_text("9")
    (directory / "cluster.json").unlink()
    (directory / "cdx-00009.gz").write_bytes(b"mine")
    assert run_cdxmill("zipnum", "-q", "-s", "2", "-o", directory, indexes).returncode == 2
    assert len(list(directory.glob("cdx-*"))) == 10
    (directory / "cdx-00009.gz").unlink()
    assert run_cdxmill("zipnum", "-q", "-s", "2", "-o", directory, indexes).returncode == 0
    check_cluster(directory, sort_unique(sorted(indexes.iterdir())))


def test_functions_refuse_and_replace_too(archives: Path, tmp_path: Path) -> None:
    build_by_function(archives, output=tmp_path / "C", shards=1)
    assert build_by_function(archives, output=tmp_path / "C", shards=1).lines == 174
    with pytest.raises(UsageError, match="--replace"):
        build_by_function(archives / "example.warc.gz", output=tmp_path / "C", shards=1)
    done = build_by_function(archives / "example.warc.gz", output=tmp_path / "C", shards=1, replace=True)
    assert done.lines == 3


def test_a_cluster_stays_and_is_named_if_nothing_can_be_read_for_a_new_one(
    indexes: Path, tmp_path: Path
) -> None:
    place = tmp_path / "cluster"
    zipnum(indexes, output=place, shards=1, location="/x", processes=1)
    before = tree(place)
    for index in indexes.iterdir():
        index.write_bytes(b"\x1f\x8bcorrupt")
    with pytest.raises(InputError) as caught:
        zipnum(indexes, output=place, shards=1, location="/x", processes=1, replace=True)
    assert str(caught.value) == f"{place}: no input can be read, so no cluster was written"
    assert tree(place) == before
