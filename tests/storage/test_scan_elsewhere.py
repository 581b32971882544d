"""`scan` of an archive whose server gives no answer: it is scanned once more at the end, and reported if that fails, too."""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.storage import patience

from .range_server import RangeServer, serving

NAMES = ("example.warc.gz", "example2.warc.gz")
AGAIN = "; tried again at the end"


@pytest.fixture
def server(pywb_warcs: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[RangeServer]:
    """A server with two archives. A request is tried twice."""
    for name, value in (("FIRST_WAIT", 0.001), ("LONGEST_WAIT", 0.002), ("TRIES", 2), ("MORE_TRIES", 2)):
        monkeypatch.setattr(patience, name, value)
    with serving() as found:
        for name in NAMES:
            found.add(f"/{name}", (pywb_warcs / name).read_bytes())
        yield found


def scan(server: RangeServer, out: Path, *words: str) -> int:
    urls = [f"{server.url}/{name}" for name in NAMES]
    return main(["scan", "-p", "1", "-o", str(out), "--extract", "url", *words, *urls])


def rows(out: Path) -> dict[str, int]:
    found = out.rglob("*.jsonl.gz")
    return {path.name.partition(".")[0]: gzip.decompress(path.read_bytes()).count(b"\n") for path in found}


@pytest.mark.parametrize("sample", [(), ("--sample", "3")], ids=" ".join)
@pytest.mark.parametrize("broken", [0, 3, 99])
def test_an_archive_without_an_answer_is_scanned_once_more(
    sample: tuple[str, ...],
    broken: int,
    server: RangeServer,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """A sample reads the archives twice."""
    assert scan(server, tmp_path / "whole", *sample) == 0
    capfd.readouterr()
    archive = server.files[f"/{NAMES[0]}"]
    archive.statuses = [502] * broken
    assert scan(server, tmp_path / "out", *sample) == (3 if broken == 99 else 0)
    told = capfd.readouterr().err
    assert told.count(AGAIN) == {0: 0, 3: 1}.get(broken, 1 + bool(sample))
    assert told.count("did not answer (502) after 2 tries; run it again") == (broken == 99)
    if broken == 99:
        assert rows(tmp_path / "out") == {"example2": 3}
        assert "3 of 3 records in 2 archives match, 1 that cannot be read" in told
        archive.statuses.clear()
        assert scan(server, tmp_path / "out", *sample, "--replace" if sample else "--update") == 0
    assert rows(tmp_path / "out") == rows(tmp_path / "whole")
    assert sum(rows(tmp_path / "out").values()) == (3 if sample else 9)


@pytest.mark.parametrize("status", [403, 404])
def test_an_archive_that_is_refused_or_missing_is_not_scanned_again(
    status: int, server: RangeServer, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    server.files[f"/{NAMES[0]}"].statuses = [status] * 99
    assert scan(server, tmp_path / "out") in (1, 3)
    assert AGAIN not in capfd.readouterr().err
    assert rows(tmp_path / "out") == {"example2": 3}
