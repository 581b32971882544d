"""`index -o DIR` and outputs that exist: the same command changes nothing, and nothing is overwritten unasked."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from cdxmill.cli.main import main

from ..material.existing import directory, errors, state

__all__ = ["directory"]


def index(*args: str) -> int:
    return main(["index", "-p", "1", "-o", "out", *args])


def test_the_same_command_changes_nothing(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert index("a.warc.gz", "b.warc.gz") == 0
    before = state()
    for spelling in ("a.warc.gz", "./a.warc.gz"):
        assert index(spelling, "b.warc.gz") == 0
        assert "0 captures of 0 archives (0 B), 2 up to date" in errors(capfd)
    assert state() == before


def test_what_is_missing_is_indexed(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert index("a.warc.gz") == 0
    assert index("a.warc.gz", "b.warc.gz") == 0
    assert "1 archive (3.4 KiB), 1 up to date" in errors(capfd)
    Path("out/b.cdx.gz").unlink()
    assert index("a.warc.gz", "b.warc.gz") == 0
    assert Path("out/b.cdx.gz").stat().st_size


@pytest.mark.parametrize(
    ("change", "options", "reason"),
    [
        (lambda: os.utime("a.warc.gz"), (), "was made from an earlier state of a.warc.gz"),
        (
            lambda: shutil.copyfile("b.warc.gz", "a.warc.gz"),
            (),
            "was made from an earlier state of a.warc.gz",
        ),
        (lambda: None, ("--cdx11",), "was made with other options"),
        (lambda: None, ("--dir-root", ".."), "was made with other options"),
        (lambda: Path("out/.outputs.tsv").unlink(), (), "was changed, or cdxmill has no record of it"),
        (lambda: shutil.copyfile("out/b.cdx.gz", "out/a.cdx.gz"), (), "was changed, or was not made from"),
    ],
    ids=["touched", "smaller", "other format", "other name in lines", "no record", "of another program"],
)
def test_other_outputs_are_not_overwritten(
    change: object, options: tuple[str, ...], reason: str, directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert index("a.warc.gz", "b.warc.gz") == 0
    assert callable(change)
    change()
    if reason.startswith("was made from an earlier"):
        os.utime("a.warc.gz", (1 << 32, 1 << 32))
    before = state()
    capfd.readouterr()
    assert index("a.warc.gz", *options) == 2
    (line,) = errors(capfd).splitlines()
    assert line.startswith(f"cdxmill: out/a.cdx.gz: {reason}")
    assert "--replace" in line
    assert state() == before
    assert index("a.warc.gz", *options, "--replace") == 0
    assert state()["out/a.cdx.gz"] != before["out/a.cdx.gz"]


def test_the_number_of_refused_outputs_is_reported(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert index("a.warc.gz", "b.warc.gz") == 0
    capfd.readouterr()
    assert index("a.warc.gz", "b.warc.gz", "--cdx9") == 2
    assert "out/a.cdx.gz: was made with other options (2 such outputs); use --update" in errors(capfd)


def test_update_says_that_it_keeps_outputs_of_other_options(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert index("a.warc.gz", "b.warc.gz") == 0
    before = state()
    assert index("a.warc.gz", "b.warc.gz", "--update") == 0
    assert "note" not in errors(capfd)
    assert index("a.warc.gz", "b.warc.gz", "--cdx9", "--update") == 0
    note = "out/a.cdx.gz: note: kept, but it was made with other options (2 such outputs); use --replace"
    assert note in errors(capfd)
    assert state() == before


def test_an_archive_of_another_size_with_an_old_date_is_noticed(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert index("a.warc.gz") == 0
    shutil.copyfile("b.warc.gz", "a.warc.gz")
    os.utime("a.warc.gz", (5, 5))
    assert index("a.warc.gz") == 2
    assert index("a.warc.gz", "--update") == 0
    assert "1 archive" in errors(capfd)


@pytest.mark.parametrize("option", ["--update", "--replace"])
def test_an_output_of_0_bytes_is_never_kept(option: str, directory: Path) -> None:
    assert index("a.warc.gz") == 0
    whole = Path("out/a.cdx.gz").read_bytes()
    for options in ((), (option,)):
        os.truncate("out/a.cdx.gz", 0)
        assert index("a.warc.gz", *options) == 0
        assert Path("out/a.cdx.gz").read_bytes() == whole


def test_update_does_not_take_the_index_of_another_archive(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Two suffixes, and with a record two folders."""
    shutil.copyfile("b.warc.gz", "a.arc.gz")
    os.utime("a.arc.gz", (5, 5))
    for is_recorded in (True, False):
        assert index("a.warc.gz", "--replace") == 0
        if not is_recorded:
            Path("out/.outputs.tsv").unlink()
        before = state()
        for options in ((), ("--update",)):
            assert index("a.arc.gz", *options) == 2
            assert "was not made from a.arc.gz" in errors(capfd)
        assert state() == before


def test_update_does_not_take_the_index_of_another_directory(directory: Path) -> None:
    Path("x").mkdir()
    shutil.copyfile("b.warc.gz", "x/a.warc.gz")
    os.utime("x/a.warc.gz", (5, 5))
    Path("list").write_text("a.warc.gz\n")
    assert index("--manifest", "list") == 0
    assert index("--manifest", "list", "--root", "x", "--update") == 2
    assert index("--manifest", "list", "--root", f"{directory}/x/..", "--update") == 0


def test_update_keeps_outputs_that_are_newer(directory: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert index("a.warc.gz", "b.warc.gz") == 0
    before = state()
    assert index("a.warc.gz", "b.warc.gz", "--update", "--cdx9") == 0
    assert "2 skipped" in errors(capfd)
    assert state() == before
    os.utime("a.warc.gz", (1 << 32, 1 << 32))
    assert index("a.warc.gz", "b.warc.gz", "--update") == 0
    assert "1 skipped" in errors(capfd)


def test_update_and_replace_contradict_each_other(directory: Path) -> None:
    assert index("a.warc.gz", "--update", "--replace") == 2
    assert not Path("out").exists()


def test_a_row_of_a_killed_run_does_not_claim_the_output_of_another_archive(directory: Path) -> None:
    """The run was killed after it appended its row and before its output got the name."""
    shutil.copyfile("b.warc.gz", "a.arc.gz")
    assert index("a.warc.gz") == 0
    output = Path("out/a.cdx.gz").read_bytes()
    assert index("a.arc.gz", "--replace") == 0
    Path("out/a.cdx.gz").write_bytes(output)
    with Path("out/.outputs.tsv").open("ab") as file:
        file.write(b"a.cdx.gz\thalf a")
    assert index("a.arc.gz", "--update") == 2
    assert index("a.warc.gz") == 0
    assert index("a.warc.gz", "b.warc.gz") == 0
    assert index("a.warc.gz", "b.warc.gz") == 0, "the row after half a row is read"


def test_a_row_with_a_size_that_is_no_number_proves_nothing(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert index("a.warc.gz", "b.warc.gz") == 0
    table, size = Path("out/.outputs.tsv"), Path("out/a.cdx.gz").stat().st_size
    assert f"\t{size}\t" in table.read_text()
    table.write_text(table.read_text().replace(f"\t{size}\t", f"\t{size}x\t"))
    errors(capfd)
    assert index("a.warc.gz") == 2
    assert "--replace" in errors(capfd)
    assert index("a.warc.gz", "--replace") == 0
    assert index("a.warc.gz") == 0


def test_indexes_of_archives_that_are_gone_are_named_and_stay(
    directory: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    Path("c").mkdir()
    for name in ("c/c.warc.gz", "c/d.warc.gz"):
        shutil.copyfile("a.warc.gz", name)
    assert index("c", "a.warc.gz", "b.warc.gz") == 0
    assert index("b.warc.gz") == 0
    assert "gone" not in errors(capfd)  # the others are not named, but they exist
    shutil.move("c/c.warc.gz", "c.warc.gz")
    Path("a.warc.gz").unlink()
    assert index("b.warc.gz", "c.warc.gz", "--replace") == 0
    assert (
        "out: note: 1 index is of an archive that is gone (a.cdx.gz); delete what zipnum should not read\n"
        in errors(capfd)
    )
    shutil.rmtree("c")
    assert index("b.warc.gz") == 0
    assert "out: note: 2 indexes are of archives that are gone (a.cdx.gz, d.cdx.gz)" in errors(capfd)
    assert {path.name for path in Path("out").glob("*.gz")} == {f"{name}.cdx.gz" for name in "abcd"}
    Path("out/a.cdx.gz").unlink()
    Path("out/d.cdx.gz").unlink()
    assert index("b.warc.gz") == 0
    assert "gone" not in errors(capfd)
