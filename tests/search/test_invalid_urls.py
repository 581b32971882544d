"""URLs that cannot be looked up, and lines that cannot be parsed, are reported once. The others are answered."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdxmill import Cluster, lookup_many
from cdxmill.cli.main import main
from cdxmill.errors import UsageError

from ..material.clusters import write_raw_cluster

LINE = b'%b 20200101000000 {"url": "http://%b/", "status": "200", "own": "x", "offset": "0", "filename": "a"}'
LINES = [LINE % (b"com,%c)/" % letter, b"%c.com" % letter) for letter in b"abcd"]
WRONG = b'com,a)/b 20200101000000 {"url": "http://a.com/", "own: "x"}'
TOLD = "cdxmill: d.com b.com: not a URL that can be looked up (the range ends before it begins: 'com,b)/' sorts before 'com,d)/')"


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The clusters C and D, and the file x.cdxj with the line of D and an invalid one."""
    monkeypatch.chdir(tmp_path)
    write_raw_cluster(tmp_path / "C", LINES[:3], 2)
    write_raw_cluster(tmp_path / "D", LINES[3:])
    write_raw_cluster(tmp_path / "W", [LINES[0], WRONG, *LINES[1:]])
    Path("x.cdxj").write_bytes(LINES[3] + b"\n")
    Path("urls").write_bytes(b"a.com b.com\nd.com b.com\nb.com d.com\n")
    return tmp_path


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("source", ["C", "C,D", "C,x.cdxj"])
@pytest.mark.parametrize(
    ("words", "lines"),
    [([], 3), (["--count"], 2), (["--page", "0"], 3), (["--show-num-pages"], 2), (["--estimate"], 2)],
)
def test_one_url_that_cannot_be_looked_up_costs_no_other(
    source: str, words: list[str], lines: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["lookup", source, "-i", "urls", "--match-type", "range", *words]) == 1
    told = capfd.readouterr()
    assert told.err.splitlines() == [TOLD]
    assert len(told.out.splitlines()) == lines


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("words", [["lookup", ","], ["lookup", " , "], ["get", ","]])
def test_a_source_without_a_name_is_told(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main([*words, "a.com"]) == 2
    assert capfd.readouterr().err.startswith("cdxmill: no source given; name a cluster, a crawl, ")


@pytest.mark.usefixtures("here")
@pytest.mark.parametrize("words", [["--filter", "own:x"], ["--fl", "urlkey,own"]])
def test_the_fields_of_a_cluster_are_known_from_the_lines_that_are_sound(
    words: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["lookup", "W", "a.com/*", *words]) == 1
    told = capfd.readouterr()
    assert len(told.out.splitlines()) == 1
    assert "invalid JSON in a line" in told.err
    assert main(["lookup", "W", "a.com/*", *words, "--filter", "other:x"]) == 2
    assert "unknown field 'other', which W does not have" in capfd.readouterr().err


@pytest.mark.usefixtures("here")
def test_the_python_functions_raise_what_is_wrong_with_a_url() -> None:
    with Cluster("C") as cluster:
        for call in (cluster.count, lambda url, match_type: list(cluster.lookup(url, match_type=match_type))):
            with pytest.raises(UsageError, match="the range ends before it begins"):
                call("d.com b.com", match_type="range")
    with pytest.raises(UsageError, match="the range ends before it begins"):
        list(lookup_many("C", ["a.com b.com", "d.com b.com"], match_type="range"))
