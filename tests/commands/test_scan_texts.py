"""`scan --to wet.gz`: the texts of pages, as Common Crawl's WET files have them, and the fields with texts in lines."""

from __future__ import annotations

import base64
import gzip
import hashlib
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from fastwarc.warc import ArchiveIterator as FastwarcIterator
from warcio.archiveiterator import ArchiveIterator as WarcioIterator

from cdxmill.cli.main import main
from cdxmill.stages.pages.parse_page import Page
from tests.commands.test_scan import archive, rows, scan

PAGE = """<head><title> The
 title</title><style>p{}</style></head><body><script>no()</script><h1>Head</h1><p>One <b>bold</b> line<br>and another
<ul><li>first<li>second</ul><table><tr><td>cell<td>x</table>end<pre>a
b</pre>"""
LINES = ["The title", "Head", "One bold line", "and another", "first", "second", "cell", "x", "end", "a b"]


def counted(path: Path, directory: Path) -> Counter[str]:
    assert main(["count", "words", "-q", "--replace", "-o", str(directory / "words"), str(path)]) == 0
    pairs = (line.split("\t") for line in (directory / "words").read_text().splitlines())
    return Counter({word: int(number) for word, number in pairs})


def by_warcio(path: Path) -> list[tuple[dict[str, str], bytes]]:
    with path.open("rb") as file:
        return [
            ({name.lower(): value for name, value in item.rec_headers.headers}, item.content_stream().read())
            for item in WarcioIterator(file)
        ]


def test_a_text_has_a_line_for_each_block() -> None:
    page = Page("http://a.org/", PAGE.encode())
    assert page.text_lines.split("\n") == LINES
    assert page.text_lines.split() == [*page.title.split(), *page.text.split()]
    assert page.title == "The title"
    assert Page("", b"").text_lines == ""
    assert "no()" in Page("", PAGE.encode()).tree.body.html  # type: ignore[union-attr, operator]


def test_the_main_text_has_no_menus() -> None:
    article = "This is a sentence of the article, which is long enough to be its content. " * 9
    html = f"<nav><ul><li><a href=/>Home</a><li><a href=/b>About us</a></ul></nav><main><article><h1>News</h1><p>{article}</article></main><footer>(c)</footer>"
    text = Page("http://a.org/", html.encode()).main_text
    assert text.split() == ["News", *article.split()]
    assert text.startswith("News\n")


@pytest.mark.parametrize("extract", ["text_lines", "text", "main_text"])
def test_texts_of_a_crawl(
    extract: str, pywb_warcs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other readers read them, each record leads to its page, and `count words` finds the words that `scan` writes."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1400000000")
    source = pywb_warcs / "iana.warc.gz"
    for directory in ("one", "two"):
        assert scan("-o", tmp_path / directory, "--to", "wet.gz", "--extract", extract, source) == 0
    path = tmp_path / "one/iana.warc.wet.gz"
    assert path.read_bytes() == (tmp_path / "two/iana.warc.wet.gz").read_bytes()
    fields = f"url,mime,type,lang,title,warc.record-id,warc.date,{extract}"
    assert scan("-o", tmp_path / "rows", "--extract", fields, source) == 0
    wanted: list[dict[str, Any]] = [
        row for row in rows(tmp_path / "rows")
        if row["title"] is not None or (row["mime"] == "text/plain" and row["type"] == "response")
    ]  # fmt: skip
    info, *texts = by_warcio(path)
    assert (info[0]["warc-type"], info[0]["warc-date"]) == ("warcinfo", "2014-05-13T16:53:20Z")
    assert len(texts) == len(wanted) == 20
    for (head, text), row in zip(texts, wanted, strict=True):
        assert text.decode() == row[extract]
        assert head["warc-refers-to"] == row["warc.record-id"]
        assert (head["warc-type"], head["content-type"]) == ("conversion", "text/plain")
        assert (head["warc-target-uri"], head["warc-date"]) == (row["url"], row["warc.date"])
        assert head["warc-block-digest"] == "sha1:" + base64.b32encode(hashlib.sha1(text).digest()).decode()
        if row["lang"] == "en" and len(text) > 500:
            assert head["warc-identified-content-language"] == "eng"
    with path.open("rb") as file:
        bodies = [item.reader.read() for item in FastwarcIterator(file, parse_http=False)]
    assert bodies[1:] == [text for _, text in texts]
    assert counted(path, tmp_path) == Counter(word for row in wanted for word in row[extract].split())


def test_texts_of_arc_files_and_of_texts(samples: Path, tmp_path: Path) -> None:
    arc = next(samples.rglob("example.arc.gz"))
    assert scan("-o", tmp_path / "out", "--to", "wet.gz", arc) == 0
    _, (head, text) = by_warcio(tmp_path / "out/example.arc.warc.wet.gz")
    assert text.startswith(b"Example Domain\n")
    assert scan("-o", tmp_path / "out", "--to", "warc.gz", arc) == 0
    *_, (source, _) = by_warcio(tmp_path / "out/example.arc.warc.gz")
    assert (head["warc-refers-to"], head["warc-date"]) == (source["warc-record-id"], source["warc-date"])
    again = tmp_path / "out/example.arc.warc.wet.gz"
    assert scan("-o", tmp_path / "again", "--to", "wet.gz", "--where", "lang=en", again) == 0
    assert by_warcio(tmp_path / "again/example.arc.warc.wet.gz")[1] == (head, text)


def test_only_pages_and_plain_texts_have_one(tmp_path: Path) -> None:
    latin = "plain: é".encode("latin-1")
    kinds = {"text/html": PAGE.encode(), "text/css": b"p{}", "text/plain; charset=latin1": latin, "image/png": b"\x89PNG\0", "text/plain": b"\0x"}  # fmt: skip
    parts = [archive(tmp_path / "part", [body], kind).read_bytes() for kind, body in kinds.items()]
    parts += [archive(tmp_path / "part", [b"<title></title>"]).read_bytes()]
    (tmp_path / "a.warc.gz").write_bytes(b"".join(parts))
    assert scan("-o", tmp_path / "out", "--to", "wet.zst", tmp_path / "a.warc.gz") == 0
    output = tmp_path / "out/a.warc.wet.zst"
    assert counted(output, tmp_path) == Counter(f"{' '.join(LINES)} plain: é".split())
    assert scan("-o", tmp_path / "rows", "--extract", "text_lines,main_text", tmp_path / "a.warc.gz") == 0
    found = [row["text_lines"] for row in rows(tmp_path / "rows")]
    assert found == ["\n".join(LINES), "p{}", "plain: é", None, None, ""]


def test_what_is_not_known_of_a_text_has_no_field(tmp_path: Path) -> None:
    source = archive(tmp_path / "a.warc.gz", [b"<p>12345", b"<p>This is the language of the English people."])
    assert scan("-o", tmp_path / "out", "--to", "wet.gz", source) == 0
    _, number, words = (headers for headers, _ in by_warcio(tmp_path / "out/a.warc.wet.gz"))
    assert words["warc-identified-content-language"] == "eng"
    assert words.keys() - number.keys() == {"warc-identified-content-language"}
    assert all(number.values())


def test_what_a_wet_file_cannot_have_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = archive(tmp_path / "a.warc.gz", [b"<p>"])
    for wrong in (["--extract", "url,text"], ["--extract", "title"], ["--find", "x=text~y"]):
        assert scan("-o", tmp_path / "out", "--to", "wet.gz", *wrong, source) == 2
    assert "expected --extract text_lines, main_text or text, not url,text" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_record_without_a_date_has_no_text_and_is_reported(tmp_path: Path) -> None:
    source = archive(tmp_path / "a.warc.gz", [b"<p>one", b"<p>two"])
    data = gzip.decompress(source.read_bytes()).replace(b"2020-01-01T00:00:00Z", b"yesterday", 1)
    source.write_bytes(b"".join(gzip.compress(b"WARC/1.0" + part) for part in data.split(b"WARC/1.0")[1:]))
    assert scan("-o", tmp_path / "out", "--to", "wet.gz", source) == 1
    assert len(by_warcio(tmp_path / "out/a.warc.wet.gz")) == 2
    assert "no valid date" in (tmp_path / "out/failures.tsv").read_text()
