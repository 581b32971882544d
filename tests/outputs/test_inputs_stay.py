"""No input is an output: the commands that write a file refuse it before they read or write anything."""

from __future__ import annotations

import os
import shutil
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from cdxmill.errors import UsageError
from cdxmill.outputs.names import writing
from cdxmill.storage.location import locate

from ..conftest import RunCdxmill


@pytest.fixture
def directory(pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill) -> Path:
    """i.warc.gz, an archive; a.cdxj, its index, which has other names, too; link.warc.gz, a link to the archive.

    list names the archive, w.wacz has it. old is a cluster, far its index alone.
    """
    shutil.copyfile(pywb_warcs / "iana.warc.gz", tmp_path / "i.warc.gz")
    assert run_cdxmill("index", "-q", "-o", "a.cdxj", "i.warc.gz", cwd=tmp_path).returncode == 0
    assert run_cdxmill("zipnum", "-q", "-s", "1", "-o", "old", "a.cdxj", cwd=tmp_path).returncode == 0
    for name in ("a.seq", "t.tree.archives.gz", "d.json", "b.cdxj.gz"):
        shutil.copyfile(tmp_path / "a.cdxj", tmp_path / name)
    (tmp_path / "link.warc.gz").symlink_to("i.warc.gz")
    (tmp_path / "link.cdxj").symlink_to("a.cdxj")
    for name in ("list", "list.cdxj"):
        (tmp_path / name).write_text("i.warc.gz\n")
    with zipfile.ZipFile(tmp_path / "w.wacz", "w") as file:
        file.write(tmp_path / "i.warc.gz", "archive/i.warc.gz")
    assert run_cdxmill("publish", "-q", "--index-only", "old", "far", cwd=tmp_path).returncode == 0
    return tmp_path


@pytest.mark.parametrize(
    "command",
    [
        "cat i.warc.gz --table i.warc.gz",
        "cat link.warc.gz --table ./i.warc.gz",
        "count tags -o i.warc.gz i.warc.gz",
        "index -o b.cdxj.gz i.warc.gz b.cdxj.gz",
        "train-dictionary -o i.warc.gz i.warc.gz",
        "train-dictionary -o d i.warc.gz d.json",
        "sample -s 2 -o a.cdxj a.cdxj",
        "sample -s 2 -o a.txt a.seq",
        "prefix-index build -o a.cdxj a.cdxj",
        "split-points -s 2 -o old/cluster.idx --from-cluster old",
        "split-points -s 2 -o old/cluster.json --from-cluster old",
        "split-points -s 2 -o old/splits.txt --from-cluster old/cluster.idx",
        "prefix-index build -o old/part-00000 old",
        "prefix-index build -o ./old/cdx-00000.gz far",
        "export old --to csv -o old/cdx-00000.gz",
        "export old --to cdxj -o old/cluster.json",
        "export old/cluster.idx --to cdxj -o ./old/cluster.loc",
        "export a.cdxj --to cdxj -o a.cdxj",
        "export a.cdxj,old --to csv -o old/cluster.idx",
        "export old,a.cdxj --to cdxj -o a.cdxj",
        "export link.cdxj --to csv -o a.cdxj",
        "report old --html old/cluster.json",
        "report a.cdxj --compare old --json old/cluster.idx",
        "report old --compare a.cdxj --html a.cdxj",
        "zipnum -s 2 -o old old/cdx-00000.gz",
        "zipnum -s 2 -o old a.cdxj far/../old/cdx-00000.gz",
        "count tags -o list --manifest list",
        "index -o list.cdxj --manifest list.cdxj",
        "train-dictionary -o list --manifest list",
        "count tags -o w.wacz w.wacz",
        "cat w.wacz/archive/i.warc.gz --table w.wacz",
    ],
)
def test_an_output_that_is_an_input_is_refused(
    command: str, directory: Path, run_cdxmill: RunCdxmill
) -> None:
    before = contents(directory)
    done = run_cdxmill(*command.split(), "--replace", cwd=directory)
    assert done.returncode == 2
    assert b"is an input" in done.stderr
    assert contents(directory) == before


@pytest.mark.parametrize("name", ["i.warc.zst", "i.warc.zst.cdx.gz", "i.warc.zst.offsets.gz"])
def test_a_dictionary_is_not_replaced_by_what_it_compresses(
    name: str, directory: Path, run_cdxmill: RunCdxmill
) -> None:
    made = run_cdxmill("train-dictionary", "-q", "-o", f"out/{name}", "i.warc.gz", cwd=directory)
    assert made.returncode == 0, made.stderr
    before = contents(directory)
    call = ["recompress", "--replace", "--index", "--offsets", "-o", "out", "i.warc.gz"]
    done = run_cdxmill(*call, "--dictionary", f"./out/{name}", cwd=directory)
    assert (done.returncode, done.stderr) == (
        2,
        f"cdxmill: out/{name}: is an input; choose another output\n".encode(),
    )
    assert contents(directory) == before


def contents(directory: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_a_configuration_is_not_written_to_an_empty_name(directory: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("serve", "old", "--config-only", "", cwd=directory)
    assert done.returncode == 2
    assert b"--config-only is empty; give a value" in done.stderr
    assert not (directory / "config.yaml").exists()


@pytest.mark.parametrize(
    "command", ["index", "build", "scan", "recompress", "count tags", "copy", "sample -s 2"]
)
def test_an_empty_output_is_wrong_usage(command: str, directory: Path, run_cdxmill: RunCdxmill) -> None:
    before = set(directory.iterdir())
    done = run_cdxmill(*command.split(), "-o", "", "i.warc.gz", cwd=directory)
    assert done.returncode == 2
    assert b"--output is empty; give a value" in done.stderr
    assert set(directory.iterdir()) == before


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("index -o out i.warc.gz", "failures.tsv"),
        ("scan -o out i.warc.gz absent.warc.gz", "failures.tsv"),
        ("recompress --replace -o out i.warc.gz", "failures.tsv"),
        ("copy -o out --archives . a.cdxj *.org", "copy-failures.tsv"),
        ("copy -o out --archives empty a.cdxj *.org", "copy-failures.tsv"),
    ],
)
@pytest.mark.parametrize("content", ["precious", "a\tb", "a note\nof mine\n", "a\tb\tc\td\n"])
def test_a_list_of_somebody_else_is_left_alone(
    command: str, name: str, content: str, directory: Path, run_cdxmill: RunCdxmill
) -> None:
    for below in ("out", "empty"):  # copy needs a place of archives; none of them is there
        (directory / below).mkdir()
    (directory / "out" / name).write_text(content)
    done = run_cdxmill(*command.split(), cwd=directory)
    assert done.returncode == 2
    assert f"out/{name}: is not of cdxmill; move it away".encode() in done.stderr
    assert (directory / "out" / name).read_text() == content


@pytest.mark.parametrize("mode", [0o700, 0o2750])
def test_a_cluster_keeps_the_mode_of_its_directory_when_it_is_replaced(
    mode: int, directory: Path, run_cdxmill: RunCdxmill
) -> None:
    for options in (["-s", "1"], ["-s", "2", "--replace"]):
        assert run_cdxmill("build", *options, "-o", "c", "i.warc.gz", cwd=directory).returncode == 0
        assert options == ["-s", "1"] or (directory / "c").stat().st_mode & 0o7777 == mode
        (directory / "c").chmod(mode)


@pytest.mark.parametrize(
    ("inputs", "output"), [("warcs", "warcs"), ("warcs/i.warc.gz", "./warcs"), ("i.warc.gz", ".")]
)
def test_a_cluster_is_not_mixed_with_its_archives(
    inputs: str, output: str, directory: Path, run_cdxmill: RunCdxmill
) -> None:
    (directory / "warcs").mkdir()
    shutil.copyfile(directory / "i.warc.gz", directory / "warcs/i.warc.gz")
    before = sorted(directory.rglob("*"))
    done = run_cdxmill("build", "-o", output, inputs, cwd=directory)
    assert done.returncode == 2
    assert b": has archives that are read; choose another directory for the cluster" in done.stderr
    assert sorted(directory.rglob("*")) == before


def test_a_file_that_appears_during_the_run_stays(tmp_path: Path, run_cdxmill: RunCdxmill) -> None:
    pipe, output = tmp_path / "pipe", tmp_path / "t.tree"
    os.mkfifo(pipe)
    with ThreadPoolExecutor(1) as pool:
        run = pool.submit(run_cdxmill, "prefix-index", "build", "-q", "-o", output, pipe)
        with pipe.open("w") as lines:  # the run has begun
            output.write_text("mine")
            lines.write('com,a)/ 20200101000000 {"length": "9", "offset": "1", "filename": "w.gz"}\n')
    assert run.result().returncode == 2
    assert b"t.tree: already exists; use --replace" in run.result().stderr
    assert {path.name for path in tmp_path.iterdir()} == {"pipe", "t.tree"}
    assert output.read_text() == "mine"


@pytest.mark.parametrize("is_replaced", [False, True])
def test_a_file_that_appears_while_the_output_is_written(is_replaced: bool, tmp_path: Path) -> None:
    output = tmp_path / "out"
    with suppress(UsageError), writing(locate(output), replace=is_replaced) as file:
        file.write(b"new")
        output.write_text("mine")
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"new" if is_replaced else b"mine"]
