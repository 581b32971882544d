"""Common Crawl's URL index of 2012, a prefix B-tree without timestamps: looked up and copied from, as `bin/remote_copy` did."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from cdxmill.cli.main import main

from ..conftest import RunCdxmill
from ..material.trees import build
from ..storage.range_server import serving

NAME = "parse-output/segment/1346876860425/1346903912043_12.arc.gz"
PAGES = ("http://example.com/", "http://example.com/a", "https://example.com/a", "http://www.example.com/b")


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """An ARC file of 2012 and its tree, which has the keys of that time and no more than its pointers."""
    archive = tmp_path / NAME
    archive.parent.mkdir(parents=True)
    data, rows = b"", []
    for url in PAGES:
        page = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>{url}".encode()
        member = gzip.compress(
            f"{url} 192.0.2.1 20120601010203 text/html {len(page)}\n".encode() + page + b"\n"
        )
        scheme, _, rest = url.partition("://")
        host, _, path = rest.partition("/")
        key = f"{'.'.join(reversed(host.split('.')))}/{path}:{scheme}"
        rows.append(f"{key}\t1346876860425 1346903912043 12 {len(data)} {len(member)}\n")
        data += member
    archive.write_bytes(data)
    (tmp_path / "keys.tsv").write_text("".join(sorted(rows)))
    build(tmp_path, tmp_path / "keys.tsv")
    return tmp_path


@pytest.mark.parametrize(
    ("query", "found"),
    [
        (["example.com"], 1),
        (["https://Example.com/a"], 2),
        (["example.com/*"], 3),
        (["example.com", "--match-type", "host"], 3),
        (["*.example.com"], 4),
        (["www.example.com/b"], 1),
        (["exam*"], 0),
    ],
)
def test_lookup_takes_urls_as_it_always_does(
    old: Path, query: list[str], found: int, capfd: pytest.CaptureFixture[str]
) -> None:
    assert main(["lookup", str(old / "x.tree"), *query]) == 0
    assert len(capfd.readouterr().out.splitlines()) == found


def test_a_file_of_2012_keeps_its_name(old: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Common Crawl's was url-index.1356128792. On a server, only a name shows what it is."""
    (old / "x.tree").rename(old / "url-index.1356128792")
    assert main(["lookup", str(old / "url-index.1356128792"), "*.example.com", "--count"]) == 0
    assert capfd.readouterr().out == "4\n"
    with serving() as server:
        assert main(["lookup", f"{server.url}/url-index.1356128792", "*.example.com"]) == 2
    assert "the URL of a prefix B-tree must end in .tree" in capfd.readouterr().err


def test_what_the_tree_does_not_have_is_wrong_usage(old: Path, capfd: pytest.CaptureFixture[str]) -> None:
    asked = {
        "no timestamps": ["--from", "2012"],
        "not stored": ["--filter", "=status:200"],
        "cannot be searched": [],
    }
    for message, options in asked.items():
        query = options or ["a.com b.com", "--match-type", "range"]
        url = ["*.example.com"] if options else []
        assert main(["lookup", str(old / "x.tree"), *url, *query]) == 2
        assert message in capfd.readouterr().err
    assert main(["prefix-index", "search", str(old / "x.tree"), "*.example.com", "--from", "2012"]) == 2


def test_captures_are_copied_once_by_whatever_index_names_them(old: Path, run_cdxmill: RunCdxmill) -> None:
    call = ("copy", "-o", old / "out", "--archives", old)
    done = run_cdxmill(*call, old / "x.tree", "*.example.com")
    assert (done.returncode, b"4 captures" in done.stderr) == (0, True), done.stderr
    rows = (old / "out/out-00000.tsv").read_text().splitlines()[1:]
    assert {row.split("\t")[3] for row in rows} == {"20120601010203"}
    run_cdxmill("index", "-q", "-d", old, "-o", old / "new.cdxj", old / NAME)
    for source in (old / "x.tree", old / "new.cdxj"):
        again = run_cdxmill(*call, source, "*.example.com")
        assert (again.returncode, b"4 captures already there; 0 requests" in again.stderr) == (0, True)
    new = ("copy", "-q", "-o", old / "new", "--archives", old, old / "new.cdxj", "*.example.com")
    assert run_cdxmill(*new).returncode == 0
    ids = [gzip.decompress((old / name / f"{name}-00000.warc.gz").read_bytes()) for name in ("out", "new")]
    assert (
        ids[0].split(b"\r\n\r\n")[2:] == ids[1].split(b"\r\n\r\n")[2:]
    )  # the same records, with the same names
    back = run_cdxmill("copy", "-o", old / "new", "--archives", old, old / "x.tree", "*.example.com")
    assert b"4 captures already there" in back.stderr


def test_a_record_of_another_url_is_refused(old: Path, run_cdxmill: RunCdxmill) -> None:
    lines = (old / "keys.tsv").read_text().replace("com.example/:http", "com.example/0:http")
    (old / "keys.tsv").write_text(lines)
    build(old, old / "keys.tsv", replace=True)
    done = run_cdxmill("copy", "-o", old / "out", "--archives", old, old / "x.tree", "*.example.com")
    assert (done.returncode, b"3 captures" in done.stderr) == (1, True)
    assert (
        "the record is of http://example.com/, the index line is of http://example.com/0"
        in (old / "out/copy-failures.tsv").read_text()
    )


def test_an_arc_date_that_does_not_exist_becomes_the_warc_date_that_warcio_makes(
    pywb_warcs: Path, tmp_path: Path, run_cdxmill: RunCdxmill
) -> None:
    archive = tmp_path / "a.arc"
    archive.write_bytes((pywb_warcs / "example.arc").read_bytes().replace(b" 201402160502", b" 201413400502"))
    done = run_cdxmill("index", "-o", tmp_path / "a.cdxj", archive)
    assert (
        b"impossible date in the ARC header ('20141340050221'); the timestamp is 20141231050221"
        in done.stderr
    )
    call = ("copy", "-q", "-o", tmp_path / "out", "--archives", tmp_path, tmp_path / "a.cdxj")
    assert run_cdxmill(*call).returncode == 0
    (copied,) = (tmp_path / "out").glob("*.warc.gz")
    dates = []
    for path in (archive, copied):
        with path.open("rb") as file:
            found = list(ArchiveIterator(file, arc2warc=True))
            dates.append(found[-1].rec_headers.get_header("WARC-Date"))
    assert dates == ["2014-12-31T05:02:21Z"] * 2
