"""The other detector of languages: it decides fields, conditions, and the language in WET files."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from cdxmill import UsageError, scan
from cdxmill.stages.pages.detectors import detect_language

TEXTS = {
    "de": "Hier steht ein kurzer Satz",
    "es": "La casa es roja y grande",
    "ht": "Mwen renmen peyi Ayiti anpil, li bèl",
    "": "1234 5678",
}


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    path = tmp_path / "a.warc"
    with path.open("wb") as file:
        for code, text in TEXTS.items():
            block = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{text}".encode()
            head = f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.org/{code}\r\nWARC-Date: 2020-01-01T00:00:00Z\r\nContent-Length: {len(block)}\r\n\r\n"
            file.write(head.encode() + block + b"\r\n\r\n")
    return path


def test_fields_and_conditions_are_those_of_the_detector(archive: Path, tmp_path: Path) -> None:
    scan(str(archive), output=tmp_path / "o", detector="py3langid", extract="url,lang,confidence", to="jsonl")
    rows = [json.loads(line) for line in (tmp_path / "o/a.warc.jsonl").read_bytes().splitlines()]
    assert [row["lang"] for row in rows] == list(TEXTS)
    assert all(0 <= row["confidence"] <= 1 for row in rows)
    found = scan(str(archive), output=tmp_path / "z", detector="py3langid", where="lang=ht", to="jsonl")
    assert (found.matches, found.failures) == (1, [])
    assert detect_language(TEXTS["ht"]).code != "ht", "afterwards, all is as it was"


def test_texts_have_the_language_of_the_detector(archive: Path, tmp_path: Path) -> None:
    scan(str(archive), output=tmp_path / "o", detector="py3langid", to="wet.gz", where="lang=ht")
    rows = scan(
        str(tmp_path / "o/a.warc.wet.gz"),
        output=tmp_path / "p",
        extract="warc.warc-identified-content-language",
        to="jsonl",
    )
    assert rows.matches == 2
    assert b"hat" in (tmp_path / "p/a.warc.wet.jsonl").read_bytes()


def test_a_language_that_the_detector_does_not_know_is_wrong_usage(archive: Path, tmp_path: Path) -> None:
    for detector, code in (("fast", "ht"), ("py3langid", "ba")):
        with pytest.raises(UsageError, match="expected a code such as en"):
            scan(str(archive), output=tmp_path / "o", detector=detector, where=f"lang={code}")


def test_a_missing_library_is_named(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "py3langid", None)
    with pytest.raises(
        UsageError, match=r"py3langid is not installed; pip install '\./cdxmill\[languages\]'"
    ):
        scan(str(archive), output=tmp_path / "o", detector="py3langid", extract="lang")
