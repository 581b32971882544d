"""Inputs and options of which `prefix-index build` makes no index, each told in a line."""

from __future__ import annotations

from pathlib import Path

import pytest

import cdxmill
from cdxmill.cli.main import main
from cdxmill.errors import RefusedError, UsageError
from cdxmill.storage.location import Location

from ..storage.range_server import serving

LINE = (
    'com,a)/ 20200101000000 {"url": "http://a.com/", "offset": "0", "length": "5", "filename": "a.warc.gz"}\n'
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file a.cdxj, and a cluster of no line: exclude.txt has all of it."""
    monkeypatch.chdir(tmp_path)
    Path("a.cdxj").write_text(LINE)
    Path("blank.cdxj").write_text("\n")
    Path("none").mkdir()
    Path("none/exclude.txt").write_text("a.com/*\n")
    assert main(["zipnum", "-q", "-p", "1", "-s", "1", "-o", "none", "a.cdxj"]) == 0
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        (
            ["--block-size", "10", "a.cdxj"],
            2,
            "--block-size: invalid block size 10: expected 36 to 16777216 bytes",
        ),
        (["-", "-"], 2, "-: was given twice, but it can be read only once"),
        (["none"], 1, "none: has no lines for the index; check the inputs"),
        (["blank.cdxj"], 1, "blank.cdxj: has no lines for the index; check the inputs"),
    ],
)
def test_what_gives_no_index_is_told(
    words: list[str], status: int, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert main(["prefix-index", "build", "-q", "-o", "x.tree", *words]) == status
    assert capsys.readouterr().err == f"cdxmill: {reason}\n"
    assert not Path("x.tree").exists()


def test_nothing_at_all_is_no_input() -> None:
    with pytest.raises(UsageError, match="no input"):
        cdxmill.build_prefix_index([], output="x.tree")


@pytest.mark.usefixtures("here")
def test_a_url_that_may_not_be_looked_below_is_a_file(
    here: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A bucket that may not be listed refuses a cluster.idx that is not there, and gives the file itself."""

    def refused(place: Location) -> bool:
        raise RefusedError(place.text, "HTTP 403")

    monkeypatch.setattr(Location, "exists", refused)
    with serving() as server:
        server.add("/lines", LINE.encode())
        assert main(["prefix-index", "build", "-q", "--replace", "-o", "x.tree", f"{server.url}/lines"]) == 0
    monkeypatch.undo()
    capfd.readouterr()
    assert main(["lookup", str(here / "x.tree"), "a.com", "--count"]) == 0
    assert capfd.readouterr().out == "1\n"
