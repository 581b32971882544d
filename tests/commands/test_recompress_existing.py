"""`recompress` and outputs that exist: the same command changes nothing, and nothing is overwritten unasked."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
import zstandard

from cdxmill.cli.main import main
from cdxmill.commands.per_archive.ask import repacking_options
from cdxmill.errors import UsageError
from cdxmill.options.packing import Recompressing

from ..material.existing import directory, errors, state

__all__ = ["directory"]

OUTPUT = "out/a.warc.zst"


def recompress(*args: str) -> int:
    return main(["recompress", "-p", "1", "-o", "out", *args])


def test_the_same_command_changes_nothing(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert recompress("a.warc.gz") == 0
    assert recompress("a.warc.gz", "b.warc.gz") == 0
    assert "of 1 archive, 1 up to date" in errors(capfd)
    before = state()
    assert recompress("./a.warc.gz", "b.warc.gz") == 0
    assert "0 records of 0 archives, 2 up to date" in errors(capfd)
    assert state() == before


@pytest.mark.parametrize(
    ("change", "options", "reason"),
    [
        (lambda: shutil.copyfile("b.warc.gz", "a.warc.gz"), (), "an earlier state of a.warc.gz"),
        (lambda: None, ("--level", "1"), "was made with other options"),
        (lambda: Path("out/.outputs.tsv").unlink(), (), "cdxmill has no record of it"),
        (lambda: shutil.copyfile("out/b.warc.zst", OUTPUT), (), "was not made from"),
    ],
    ids=["changed", "other level", "no record", "of another archive"],
)
def test_other_outputs_are_not_overwritten(
    change: object, options: tuple[str, ...], reason: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert recompress("a.warc.gz", "b.warc.gz") == 0
    assert callable(change)
    change()
    before = state()
    errors(capfd)
    assert recompress("a.warc.gz", *options) == 2
    (line,) = errors(capfd).splitlines()
    assert line.startswith(f"cdxmill: {OUTPUT}: ")
    assert reason in line
    assert state() == before
    assert recompress("a.warc.gz", *options, "--replace") == 0
    assert state()[OUTPUT] != before[OUTPUT]


def test_update_keeps_what_was_written_with_other_options(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert recompress("a.warc.gz", "b.warc.gz") == 0
    before = state()
    assert recompress("a.warc.gz", "b.warc.gz", "--level", "1", "--update") == 0
    assert "2 skipped" in errors(capfd)
    assert state() == before


@pytest.mark.parametrize("options", [(), ("--replace",)])
def test_an_input_is_never_an_output(
    options: tuple[str, ...], directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    before = Path("a.warc.gz").read_bytes()
    Path("here").symlink_to(".")
    for place in (".", "here"):
        call = ["recompress", "--to", "gz", "-o", place, "a.warc.gz", *options]
        assert main(call) == 2
        assert "is an input; choose another output" in errors(capfd)
    assert Path("a.warc.gz").read_bytes() == before


def test_an_archive_without_a_whole_record_gives_no_output(directory: Path) -> None:
    assert recompress("a.warc.gz") == 0
    before = Path(OUTPUT).read_bytes()
    Path("a.warc.gz").write_bytes(Path("a.warc.gz").read_bytes()[:200])
    assert recompress("a.warc.gz", "--replace") == 1
    assert Path(OUTPUT).read_bytes() == before, "the output of earlier stays"
    assert "truncated" in Path("out/failures.tsv").read_text()
    assert recompress("b.warc.gz") == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--to", "xz"), "invalid --to 'xz': expected one of zst, gz"),
        (("--to", "gz", "--level", "13"), "--level: gz has levels 1 to 12"),
        (("--dictionary", "a.warc.gz"), "--dictionary: a.warc.gz: is not a zstd dictionary"),
        (("--dictionary", "absent"), "--dictionary: absent: cannot be read"),
        (("--to", "gz", "--dictionary", "a.warc.gz"), "--dictionary: a.warc.gz: is not a zstd dictionary"),
        (("--update", "--replace"), "cannot be used together"),
        (("-",), "an archive from a pipe has no name for its output; give a file"),
    ],
)
def test_wrong_options_change_nothing(
    options: tuple[str, ...], message: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert recompress("b.warc.gz", *options) == 2
    assert message in errors(capfd)
    assert not Path("out").exists()


def test_a_dictionary_becomes_a_part_of_the_archive(directory: Path) -> None:
    records: list[bytes | bytearray | memoryview] = [b"number %d of many" % (n * n) * 9 for n in range(3000)]
    Path("d").write_bytes(zstandard.train_dictionary(4096, records, dict_id=40000).as_bytes())
    assert recompress("a.warc.gz", "--dictionary", "d") == 0
    data = Path(OUTPUT).read_bytes()
    assert data.startswith(b"\x5d\x2a\x4d\x18")
    first = 8 + int.from_bytes(data[4:8], "little")
    assert zstandard.ZstdDecompressor().decompress(data[8:first]) == Path("d").read_bytes()
    assert zstandard.get_frame_parameters(data[first:]).dict_id == 40000
    assert main(["recompress", "--to", "gz", "-o", "back", OUTPUT]) == 0
    assert recompress("a.warc.gz") == 2, "without a dictionary it is another archive"


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        ("recompress --estimate -", "an archive from a pipe cannot be read twice"),
        ("recompress -o out -", "an archive from a pipe has no name for its output"),
        ("reindex -o out --offsets a.offsets.gz -", "an index from a pipe has no name for its output"),
        ("scan -o out --where status=200 -", "an archive from a pipe has no name for its output"),
        ("build -o out -", "build cannot read an archive from a pipe"),
    ],
)
def test_a_pipe_is_refused_by_commands_that_name_outputs_after_inputs(
    call: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Before it is read, or a directory is made."""
    monkeypatch.chdir(tmp_path)
    assert main(call.split()) == 2
    assert reason in capfd.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("to", "highest"), [("gz", 12), ("zst", 22)])
def test_the_highest_level_is_one_that_the_library_has(to: str, highest: int) -> None:
    assert repacking_options(Recompressing(inputs="a.warc.gz", to=to, level=highest)).level == highest
    with pytest.raises(UsageError, match=f"--level: {to} has levels 1 to {highest}"):
        repacking_options(Recompressing(inputs="a.warc.gz", to=to, level=highest + 1))
