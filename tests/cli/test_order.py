"""The index comes first, then the URL. A command that gets them in the other order says so."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill.cli.main import main

LINE = 'com,example)/ 20200101000000 {"url": "http://example.com/", "length": "9", "offset": "0", "filename": "a"}\n'
SWAPPED = "is no index, but {} is; give {} first, then the URL\n"


@pytest.fixture(autouse=True)
def _indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster, a CDXJ file and a prefix B-tree."""
    monkeypatch.chdir(tmp_path)
    Path("a.cdxj").write_text(LINE)
    assert main(["zipnum", "-q", "-s", "1", "-o", "cluster", "a.cdxj"]) == 0
    assert main(["prefix-index", "build", "-q", "-o", "a.tree", "a.cdxj"]) == 0


@pytest.mark.parametrize("call", ["lookup", "lookup --count", "get", "copy -o out", "prefix-index search"])
@pytest.mark.parametrize(
    "index",
    [
        *("cluster", "a.cdxj", "a.tree", "CC-MAIN-2024-22", "s3://bucket/cluster"),
        *(f"http://127.0.0.1:9/{name}" for name in ("a.cdxj", "cdx.gz/a.cdx.gz", "a.tree", "cl/cluster.idx")),
    ],
)
@pytest.mark.parametrize("url", ["example.com", "*.example.com"])
def test_swapped_arguments_are_named(
    call: str, index: str, url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*call.split(), url, index]) == 2
    assert capsys.readouterr().err == f"cdxmill: {url}: {SWAPPED.format(index, index)}"


@pytest.mark.parametrize("call", ["lookup", "get", "copy -o out", "prefix-index search"])
def test_other_errors_stay(call: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*call.split(), "absent", "http://example.com/"]) in (1, 2)
    assert "is no index" not in capsys.readouterr().err
    Path("example.com").write_text(LINE)  # a page and a file may have one name
    assert main([*call.split(), "absent.cdxj", "example.com"]) in (1, 2)
    assert "is no index" not in capsys.readouterr().err
