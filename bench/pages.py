"""Which records are pages, and their titles, links and tags, compared with other parsers: bench/measured/pages.md.

    python -m bench.pages ARCHIVE...                        writes the table, with "before" as it was
    python -m bench.pages --column before ARCHIVE...        writes the column of an older version

An older version is that of another checkout, with this file: run the second command there.
The parsers are html5lib (pip install html5lib), which follows the HTML standard to the letter, resiliparse, and lexbor as selectolax gives it.
They get the body and the charset of the HTTP head, and decode as they see fit. URLs are made absolute by cdxmill for all of them.
"""

from __future__ import annotations

import argparse
import codecs
import gzip
import hashlib
import json
import re
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from bench.report import Passage
from bench.run import write_markdown
from cdxmill.capture import Record
from cdxmill.formats.archives.warc_header import HeaderShapes
from cdxmill.stages.counting.counters import COUNTERS, BadRecord, NotWanted
from cdxmill.stages.counting.tally import DictTally
from cdxmill.stages.pages.full_record import FullRecord
from cdxmill.stages.pages.parse_page import Page
from cdxmill.stages.records.parse_header import RecordError
from cdxmill.stages.records.read_contents import Content, read_contents
from cdxmill.stages.records.take_record import take_whole
from cdxmill.storage.scratch import Scratch

MEASURED = Path("bench/measured/pages.md")
LARGEST = 300_000
"""Bytes of a page that is compared: html5lib takes a second for them."""
_CHARSET = re.compile(rb"charset\s*=\s*[\"']?([\w.:-]+)", re.I)
_NAME = re.compile(r"[a-z0-9:._-]{1,60}")
_XHTML = "{http://www.w3.org/1999/xhtml}"


class Parsed(NamedTuple):
    """What a parser finds: the title on one line, the href of each `a` and `area`, the start tags. None: it does not tell."""

    title: str
    hrefs: list[str | None]
    tags: Counter[str] | None = None


def by_html5lib(data: bytes | str, charset: str | None) -> Parsed:
    import html5lib  # type: ignore[import-not-found, import-untyped, unused-ignore]

    tags: Counter[str] = Counter()

    class Tokenizer(html5lib._tokenizer.HTMLTokenizer):  # type: ignore[misc, unused-ignore]
        def __iter__(self) -> Iterator[Any]:
            for token in super().__iter__():
                if token["type"] == html5lib.constants.tokenTypes["StartTag"]:
                    tags[token["name"]] += 1
                yield token

    class Parser(html5lib.HTMLParser):  # type: ignore[misc, unused-ignore]
        def mainLoop(self) -> None:  # noqa: N802 - html5lib's name
            self.tokenizer.__class__ = Tokenizer
            super().mainLoop()

    tree = Parser().parse(data) if isinstance(data, str) else Parser().parse(data, transport_encoding=charset)
    titles = ["".join(node.itertext()) for node in tree.iter(f"{_XHTML}title")]
    named = (f"{_XHTML}a", f"{_XHTML}area")
    hrefs = [node.get("href") for node in tree.iter() if node.tag in named and node.get("href") is not None]
    known = {name: number for name, number in tags.items() if _NAME.fullmatch(name)}
    return Parsed(" ".join((titles or [""])[0].split()), hrefs, Counter(known))


def by_resiliparse(data: bytes, charset: str | None) -> Parsed:
    from resiliparse.parse.encoding import detect_encoding
    from resiliparse.parse.html import HTMLTree

    tree = HTMLTree.parse_from_bytes(data, charset or detect_encoding(data, from_html_meta=True) or "utf-8")
    nodes = tree.document.query_selector_all("a[href], area[href]") if tree.document else []
    return Parsed(" ".join((tree.title or "").split()), [node.getattr("href") or "" for node in nodes])


def by_lexbor(data: bytes, charset: str | None) -> Parsed:
    from selectolax.lexbor import LexborHTMLParser

    tree = LexborHTMLParser(data.decode(charset, "replace") if charset else data)
    node = tree.css_first("title")
    hrefs = [found.attrs.get("href") for found in tree.css("a[href], area[href]")]
    return Parsed(" ".join(node.text().split()) if node else "", hrefs)


PEERS: dict[str, Callable[[bytes, str | None], Parsed]] = {
    "html5lib": by_html5lib,
    "resiliparse": by_resiliparse,
    "lexbor": by_lexbor,
}


def _reader(data: bytes) -> Callable[[int, int], bytes]:
    return lambda offset, size: data[offset : offset + size]


def records_of(paths: list[Path]) -> Iterator[bytes]:
    """The different responses and resources of archives."""
    seen = set()
    with tempfile.TemporaryDirectory() as directory:
        for path in sorted(paths):
            data = path.read_bytes()
            for found in read_contents(_reader(data), Scratch(Path(directory))):
                if isinstance(found, Content) and found.data is not None:
                    digest = hashlib.sha1(found.data).digest()
                    if digest not in seen:
                        yield bytes(found.data)
                    seen.add(digest)


def scanned(data: bytes) -> FullRecord | None:
    """The record, if it is a page for `scan`."""
    try:
        found = FullRecord(Content(0, len(data), len(data), data), 0, HeaderShapes())
        return found if found.page is not None else None
    except RecordError:
        return None


def counted_tags(data: bytes) -> Counter[str] | None:
    """The tags of a record; None if it is no page for `count`."""
    tally, counter = DictTally(), COUNTERS["tags"]
    try:
        record = take_whole(0, len(data), data, None)
        if not isinstance(record, Record) or record.headers.get(b"warc-type") in counter.others:
            return None
        counter.add(record, tally)
    except (RecordError, BadRecord, NotWanted):
        return None
    rows = (line.split("\t") for line in tally.take(b"\n").decode().splitlines())
    return Counter({name: int(number) for name, number in rows})


class Agreement:
    """How many pages are compared with a parser, and for how many each result is the same."""

    def __init__(self) -> None:
        self.compared: Counter[str] = Counter()
        self.same: Counter[str] = Counter()

    def add(self, what: str, ours: object, theirs: object) -> None:
        self.compared[what] += 1
        self.same[what] += ours == theirs

    def __getitem__(self, what: str) -> str:
        return f"{100 * self.same[what] / max(self.compared[what], 1):.2f} %"


def charset_of(content_type: bytes | None) -> str | None:
    """The charset of the HTTP head, if Python knows it."""
    found = _CHARSET.search(content_type or b"")
    try:
        return codecs.lookup(found[1].decode()).name if found else None
    except LookupError:
        return None


def compared(page: Page, tags: Counter[str] | None, parsed: Parsed, agreement: Agreement) -> None:
    agreement.add("title", page.title, parsed.title)
    agreement.add("links", page.links, page.base.absolute(parsed.hrefs))
    if tags is not None and parsed.tags is not None:
        agreement.add("tags", tags, parsed.tags)


def _in(charset: str, codec: str = "") -> Callable[[str], tuple[bytes, bytes]]:
    """A page in a charset, which the HTTP head declares."""
    return lambda text: (
        b"Content-Type: text/html; charset=%b\r\n" % charset.encode(),
        text.encode(codec or charset, "xmlcharrefreplace"),
    )


_HTML = b"Content-Type: text/html\r\n"
_META = "<meta charset=iso-2022-jp>"
SENT: dict[str, Callable[[str], tuple[bytes, bytes]]] = {
    "UTF-8": _in("utf-8"),
    "windows-1251": _in("windows-1251"),
    "Shift_JIS": _in("Shift_JIS", "cp932"),
    "GB18030": _in("gb18030"),
    "ISO-2022-JP": _in("iso-2022-jp", "iso2022_jp"),
    "ISO-2022-JP in a meta element": lambda text: (
        _HTML,
        (_META + text).encode("iso2022_jp", "xmlcharrefreplace"),
    ),
    "UTF-16 with a byte order mark": lambda text: (_HTML, text.encode("utf-16")),
    "UTF-16LE in the head only": _in("utf-16le"),
    "UTF-16BE in the head only": _in("utf-16be"),
    "no Content-Type": lambda text: (b"", ("<!doctype html>" + text).encode()),
    "Content-Encoding: utf-8": lambda text: (_HTML + b"Content-Encoding: utf-8\r\n", text.encode()),
    "two Content-Encoding lines": lambda text: (
        _HTML + b"Content-Encoding: gzip\r\nContent-Encoding: deflate\r\n",
        zlib.compress(gzip.compress(text.encode())),
    ),
}
"""The ways to send a page: the fields of the HTTP head and the body."""
_SENT = 300
_SMALL = 40_000
"""Pages that are sent in each way, and their largest size in characters."""


def sent(text: str, way: str) -> bytes:
    """A record with a page."""
    head, body = SENT[way](text)
    block = b"HTTP/1.1 200 OK\r\n%b\r\n%b" % (head, body)
    fields = b"WARC-Type: response\r\nWARC-Target-URI: http://example.com/a/b\r\nContent-Length: %d" % len(
        block
    )
    return b"WARC/1.0\r\n%b\r\n\r\n%b\r\n\r\n" % (fields, block)


def recognized(texts: list[str]) -> dict[str, str]:
    """For each way to send pages: how many of them have title, links and tags as html5lib finds them in the text."""
    same: Counter[str] = Counter()
    for text in texts:
        for way in SENT:
            added = (
                _META if way.endswith("meta element") else "<!doctype html>" if way.startswith("no ") else ""
            )
            expected, data = by_html5lib(added + text, None), sent(text, way)
            record, tags = scanned(data), counted_tags(data)
            if record is None or record.page is None or tags is None:
                continue
            page = record.page
            found = page.title, page.links, tags
            same[way] += found == (expected.title, page.base.absolute(expected.hrefs), expected.tags)
    return {f"sent as {way}": f"{same[way]} of {len(texts)}" for way in SENT}


def measured(paths: list[Path], show: str) -> dict[str, str]:
    """The figures of this version. Pages that differ from the parser `show` are printed."""
    pages: Counter[str] = Counter()
    peers = {name: Agreement() for name in PEERS}
    texts: dict[str, None] = {}
    words: Counter[str] = Counter()
    for data in records_of(paths):
        record, tags = scanned(data), counted_tags(data)
        pages["scan"] += record is not None
        pages["count"] += tags is not None
        pages["one of them"] += (record is None) != (tags is None)
        if record is None or record.page is None or len(record.body.data) > LARGEST:
            continue
        text = record.page.html.decode("utf-8", "replace")
        if not text.isascii() and "\ufffd" not in text and len(text) < _SMALL and len(texts) < _SENT:
            texts[text] = None
        every, main = (Counter(part.split()) for part in (record.page.text, record.page.main_text))
        words.update(text=every.total(), main=(every & main).total())
        for name, parse in PEERS.items():
            before = Counter(peers[name].same)
            compared(record.page, tags, parse(record.body.data, charset_of(record.content_type)), peers[name])
            missed = [what for what in ("title", "links", "tags") if peers[name].same[what] == before[what]]
            if name == show and missed and not (missed == ["tags"] and tags is None):
                print(record.url, *missed)
    found = {f"pages for {name}": str(number) for name, number in sorted(pages.items())}
    for name, agreement in peers.items():
        found |= {
            f"{what} as {name}": agreement[what]
            for what in ("title", "links", "tags")
            if agreement.compared[what]
        }
    found["words of text in main_text"] = f"{100 * words['main'] / max(words['text'], 1):.1f} %"
    return found | recognized(list(texts))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archives", type=Path, nargs="+", metavar="ARCHIVE")
    parser.add_argument("--column", default="now", metavar="NAME")
    parser.add_argument("--show", default="", metavar="PARSER", help="print the pages that differ")
    parser.add_argument(
        "--figures", type=Path, default=Path(__file__).parent / "corpora/pages.json", metavar="FILE"
    )
    options = parser.parse_args()
    columns: dict[str, dict[str, str]] = (
        json.loads(options.figures.read_text()) if options.figures.exists() else {}
    )
    columns[options.column] = measured(options.archives, options.show)
    options.figures.parent.mkdir(parents=True, exist_ok=True)
    options.figures.write_text(json.dumps(columns))
    names = list(columns[options.column])
    rows = [[name, *(column.get(name, "-") for column in columns.values())] for name in names]
    title = "Agreement with other parsers"
    passage = Passage(title, "The different records of the sample archives.", [["result", *columns], *rows])
    write_markdown(MEASURED, passage.as_markdown())
    print(passage.as_text())


if __name__ == "__main__":
    main()
