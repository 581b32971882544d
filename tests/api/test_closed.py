"""A cluster that is closed has no file open, of its own or of an archive, and answers nothing."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import cdxmill
from cdxmill.errors import UsageError
from tests.material.open_files import open_files

URL = "http://example.com/"


def test_a_closed_cluster_has_no_file_open(pywb_warcs: Path, tmp_path: Path) -> None:
    shutil.copy(pywb_warcs / "example2.warc.gz", tmp_path)
    cdxmill.build(tmp_path / "example2.warc.gz", output=tmp_path / "C", shards=1, processes=1)
    with cdxmill.Cluster(tmp_path / "C") as opened:
        record = opened.get(URL)
        assert b"Example Domain" in record.payload
        assert opened.get(URL, record.timestamp, decode=False).url == URL
        assert {Path(path).name for path in open_files(tmp_path)} >= {"example2.warc.gz", "cdx-00000.gz"}
        begun = opened.lookup("*")
        next(begun)
    assert open_files(tmp_path) == []
    for ask in (lambda: opened.get(URL), lambda: opened.count(URL), lambda: list(opened.lines(URL))):
        with pytest.raises(UsageError, match="was closed"):
            ask()


def test_a_closed_cluster_opens_no_archive(
    pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cdxmill.build(pywb_warcs / "example2.warc.gz", output=tmp_path / "C", shards=1, processes=1)
    with cdxmill.Cluster(tmp_path / "C") as opened:
        pass
    monkeypatch.delattr("cdxmill.api.searches.archives_of")
    with pytest.raises(UsageError, match="was closed"):
        opened.get(URL)
