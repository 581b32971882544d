"""Pipes as inputs: standard input, named pipes and those of a shell give the output of the file."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.errors import InputError, UsageError
from cdxmill.inputs import pipes
from cdxmill.inputs.archives import find_archives
from cdxmill.options.archives import ArchiveInputs
from cdxmill.running.failures import Failures
from tests.conftest import RunCdxmill

COMMAND = Path(sys.executable).with_name("cdxmill")


@pytest.fixture
def directory(tmp_path: Path, pywb_warcs: Path, run_cdxmill: RunCdxmill) -> Path:
    (tmp_path / "a.warc.gz").write_bytes((pywb_warcs / "example.warc.gz").read_bytes())
    (tmp_path / "temporary").mkdir()
    for name in ("a.cdxj", "a.cdxj.gz"):
        assert run_cdxmill("index", "-o", tmp_path / name, tmp_path / "a.warc.gz").returncode == 0
    assert run_cdxmill("zipnum", "-o", tmp_path / "wanted", tmp_path / "a.cdxj").returncode == 0
    return tmp_path


@contextmanager
def named_pipe(path: Path, data: bytes) -> Iterator[str]:
    """A pipe that has this content."""
    os.mkfifo(path)
    writer = threading.Thread(target=path.write_bytes, args=(data,))
    writer.start()
    yield str(path)
    writer.join()


def run(directory: Path, line: str) -> subprocess.CompletedProcess[bytes]:
    env = {**os.environ, "TMPDIR": str(directory / "temporary")}
    line = line.replace("cdxmill", str(COMMAND))
    done = subprocess.run(["bash", "-c", line], cwd=directory, env=env, capture_output=True, check=False)
    assert list((directory / "temporary").iterdir()) == [], "copies are deleted"
    return done


@pytest.mark.parametrize(
    "line",
    [
        "cat a.cdxj | cdxmill zipnum -o made -",
        "cat a.cdxj.gz | cdxmill zipnum -o made /dev/stdin",
        "cdxmill zipnum -o made - < a.cdxj",
        "cdxmill zipnum -o made <(head -n 2 a.cdxj) <(tail -n +2 a.cdxj)",
    ],
)
def test_a_cluster_from_pipes_has_the_bytes_of_one_from_files(line: str, directory: Path) -> None:
    done = run(directory, line)
    assert done.returncode == 0, done.stderr
    assert b"a pipe;" in done.stderr
    assert (directory / "made/cdx-00000.gz").read_bytes() == (directory / "wanted/cdx-00000.gz").read_bytes()
    again = run(directory, line)
    assert again.returncode == 2, "nobody knows whether it has the same lines"
    assert b"already has a cluster" in again.stderr


def test_quiet_hides_the_note_about_the_copy(directory: Path) -> None:
    assert run(directory, "cat a.cdxj | cdxmill zipnum -q -o made -").stderr == b""


def test_split_points_from_a_pipe_are_those_of_the_file(directory: Path) -> None:
    assert run(directory, "cdxmill sample -s 2 -o one.txt a.cdxj").returncode == 0
    assert run(directory, "cdxmill sample -s 2 -o two.txt - < a.cdxj").returncode == 0
    assert (directory / "one.txt").read_bytes() == (directory / "two.txt").read_bytes()


def test_an_archive_on_standard_input_is_indexed_without_a_name(directory: Path) -> None:
    done = run(directory, "cat a.warc.gz | cdxmill index -o - -")
    assert done.stdout == (directory / "a.cdxj").read_bytes().replace(b"a.warc.gz", b"-")
    done = run(directory, "cat a.warc.gz | cdxmill index -o made -")
    assert done.returncode == 2
    assert b"has no name for its output" in done.stderr
    assert not (directory / "made").exists()


@pytest.mark.parametrize("redirection", ["0> made.cdxj", "<&-"])
@pytest.mark.parametrize("command", ["zipnum -q -s 1 -o made -", "sample -q -s 2 -o made.txt -"])
def test_standard_input_that_cannot_be_read_is_an_error(
    command: str, redirection: str, directory: Path
) -> None:
    done = run(directory, f"cdxmill {command} {redirection}")
    assert done.returncode in (1, 2)
    assert b"-: cannot be read (Bad file descriptor)" in done.stderr
    assert b"Traceback" not in done.stderr
    assert not (directory / "made").exists()


def test_a_truncated_archive_on_standard_input_is_a_failure_of_it(directory: Path) -> None:
    done = run(directory, "head -c 1000 a.warc.gz | cdxmill index -q -o - -")
    assert done.returncode == 1
    assert done.stderr.startswith(b"-@"), done.stderr


def test_a_named_pipe_is_read_and_keeps_its_name(directory: Path) -> None:
    (directory / "pipes").mkdir()
    with named_pipe(directory / "pipes/a.warc.gz", (directory / "a.warc.gz").read_bytes()):
        done = run(directory, "cdxmill index -o - pipes/a.warc.gz")
    assert done.stdout == (directory / "a.cdxj").read_bytes()


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("cdxmill zipnum -o made - - < a.cdxj", b"given twice"),
        ("cdxmill index -o - --manifest - - < a.warc.gz", b"not both"),
        ("cdxmill build -o made - < a.warc.gz", b"cannot read an archive from a pipe"),
    ],
)
def test_what_a_pipe_cannot_be_is_refused(line: str, reason: bytes, directory: Path) -> None:
    done = run(directory, line)
    assert done.returncode == 2
    assert reason in done.stderr
    assert not (directory / "made").exists()


def test_an_empty_standard_input_is_reported(directory: Path) -> None:
    done = run(directory, "cdxmill zipnum -o made - < /dev/null")
    assert done.returncode == 1
    assert b"the file is empty" in done.stderr
    assert not (directory / "made/cluster.json").exists()


LISTS = {
    "lookup wanted -i PIPE": ("*.com", "lookup wanted *.com"),
    "copy --dry-run wanted -i PIPE": ("*.com", "copy --dry-run wanted *.com"),
    "prefix-index search x.tree -i PIPE": ("*.com", "prefix-index search x.tree *.com"),
    "lookup PIPE *.com": ("a.cdxj.gz", "lookup a.cdxj *.com"),
    "lookup PIPE,wanted * --count": ("a.cdxj", "lookup wanted * --count"),
    "lookup PIPE *": ("", "lookup a.cdxj http://absent.example/"),
    "copy --dry-run PIPE": ("a.cdxj", "copy --dry-run a.cdxj"),
    "verify -q wanted --against PIPE": ("a.cdxj", "verify -q wanted --against a.cdxj"),
    "zipnum -q -o made --splits PIPE a.cdxj": ("wanted/splits.txt", "lookup wanted http://absent.example/"),
}
"""Commands that read a pipe, with what comes through it, and a command that prints the same."""


def test_a_list_may_be_a_pipe(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(directory)
    assert main(["prefix-index", "build", "-q", "-o", "x.tree", "a.cdxj"]) == 0
    for piped, (content, plain) in LISTS.items():
        assert main(plain.split()) == 0
        wanted = capfd.readouterr().out
        file = directory / content
        with piping(file.read_bytes() if file.is_file() else content.encode()) as pipe:
            assert main(piped.replace("PIPE", pipe).split()) == 0, piped
        found = capfd.readouterr().out
        assert found == wanted, piped
    assert Path("made/cdx-00000.gz").read_bytes() == Path("wanted/cdx-00000.gz").read_bytes()


@contextmanager
def piping(content: bytes) -> Iterator[str]:
    """The path of a pipe with this content, as a shell gives it."""
    read, write = os.pipe()
    try:
        os.write(write, content)
        os.close(write)
        yield f"/dev/fd/{read}"
    finally:
        os.close(read)


def test_a_copy_of_lines_from_a_pipe_does_not_name_the_pipe(directory: Path) -> None:
    done = run(directory, "cdxmill copy -q -o out --archives . - < a.cdxj")
    assert done.returncode == 0, done.stderr
    (archive,) = (directory / "out").glob("*.warc.gz")
    assert b", copied from index lines\r\n" in gzip.decompress(archive.read_bytes())


def test_index_lines_come_from_standard_input(directory: Path) -> None:
    done = run(directory, "cdxmill lookup - '*' --limit 1 < a.cdxj")
    assert done.stdout == run(directory, "cdxmill lookup wanted '*' --limit 1").stdout != b""


@pytest.mark.parametrize("quiet", [False, True])
def test_copies_of_pipes_are_whole_and_deleted_at_the_end(
    quiet: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    notes: list[str] = []
    large = os.urandom(pipes._CHUNK + 5)
    contents = {"a": large, "b.gz": gzip.compress(large, 0), "empty": b""}
    with pipes.Pipes(Failures(write=notes.append), quiet=quiet) as copies:
        assert copies.copy_of(str(tmp_path / "absent")) is None
        assert copies.copy_of(str(tmp_path)) is None
        assert not copies.has(str(tmp_path / "absent"))
        for name, content in contents.items():
            with named_pipe(tmp_path / f"pipe-{name}", content) as named:
                path = copies.copy_of(named)
            assert path is not None
            assert copies.has(path)
            assert Path(path).read_bytes() == content
            assert path.endswith(".gz") == content.startswith(b"\x1f\x8b")
        with pytest.raises(UsageError, match="was given twice, but it can be read only once"):
            copies.copy_of(str(tmp_path / "pipe-a"))
        assert not copies.has(str(tmp_path / "pipe-a"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["pipe-a", "pipe-b.gz", "pipe-empty"]
    assert len(notes) == (0 if quiet else 3)


def test_a_file_is_where_it_is_and_a_pipe_is_a_temporary_copy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    (tmp_path / "file").write_bytes(b"file")
    with pipes.unpiped(str(tmp_path / "file")) as place:
        assert place.text == str(tmp_path / "file")
    with named_pipe(tmp_path / "pipe", b"content") as named, pipes.unpiped(named) as place:
        assert place.read_bytes() == b"content"
        assert place.text != named
    assert not place.exists()


def test_a_pipe_that_fails_is_an_error_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"absent: cannot be read \(No such file"), pipes.open_pipe("absent"):
        pass
    with (
        pytest.raises(InputError, match=r"cannot be read \(Is a directory\)"),
        pipes.open_pipe(str(tmp_path)),
    ):
        pass
    with (
        pytest.raises(InputError, match=r"mem: cannot be read \(Input/output error\)"),
        pipes.open_pipe("/proc/self/mem") as read,
    ):
        read(10)
    monkeypatch.setattr("sys.stdin", None)
    with pytest.raises(InputError, match=r"-: cannot be read \(Bad file descriptor\)"), pipes.open_pipe("-"):
        pass


def test_standard_input_is_read_and_stays_open(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    kept = os.dup(0)
    with (tmp_path / "a").open("rb") as file:
        os.dup2(file.fileno(), 0)
    try:
        for named, text in (("-", b"con"), ("/dev/stdin", b"")):
            with pipes.open_pipe(named) as read:
                assert read(3) == text
        os.fstat(0)
    finally:
        os.dup2(kept, 0)
        os.close(kept)
    assert [pipes.is_pipe(named) for named in ("-", "/dev/stdin", "a\0b", str(tmp_path))] == [
        True,
        True,
        False,
        False,
    ]


@pytest.fixture
def stdin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file that is read as standard input, also as a manifest; the working directory has it, and a.warc."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    for name in ("stdin", "a.warc"):
        Path(name).write_text("a.warc\n")
    monkeypatch.setattr(pipes, "_standard_input", lambda: io.BytesIO(Path("stdin").read_bytes()))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"a.warc\n")))
    return Path("stdin")


@pytest.mark.parametrize(
    ("named", "manifest", "with_pipes", "found"),
    [
        (["-"], None, True, ["-"]),
        (["/dev/stdin"], None, True, ["-"]),
        (["a.warc", "-"], "stdin", True, ["a.warc", "-", "a.warc"]),
        (["a.warc"], "-", True, ["a.warc", "a.warc"]),
        (["-", "a.warc"], "-", True, None),
        (["-", "a.warc"], "-", False, ["-", "a.warc", "a.warc"]),
    ],
)
def test_standard_input_is_read_for_one_thing(
    named: list[str], manifest: str | None, with_pipes: bool, found: list[str] | None, stdin: Path
) -> None:
    asked = ArchiveInputs(named, manifest=manifest)
    with pipes.Pipes(Failures(), quiet=True) as copies:
        if found is None:
            with pytest.raises(UsageError, match=r"^- can be an archive or the manifest, not both$"):
                find_archives(asked, Failures(), copies)
        else:
            archives = find_archives(asked, Failures(), copies if with_pipes else None)
            assert [one.filename for one in archives] == found
            assert [one.label for one in archives if one.filename == "-"] == [
                one for one in named if one[-1] != "c"
            ]


def test_copies_have_names_that_a_disk_can_have_and_lie_together(tmp_path: Path, stdin: Path) -> None:
    long = "x" * 200
    with pipes.Pipes(Failures(), quiet=True) as copies, named_pipe(tmp_path / long, b"") as named:
        first, second = copies.copy_of("-"), copies.copy_of(named)
        assert first is not None and second is not None
        assert Path(first).parent == Path(second).parent
        assert (Path(first).name, Path(second).name) == ("1-standard-input", f"2-pipe-{long[:100]}")
        with pytest.raises(UsageError, match="was given twice"):
            copies.copy_of("-")


@pytest.mark.parametrize(
    ("named", "name"),
    [
        ("-", "-"),
        ("/dev/stdin", "-"),
        ("/dev/fd/63", "-"),
        ("/proc/self/fd/3", "-"),
        ("/devices/a.warc", "a.warc"),
        ("dev/a.warc", "a.warc"),
    ],
)
def test_a_pipe_of_a_shell_has_no_name(named: str, name: str) -> None:
    assert pipes.filename_of(named) == name
