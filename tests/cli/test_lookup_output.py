"""What `cdxmill lookup` prints, and its status: of one cluster or several, one URL or many, with what cannot be read."""

from __future__ import annotations

import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from cdxmill.cli.lookup import read_urls, urls_of
from cdxmill.cli.main import main
from cdxmill.errors import UsageError

from ..material.clusters import write_raw_cluster


def line(host: str) -> str:
    return f'com,{host})/ 2020 {{"url": "http://{host}.com/", "status": "200"}}\n'


@pytest.fixture(autouse=True)
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cluster C has a line of a.com, one of c.com that is no JSON, one of d.com, and z.com in a corrupt block.

    Of the cluster I, the first line of the index is corrupt.
    """
    monkeypatch.chdir(tmp_path)
    lines = [line("a"), "com,c)/ 2020 {\n", line("d"), line("z")]
    write_raw_cluster(Path("C"), [one.rstrip("\n").encode() for one in lines], 1)
    offset, size = map(int, Path("C/cluster.idx").read_text().splitlines()[-1].split("\t")[2:4])
    data = bytearray(Path("C/cdx-00000.gz").read_bytes())
    data[offset + 12 : offset + size] = bytes(size - 12)
    Path("C/cdx-00000.gz").write_bytes(data)
    write_raw_cluster(Path("I"), [one.rstrip("\n").encode() for one in lines], 1)
    index = Path("I/cluster.idx")
    index.write_text(index.read_text().replace("\t", " ", 3))
    Path("f.cdxj").write_text(line("a"))
    for name, text in {
        "good": "a.com\n\n d.com \n",
        "corrupt": "a.com\nz.com\nd.com\n",
        "bad": "a.com\nc.com\nhttp://x:y/\nd.com\n",
        "empty": "\n",
        "invalid": "http://x:y/\na.com\n",
    }.items():
        Path(name).write_text(text)
    return tmp_path


CORRUPT = "the block is corrupt (*; the lines of this block are missing; check it with cdxmill verify, or build the cluster again"
SKIPPED = ": invalid JSON in a line (*: '{'; the line is skipped"
INDEX = "the index is corrupt: not a line of a ZipNum index: (*; check it with cdxmill verify, or build the cluster again"
INVALID = "http://x:y/: not a URL that can be looked up (*)"
BOTH = "give either a URL or --input FILE"
A, D = line("a"), line("d")


@pytest.mark.parametrize(
    ("call", "status", "out", "told"),
    [
        ("C a.com", 0, A, []),
        ("C c.com --fl url", 1, "", [SKIPPED]),
        ("C z.com", 1, "", [CORRUPT]),
        ("C http://x:y/", 2, "", [INVALID]),
        ("C -i good", 0, A + D, []),
        ("C -i corrupt", 1, A + D, [f"{CORRUPT}; z.com: the answer is not complete"]),
        ("C -i bad --filter =status:200", 1, A + D, [SKIPPED, INVALID]),
        ("C -i empty", 0, "", []),
        ("C -i invalid", 1, A, [INVALID]),
        ("C -i invalid --count", 1, "1\ta.com\n", [INVALID]),
        ("C a.com --newest-crawls 1", 2, "", ["--newest-crawls needs names of crawls, such as 'CC-MAIN-*'"]),
        ("C a.com --count --newest-crawls 1", 2, "", ["--newest-crawls needs names of crawls, such as 'CC-MAIN-*'"]),
        ("f.cdxj a.com --output csv --fl url,status", 0, "url,status\nhttp://a.com/,200\n", []),
        ("C a.com -i good", 2, "", [BOTH]),
        ("C", 2, "", [BOTH]),
        ("C,f.cdxj a.com", 0, A, []),
        ("C,f.cdxj z.com", 1, "", [CORRUPT]),
        ("C,f.cdxj c.com --fl url", 1, "", [SKIPPED]),
        ("C,f.cdxj http://x:y/", 2, "", [INVALID]),
        ("C,f.cdxj -i bad --filter =status:200", 1, A + D, [SKIPPED, INVALID]),
        ("C,absent a.com", 2, "", ["absent: not a ZipNum cluster (no such file or directory); check the path"]),
        ("C a.com --count", 0, "1\n", []),
        ("C z.com --count", 1, "0\n", [CORRUPT]),
        ("C c.com --filter =status:200 --count", 1, "0\n", [SKIPPED]),
        ("C http://x:y/ --count", 2, "", [INVALID]),
        ("C -i good --count", 0, "1\ta.com\n1\td.com\n", []),
        ("C -i corrupt --count", 1, "1\ta.com\n1\td.com\n", [f"{CORRUPT}; z.com: not counted"]),
        ("C -i bad --filter =status:200 --count", 1, "1\ta.com\n0\tc.com\n1\td.com\n", [SKIPPED, INVALID]),
        ("I a.com --count", 1, "", [INDEX]),
        ("I,f.cdxj a.com --count --by-source", 1, "", [INDEX]),
        ("I -i good --count", 1, "1\td.com\n", [f"{INDEX}; a.com: not counted"]),
        ("C a.com --count --by-source", 0, "1\tC\n", []),
        ("C -i good --count --by-source", 0, "1\ta.com\tC\n1\td.com\tC\n", []),
        ("C,f.cdxj a.com --count", 0, "1\n", []),
        ("C,f.cdxj http://x:y/ --count", 2, "", [INVALID]),
        ("C,f.cdxj a.com --count --by-source", 0, "1\tC\n1\tf.cdxj\n", []),
        ("C,f.cdxj -i good --count --by-source", 0, "1\ta.com\tC\n1\ta.com\tf.cdxj\n1\td.com\tC\n0\td.com\tf.cdxj\n", []),
        ("C,f.cdxj -i corrupt --count", 1, "1\ta.com\n1\td.com\n", [f"{CORRUPT}; z.com: not counted"]),
        ("C,f.cdxj z.com --count", 1, "0\n", [CORRUPT]),
        ("C,f.cdxj -i corrupt --count --by-source", 1, "1\ta.com\tC\n1\ta.com\tf.cdxj\n0\tz.com\tf.cdxj\n1\td.com\tC\n0\td.com\tf.cdxj\n", [f"{CORRUPT}; z.com: not counted"]),
        ("C a.com --show-num-pages", 0, '{"pages": 1, "pageSize": 10, "blocks": 1}\n', []),
        ("C a.com --show-num-pages --by-source", 0, '{"pages": 1, "pageSize": 10, "blocks": 1}\tC\n', []),
        ("C,f.cdxj a.com --show-num-pages", 0, '{"pages": 1, "pageSize": 10, "blocks": 2}\n', []),
        ("C,f.cdxj a.com --estimate", 0, '{"lines": 1501, "least": 1, "most": null, "blocks": 2}\n', []),
        ("C a.com --estimate", 0, '{"lines": 1500, "least": 1, "most": null, "blocks": 1}\n', []),
    ],
)  # fmt: skip
def test_lookup_prints_what_is_there_and_tells_what_is_not(
    call: str, status: int, out: str, told: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["lookup", *call.split()]) == status
    found, error = capfd.readouterr()
    assert found == out
    lines = error.splitlines()
    assert len(lines) == len(told)
    for one, wanted in zip(lines, told, strict=True):
        start, _, end = wanted.partition("(*")
        assert one.startswith("cdxmill: ")
        assert start in one
        assert one.endswith(end)


@pytest.mark.parametrize("number", [10, 11])
def test_of_errors_in_many_lines_ten_are_told(number: int, capfd: pytest.CaptureFixture[str]) -> None:
    write_raw_cluster(Path("many"), [b"com,a)/ %d {" % year for year in range(2000, 2000 + number)])
    assert main(["lookup", "many", "a.com", "--fl", "url"]) == 1
    lines = capfd.readouterr().err.splitlines()
    assert len(lines) == number
    assert (lines[-1] == "cdxmill: 1 more such errors") is (number == 11)


def test_urls_are_those_of_a_file_or_of_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(urls_of("u", None, "URL")) == ["u"]
    assert list(urls_of(None, "good", "URL")) == ["a.com", "d.com"]
    for one, path in (("u", "good"), (None, None)):
        with pytest.raises(UsageError, match=r"^give either a QUERY or --input FILE$"):
            urls_of(one, path, "QUERY")
    Path("good").write_bytes(b"\xff.com\r\n \t\nb.com")
    assert list(read_urls("good")) == ["\udcff.com", "b.com"]
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(b"a.com\n\n")))
    assert list(read_urls("-")) == ["a.com"]


def test_what_is_read_once_is_not_read_twice(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["lookup", "-", "-i", "-"]) == 2
    assert capfd.readouterr().out == ""


def test_crawls_are_printed_with_their_titles_in_one_line(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def crawls(name: str, newest: int) -> list[SimpleNamespace]:
        assert (name, newest) == ("CC-*", 2)
        return [
            SimpleNamespace(name="CC-2", title="May\n 2024 "),
            SimpleNamespace(name="CC-1", title="\udcff"),
        ]

    monkeypatch.setattr("cdxmill.cluster.find.crawls_like", crawls)
    assert main(["crawls", "CC-*", "--newest-crawls", "2"]) == 0
    assert capfd.readouterr() == ("CC-2\tMay 2024\nCC-1\t?\n", "")
