"""How often links and hosts are those that two other implementations of the standards find.

    python -m bench.links ARCHIVE...      prints a table

The HTML is parsed by html5lib, URLs by pywhatwgurl, both in Python alone: pip install html5lib pywhatwgurl
"""

from __future__ import annotations

import json
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cdxmill.capture import Record
from cdxmill.stages.counting.counters import BadRecord, NotWanted, html_of
from cdxmill.stages.pages.parse_page import Page
from cdxmill.stages.pages.web_urls import LinkBase, host_of
from cdxmill.stages.records.read_records import read_records
from cdxmill.storage.location import locate

CASES = Path(__file__).parents[1] / "tests/stages/pages/web_url_cases.json"
XHTML = "{http://www.w3.org/1999/xhtml}"
LARGEST = 1 << 20
"""Bytes of the largest page: html5lib takes a second for it."""


def other_link(base: str, href: str) -> str:
    """The link that pywhatwgurl finds; "" if cdxmill has none either, because it leads to the page or is not http."""
    from pywhatwgurl import URL  # type: ignore[import-not-found, unused-ignore]

    if href.strip("".join(map(chr, range(33))))[:1] in ("", "#"):
        return ""
    try:
        link = str(URL(href, base).href).partition("#")[0]
    except Exception:  # it has several kinds of errors
        return ""
    return link if link.startswith(("http://", "https://")) else ""


def other_links(url: str, html: bytes) -> list[str]:
    """The links of a page in UTF-8 that html5lib and pywhatwgurl find."""
    import html5lib  # type: ignore[import-not-found, import-untyped, unused-ignore]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree: Any = html5lib.parse(html, transport_encoding="utf-8")
    bases = [node.get("href") for node in tree.iter(f"{XHTML}base") if node.get("href") is not None]
    base = (other_link(url, bases[0]) if bases else "") or url
    hrefs = [
        node.get("href")
        for node in tree.iter()
        if node.tag in (f"{XHTML}a", f"{XHTML}area") and node.get("href")
    ]
    return [link for href in hrefs if (link := other_link(base, href))]


def pages(archives: list[str]) -> Iterator[tuple[str, bytes, bytes | None]]:
    """URL, body and Content-Type of each page."""
    for archive in archives:
        with locate(archive).open_ranges() as read_at:
            for item in read_records(read_at):
                if isinstance(item, Record):
                    try:
                        html = html_of(item)
                    except (BadRecord, NotWanted):
                        continue
                    url = item.headers.get(b"warc-target-uri", b"").strip(b"<>").decode("utf-8", "replace")
                    if len(html.data) <= LARGEST:
                        yield url, html.data, html.content_type


def main() -> None:
    cases = json.loads(CASES.read_text())
    joins = [(base, href) for href, base, _ in cases["joins"]]
    same = sum(
        LinkBase(base).absolute([href]) == list(filter(None, [other_link(base or "about:blank", href)]))
        for base, href in joins
    )
    print(f"joins: {same} of {len(joins)}")
    count = equal = links = found = 0
    for url, data, content_type in pages(sys.argv[1:]):
        page = Page(url, data, content_type)
        ours, others = page.links, other_links(url, page.html)
        hosts = list(map(host_of, ours)) == list(map(host_of, others))
        count, equal, links, found = count + 1, equal + (ours == others), links + len(others), found + hosts
        if ours != others:
            print(
                url,
                *[one for one in zip(ours, others, strict=False) if one[0] != one[1]][:1],
                len(ours),
                len(others),
                file=sys.stderr,
            )
    print(f"pages: {equal} of {count} have the same links, {found} the same hosts; {links} links")


if __name__ == "__main__":
    main()
