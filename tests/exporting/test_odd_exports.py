"""Exports that fail in the middle, or whose options are blank; and the members of a packed text."""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.commands.exporting import text

from ..material.failing_disk import fail_reads


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pywb_warcs: Path) -> Path:
    """The cluster c of w/example.warc.gz and w/example2.warc.gz."""
    monkeypatch.chdir(tmp_path)
    Path("w").mkdir()
    for name in ("example.warc.gz", "example2.warc.gz"):
        shutil.copyfile(pywb_warcs / name, Path("w", name))
    assert main(["build", "-q", "-p", "1", "-s", "1", "-o", "c", "w"]) == 0
    return tmp_path


def export(form: str, output: str, *words: str) -> int:
    processes = ["-p", "1"] if form == "wacz" else []
    return main(["export", "-q", *processes, "--to", form, "-o", output, *words, "c"])


@pytest.mark.usefixtures("here")
def test_a_wacz_without_archives_that_cannot_be_read_now_is_not_written(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        fail_reads(patch, "example2.warc.gz")
        assert export("wacz", "x.wacz") == 3
    assert (
        "the WACZ is not complete: a machine was at fault; run it again to continue"
        in capsys.readouterr().err
    )
    assert not Path("x.wacz").exists()
    assert export("wacz", "x.wacz") == 0
    with zipfile.ZipFile("x.wacz") as package:
        index = gzip.decompress(package.read("indexes/index.cdx.gz"))
    assert index.count(b"\n") == 4
    assert sorted(path.name for path in Path().iterdir()) == ["c", "w", "x.wacz"]


@pytest.mark.usefixtures("here")
def test_a_wacz_that_is_continued_was_created_when_it_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    for second, command, status in ((0, "false", 3), (9, "cat /dev/null", 3), (18, "", 0)):
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(second))
        assert export("wacz", "x.wacz", *(["--sign-command", command] if command else [])) == status
    with zipfile.ZipFile("x.wacz") as package:
        assert json.loads(package.read("datapackage.json"))["created"] == "1970-01-01T00:00:00Z"


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("command", "reason"), [(" ", "is empty; give a program"), ("'", "No closing quotation")]
)
def test_a_blank_command_for_the_signature_is_refused(
    command: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("wacz", "x.wacz", "--sign-command", command) == 2
    assert reason in capsys.readouterr().err
    assert not Path("x.wacz").exists()


@pytest.mark.usefixtures("here")
def test_a_packed_text_has_no_empty_member_at_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    assert export("cdxj", "a.cdxj.gz") == 0
    monkeypatch.setattr(text, "_HELD", 1)  # all is written before the end
    assert export("cdxj", "b.cdxj.gz") == 0
    assert gzip.decompress(Path("a.cdxj.gz").read_bytes()) == gzip.decompress(Path("b.cdxj.gz").read_bytes())
    assert Path("b.cdxj.gz").stat().st_size == Path("a.cdxj.gz").stat().st_size
