"""A disk that fails while a run decides what of its outputs to keep: no output is called foreign, old or gone for it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill import recompress as recompress_now
from cdxmill.cli.main import main
from cdxmill.errors import OutageError
from cdxmill.storage import local
from cdxmill.storage.location import Location

from ..material.failing_disk import fail_reads

OUTPUT, PROOF = "out/a.warc.zst", "out/a.warc.zst.proof.json"


def recompress(*words: str) -> int:
    return main(["recompress", "-q", "-p", "1", "-o", "out", *words, "a.warc.gz"])


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pywb_warcs: Path) -> Path:
    """`a.warc.gz`, and `out/a.warc.zst` that was made of it."""
    monkeypatch.chdir(tmp_path)
    shutil.copyfile(pywb_warcs / "example.warc.gz", "a.warc.gz")
    assert recompress() == 0
    return tmp_path


def state() -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in Path("out").iterdir() if path.is_file()}


def touch() -> None:
    os.utime("a.warc.gz", (1, 1))


def forget() -> None:
    Path("out/.outputs.tsv").unlink()


def nothing() -> None:
    pass


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize(
    ("change", "name"),
    [
        (touch, "a.warc.gz"),
        (touch, PROOF),
        (nothing, PROOF),
        (nothing, "a.warc.gz"),
        (nothing, OUTPUT),
        (forget, OUTPUT),
        (forget, "a.warc.gz"),
    ],
)
def test_a_disk_that_fails_stops_the_run_and_changes_nothing(
    change: Callable[[], None], name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    change()
    before = state()
    with monkeypatch.context() as patch:
        fail_reads(patch, name)
        assert recompress() == 3
    assert "Input/output error" in capsys.readouterr().err
    assert state() == before


@pytest.mark.usefixtures("here")
def test_an_archive_whose_state_is_unknown_is_read_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = state()
    shutil.copyfile("a.warc.gz", "b.warc.gz")

    def unknown(path: str) -> None:
        raise OutageError(path, "cannot be read (Input/output error)")

    with monkeypatch.context() as patch:
        patch.setattr(
            Location,
            "status",
            lambda place: unknown(place.text) if place.name == "a.warc.gz" else local.status(place.local),
        )
        assert recompress("b.warc.gz") == 3
    assert "a.warc.gz: cannot be read (Input/output error)" in capsys.readouterr().err
    assert state()[OUTPUT] == before[OUTPUT]
    assert "out/b.warc.zst" in state()  # it costs no other


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("proof", [b"{", b"[]", b""])
def test_a_file_of_somebody_else_in_place_of_the_proof_is_not_overwritten(
    proof: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(PROOF).write_bytes(proof)
    for change in (nothing, touch):
        change()
        assert recompress() == 2
        assert PROOF in capsys.readouterr().err or change is touch
        assert Path(PROOF).read_bytes() == proof
    assert recompress("--replace") == 0
    assert recompress_now("a.warc.gz", output="out", processes=1).kept == 1


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("name", ["out/a.warc.zst.offsets.gz", "out/a.warc.zst.cdx.gz"])
def test_a_file_beside_an_archive_that_cannot_be_read_now_is_not_called_foreign(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert recompress("--replace", "--offsets", "--index") == 0
    before = state()
    assert name in before
    with monkeypatch.context() as patch:
        fail_reads(patch, name)
        assert recompress("--replace") == 3
    assert "Input/output error" in capsys.readouterr().err
    assert state() == before
