"""What `cdxmill index` takes: files, folders, globs and manifests; and how it names what it makes of them."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cdxmill.inputs.named import without_host
from cdxmill.outputs.names import output_name

from ..material.processes import COMMAND

if TYPE_CHECKING:
    from tests.conftest import RunCdxmill


@pytest.fixture(scope="module")
def archive(pywb_warcs: Path) -> Path:
    """A small archive: three records that get a line."""
    return pywb_warcs / "example.warc.gz"


@pytest.fixture
def directory(archive: Path, tmp_path: Path) -> Path:
    """`in/a.warc.gz`, `in/deep/b.warc.gz` and files that are no archives."""
    (tmp_path / "in/deep").mkdir(parents=True)
    for name in ("in/a.warc.gz", "in/deep/b.warc.gz"):
        shutil.copyfile(archive, tmp_path / name)
    for name in ("in/notes.txt", "in/deep/a.cdx.gz"):
        (tmp_path / name).write_bytes(b"no archive")
    return tmp_path


def made(out: Path) -> set[str]:
    found = {str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()}
    return found - {".outputs.tsv"}


def filenames(stdout: bytes) -> set[str]:
    return {json.loads(line.split(b" ", 2)[2])["filename"] for line in stdout.splitlines()}


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/dir1/a.warc.gz", "dir1/a.cdx.gz"),
        ("a.arc.gz", "a.cdx.gz"),
        ("a.gz", "a.cdx.gz"),
        ("x/a.warc.wat.gz", "x/a.wat.cdx.gz"),
        ("x/a.warc.wet.gz", "x/a.wet.cdx.gz"),
        ("a.warc", "a.warc.cdx.gz"),
        ("a.warc.zst", "a.warc.zst.cdx.gz"),
        ("a.arc", "a.arc.cdx.gz"),
        ("./x/../y/a.warc.gz", "y/a.cdx.gz"),
        ("../../a.warc.gz", "a.cdx.gz"),
        ("s3://bucket/crawl/a.warc.gz", "crawl/a.cdx.gz"),
    ],
)
def test_the_name_of_an_index_depends_on_the_path_alone(path: str, name: str) -> None:
    assert output_name(path) == name


def test_a_directory_gives_its_archives_and_nothing_else(directory: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("index", "-o", "out", "in", cwd=directory)
    assert done.returncode == 0, done.stderr
    assert made(directory / "out") == {"a.cdx.gz", "deep/b.cdx.gz"}, "the paths below the folder"


@pytest.mark.parametrize("pattern", ["in/**/*.warc.gz", "in/*/*.warc.gz", "in/[ab].warc.gz"])
def test_a_glob_gives_the_files_that_it_fits(pattern: str, directory: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("index", "-o", "out", pattern, cwd=directory)
    assert done.returncode == 0, done.stderr
    fitting = {"in/**/*.warc.gz": {"a.cdx.gz", "b.cdx.gz"}, "in/*/*.warc.gz": {"b.cdx.gz"}}
    assert made(directory / "out") == fitting.get(pattern, {"a.cdx.gz"})


def test_a_file_whose_name_is_a_glob_is_that_file(directory: Path, run_cdxmill: RunCdxmill) -> None:
    shutil.move(directory / "in/a.warc.gz", directory / "in/[a].warc.gz")
    done = run_cdxmill("index", "-o", "out", "in/[a].warc.gz", cwd=directory)
    assert done.returncode == 0, done.stderr
    assert made(directory / "out") == {"[a].cdx.gz"}


@pytest.mark.parametrize("kind", ["plain", "gzip", "stdin", "gzip on stdin", "dos"])
def test_a_manifest_is_read_whatever_it_comes_as(kind: str, directory: Path) -> None:
    text = b"# a list\n\nin/a.warc.gz\n  \nan id\t17\tdeep/b.warc.gz\n#deep/c.warc.gz\nabsent.warc.gz"
    text = text.replace(b"in/a", b"a")
    data = {
        "gzip": gzip.compress(text),
        "gzip on stdin": gzip.compress(text),
        "dos": text.replace(b"\n", b"\r\n"),
    }.get(kind, text)
    (directory / "list").write_bytes(data)
    name = "-" if "stdin" in kind else "list"
    done = subprocess.run(
        [COMMAND, "index", "-q", "-o", "out", "--manifest", name, "--root", "in"],
        input=data,
        cwd=directory,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    (line,) = done.stderr.decode().splitlines()
    assert line == f"{name}:7: in/absent.warc.gz: cannot be read (No such file or directory); check the path"
    assert made(directory / "out") == {"a.cdx.gz", "deep/b.cdx.gz", "failures.tsv"}, "wherever the root is"


def test_absolute_paths_of_a_manifest_are_not_below_its_root(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    (directory / "list").write_text(f"{directory}/in/a.warc.gz\ndeep/b.warc.gz\n")
    done = run_cdxmill("index", "-o", "-", "--manifest", "list", "--root", "in", cwd=directory)
    assert done.returncode == 0, done.stderr
    assert filenames(done.stdout) == {"a.warc.gz", "deep/b.warc.gz"}


def test_a_manifest_may_name_files_with_any_characters_but_line_ends(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    names = [
        "in/a\x0bb.warc.gz",
        "in/a\u2028b.warc.gz",
        "in/a\x85b.warc.gz",
        "in/a b.warc.gz",
        "in/#a.warc.gz",
    ]
    for name in names:
        shutil.copyfile(directory / "in/a.warc.gz", directory / name)
    (directory / "list").write_text("\n".join(names))
    done = run_cdxmill("index", "-q", "-o", "-", "--manifest", "list", cwd=directory)
    assert (done.returncode, done.stderr) == (0, b"")
    assert filenames(done.stdout) == set(names)


def test_file_names_in_lines_are_what_a_person_would_look_for(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    (directory / "list").write_text("in/a.warc.gz\n")
    cases: list[tuple[list[str | Path], str]] = [
        (["in/deep/b.warc.gz"], "b.warc.gz"),
        (["in/deep/*.warc.gz"], "b.warc.gz"),
        (["in/deep"], "b.warc.gz"),
        ([directory / "in/deep/b.warc.gz", "--dir-root", directory], "in/deep/b.warc.gz"),
        (["in/deep", "--dir-root", "in"], "deep/b.warc.gz"),
        (["--manifest", "list"], "in/a.warc.gz"),
    ]
    for args, name in cases:
        assert filenames(run_cdxmill("index", "-o", "-", *args, cwd=directory).stdout) == {name}


def test_absolute_paths_are_not_built_again_below_the_output(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    run_cdxmill("index", "-o", "out", directory / "in/a.warc.gz", directory / "in/deep", cwd=directory)
    assert made(directory / "out") == {"a.cdx.gz", "b.cdx.gz"}


def test_archives_with_one_base_name_have_their_paths_below_their_common_directory(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    shutil.copyfile(directory / "in/a.warc.gz", directory / "in/deep/a.warc.gz")
    inputs = [directory / "in/a.warc.gz", "in/deep/a.warc.gz"]
    done = run_cdxmill("index", "-o", "out", "--dir-root", "in", *inputs, cwd=directory)
    assert done.returncode == 0, done.stderr
    assert made(directory / "out") == {"a.cdx.gz", "deep/a.cdx.gz"}


@pytest.mark.parametrize("inputs", [("in/a.warc.gz", "./in/../in/a.warc.gz"), ("in", "in/deep")])
def test_two_inputs_with_one_name_are_refused_before_any_work(
    inputs: tuple[str, str], directory: Path, run_cdxmill: RunCdxmill
) -> None:
    done = run_cdxmill("index", "-o", "out", *inputs, cwd=directory)
    assert done.returncode == 2
    *_, line = done.stderr.decode().splitlines()
    assert "would get the same output name" in line
    assert not (directory / "out").exists()
    assert run_cdxmill("index", "-o", "-", *inputs, cwd=directory).stdout != b""


@pytest.mark.parametrize(
    ("command", "names"),
    [
        (("index",), {"a.warc.gz.cdx.gz", "a.arc.gz.cdx.gz"}),
        (
            ("recompress", "--to", "gz", "--index"),
            {
                "a.warc.gz",
                "a.arc.gz",
                "a.warc.gz.cdx.gz",
                "a.arc.gz.cdx.gz",
                "a.warc.gz.proof.json",
                "a.arc.gz.proof.json",
            },
        ),
    ],
)
def test_archives_whose_outputs_would_have_one_name_keep_their_whole_names(
    command: tuple[str, ...], names: set[str], directory: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill
) -> None:
    shutil.copyfile(pywb_warcs / "example.arc.gz", directory / "in/a.arc.gz")
    for _ in range(2):
        done = run_cdxmill(*command, "-o", "out", "in/a.warc.gz", "in/a.arc.gz", cwd=directory)
        assert done.returncode == 0, done.stderr
        assert made(directory / "out") == names


def test_a_plain_and_a_compressed_archive_of_one_name_have_an_output_each(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    (directory / "in/a.warc").write_bytes(gzip.decompress((directory / "in/a.warc.gz").read_bytes()))
    for command, names in (
        ("scan", {"a.warc.jsonl.gz", "a.warc.gz.jsonl.gz", "deep/b.warc.jsonl.gz"}),
        ("recompress", {"a.warc.zst", "a.warc.gz.zst", "deep/b.warc.zst"}),
    ):
        done = run_cdxmill(command, "-o", command, "in", cwd=directory)
        assert done.returncode == 0, done.stderr
        assert {name for name in made(directory / command) if not name.endswith(".proof.json")} == names


@pytest.mark.parametrize(
    "command",
    [("index", "-o", "out"), ("index", "-o", "all.cdxj"), ("index", "-o", "-"), ("build", "-o", "out")],
)
def test_two_archives_never_have_one_name_in_an_index(
    command: tuple[str, ...], directory: Path, run_cdxmill: RunCdxmill
) -> None:
    shutil.copyfile(directory / "in/deep/b.warc.gz", directory / "in/deep/a.warc.gz")
    done = run_cdxmill(*command, "in/a.warc.gz", "in/deep/a.warc.gz", cwd=directory)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr.decode() == (
        "cdxmill: in/a.warc.gz and in/deep/a.warc.gz would both have the file name a.warc.gz in the index, and no reader"
        " could tell them apart; use --dir-root DIR, or a --manifest with their paths below --root\n"
    )
    assert not (directory / "out").exists()


def test_finished_indexes_are_skipped_on_request_unless_they_are_old_or_failed(
    directory: Path, run_cdxmill: RunCdxmill
) -> None:
    call = ["index", "-o", "out", "--update", "in"]
    good, bad = directory / "out/a.cdx.gz", directory / "out/bad.cdx.gz"
    (directory / "in/bad.warc.gz").write_bytes((directory / "in/a.warc.gz").read_bytes()[:-20])
    assert run_cdxmill(*call, cwd=directory).returncode == 1
    first = {path: path.stat().st_mtime_ns for path in (good, bad)}
    again = run_cdxmill(*call, cwd=directory)
    assert again.returncode == 1
    assert b"2 skipped" in again.stderr
    assert good.stat().st_mtime_ns == first[good]
    assert bad.stat().st_mtime_ns > first[bad]
    os.utime(directory / "in/a.warc.gz")
    assert b"1 skipped" in run_cdxmill(*call, cwd=directory).stderr
    assert good.stat().st_mtime_ns > first[good]
    del call[3]
    assert b"skipped" not in run_cdxmill(*call, cwd=directory).stderr.splitlines()[-2]


HEADERS = {"": b"", "-11": b" CDX N b a m s k r M S V g", "-9": b" CDX N b a m s k r V g"}


@pytest.mark.parametrize("flavour", HEADERS)
def test_every_index_is_sorted_with_its_header_first(
    flavour: str, pywb_archives: list[Path], run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    inputs = [path for path in pywb_archives if path.stem != "example.arc"]
    done = run_cdxmill("index", *flavour.split(), "-p", "2", "-o", tmp_path, *inputs)
    indexes = sorted(tmp_path.rglob("*.cdx.gz"))
    assert len(indexes) == len(inputs), done.stderr
    everything = set()
    for path in indexes:
        lines = gzip.decompress(path.read_bytes()).split(b"\n")
        assert lines.pop() == b""
        assert lines == sorted(set(lines))
        assert not HEADERS[flavour] or lines[0] == HEADERS[flavour]
        everything.update(lines)
    stream = run_cdxmill("index", *flavour.split(), "-p", "2", "-o", "-", *inputs)
    assert stream.stdout == b"".join(line + b"\n" for line in sorted(everything))
    assert stream.returncode == done.returncode


@pytest.mark.parametrize(
    ("call", "status"),
    [
        ("", 2),
        ("nonsense", 2),
        ("index", 2),
        ("index -o out", 2),
        ("index in", 2),
        ("index -o out -p two in", 2),
        ("index -o out -p -1 in", 2),
        ("index -o out --cdx11 --cdx9 in", 2),
        ("index -o out --minimal --post-append in", 2),
        ("index -o out --root in in", 2),
        ("index -o out --manifest absent", 2),
        ("index -o out --manifest in", 2),
        ("index -o out --manifest broken.gz", 2),
        ("index -o out --manifest cut.gz", 2),
        ("index -o out --manifest in/a.warc.gz", 2),
        ("index -q -o out absent.warc.gz", 1),
        ("index -q -p 2 -o out absent.warc.gz in/a.warc.gz in/deep/b.warc.gz", 1),
        ("index -q -o - in/notes.txt", 1),
        ("index -q -o in/notes.txt in/a.warc.gz", 2),
        ("index -q -o in/notes.txt/out in/a.warc.gz", 2),
        ("build -q -o in/notes.txt -s 2 in", 2),
        ("zipnum -q -o in/notes.txt -s 2 in/deep/a.cdx.gz", 2),
        ("build -o out -s 2", 2),
        ("lookup", 2),
        ("lookup in", 2),
        ("lookup in http://example.com/ more", 2),
    ],
)
def test_every_failing_call_is_told_in_one_line_without_a_traceback(
    call: str, status: int, directory: Path, run_cdxmill: RunCdxmill
) -> None:
    (directory / "broken.gz").write_bytes(gzip.compress(bytes(9999))[:20] + b"\xff" * 20)
    (directory / "cut.gz").write_bytes(gzip.compress(b"in/a.warc.gz\n")[:-4])
    done = run_cdxmill(*call.split(), cwd=directory)
    assert done.returncode == status, done.stderr
    assert b"Traceback" not in done.stderr
    assert b"internal error" not in done.stderr
    if call:  # alone it shows its help
        lines = done.stderr.decode().splitlines()
        assert len([line for line in lines if not line.startswith("in: note: 2 files skipped: ")]) == 1


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://h.org/p/a.warc.gz?signed=1#f", "p/a.warc.gz"),
        ("HTTP://h.org/p/a.warc.gz#f?x", "p/a.warc.gz"),
        ("s3://bucket/p/a?b#c.warc.gz", "p/a?b#c.warc.gz"),
        ("file:///p/a?b.warc.gz", "/p/a?b.warc.gz"),
        ("/p/a?b#c.warc.gz", "/p/a?b#c.warc.gz"),
        ("a?b.warc.gz", "a?b.warc.gz"),
    ],
)
def test_the_name_of_a_url_is_its_path(url: str, name: str) -> None:
    assert without_host(url).removeprefix("/") == name.removeprefix("/")
