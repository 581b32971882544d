"""What `scan` is compared with: scripts as everyone writes them, one process, one archive, lines of JSON.

python -m bench.scan_contenders NAME ARCHIVE... OUTPUT
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

Row = dict[str, Any]


def _warcio_pages(path: str) -> Iterator[tuple[str, bytes]]:
    from warcio.archiveiterator import ArchiveIterator

    with Path(path).open("rb") as file:
        for record in ArchiveIterator(file):
            if record.rec_type != "response":
                continue
            kind = record.http_headers.get_header("Content-Type") or ""
            if kind.startswith("text/html"):
                yield record.rec_headers.get_header("WARC-Target-URI"), record.content_stream().read()


def _row(url: str, title: str, text: str, links: list[str], lang: str) -> Row:
    return {
        "url": url,
        "title": title,
        "text": text,
        "links": [urljoin(url, link) for link in links],
        "lang": lang,
    }


def soup(path: str) -> Iterator[Row]:
    from bs4 import BeautifulSoup
    from langdetect import detect  # type: ignore[import-untyped, unused-ignore]

    for url, body in _warcio_pages(path):
        page = BeautifulSoup(body, "html.parser")
        text = page.get_text(" ")
        links = [str(link["href"]) for link in page.find_all("a", href=True)]
        yield _row(url, page.title.get_text() if page.title else "", text, links, detect(text))


def selectolax(path: str) -> Iterator[Row]:
    from resiliparse.parse.lang import detect_fast
    from selectolax.lexbor import LexborHTMLParser

    for url, body in _warcio_pages(path):
        page = LexborHTMLParser(body)
        links = [link for node in page.css("a[href]") if (link := node.attributes["href"])]
        page.strip_tags(["script", "style"])
        text = page.body.text(separator=" ", strip=True) if page.body else ""
        title = page.css_first("title")
        yield _row(url, title.text() if title else "", text, links, detect_fast(text[:10_000])[0])


def resiliparse(path: str) -> Iterator[Row]:
    from fastwarc.warc import ArchiveIterator, WarcRecordType
    from resiliparse.extract.html2text import extract_plain_text
    from resiliparse.parse.html import HTMLTree, traverse_dom
    from resiliparse.parse.lang import detect_fast

    with Path(path).open("rb") as file:
        for record in ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=True):
            if record.http_content_type != "text/html":
                continue
            page = HTMLTree.parse_from_bytes(record.reader.read())
            text, url = extract_plain_text(page), record.headers["WARC-Target-URI"]
            links: list[str] = []

            def find_link(place: Any, links: list[str] = links) -> None:
                if place.node.tag == "a" and place.node.hasattr("href"):
                    links.append(place.node.getattr("href") or "")

            if (
                page.body
            ):  # to iterate over get_elements_by_tag_name takes time that grows with the square of the links
                traverse_dom(base_node=page.body, start_callback=find_link, elements_only=True)
            yield _row(url, page.title or "", text, links, detect_fast(text[:10_000])[0])


def _fastwarc_pages(path: str) -> Iterator[tuple[str, bytes]]:
    from fastwarc.warc import ArchiveIterator, WarcRecordType

    with Path(path).open("rb") as file:
        for record in ArchiveIterator(file, record_types=WarcRecordType.response, parse_http=True):
            if record.http_content_type == "text/html":
                yield record.headers["WARC-Target-URI"], record.reader.read()


def links(path: str) -> Iterator[Row]:
    from selectolax.lexbor import LexborHTMLParser

    for url, body in _fastwarc_pages(path):
        page = LexborHTMLParser(body)
        title = page.css_first("title")
        found = [urljoin(url, link) for node in page.css("a[href]") if (link := node.attributes.get("href"))]
        yield {"url": url, "title": title.text() if title else "", "links": found}


def parsed(path: str) -> Iterator[Row]:
    from selectolax.lexbor import LexborHTMLParser

    for _, body in _fastwarc_pages(path):
        LexborHTMLParser(body)
    yield from ()


def fastwarc(path: str) -> Iterator[Row]:
    from fastwarc.warc import ArchiveIterator

    with Path(path).open("rb") as file:
        for _ in ArchiveIterator(file, parse_http=False):
            pass
    yield from ()


def fastwarc_bodies(path: str) -> Iterator[Row]:
    from fastwarc.warc import ArchiveIterator

    with Path(path).open("rb") as file:
        for record in ArchiveIterator(file, parse_http=True):
            record.reader.read()
    yield from ()


CONTENDERS: dict[str, Callable[[str], Iterator[Row]]] = {
    "soup": soup,
    "selectolax": selectolax,
    "resiliparse": resiliparse,
    "links": links,
    "parsed": parsed,
    "fastwarc": fastwarc,
    "fastwarc-bodies": fastwarc_bodies,
}


def main() -> None:
    name, *paths, output = sys.argv[1:]
    with Path(output).open("w", encoding="utf-8", errors="replace") as file:
        for path in paths:
            for row in CONTENDERS[name](path):
                file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    main()
