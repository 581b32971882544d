"""What is counted in a record: its tags, its server, its words, its links.

A link is an `<a>` or `<area>` with an http or https URL. An item is `<host of the page> <host of the link>`. Hosts are
written as in Common Crawl's web graphs: reversed, in lower case, without `www.` at the start, IDNs in Punycode, without
a port. Links within a host, and those from or to an IP address, are not counted.
"""

from __future__ import annotations

import collections
import re
from collections.abc import Callable, Iterable, Mapping
from functools import cache, lru_cache
from typing import NamedTuple, TypeVar

from cdxmill.capture import Headers, Record
from cdxmill.regex import regex
from cdxmill.stages.captures.capture_options import media_type
from cdxmill.stages.counting.tally import Tally, clean_item
from cdxmill.stages.counting.wat_records import is_wat, links_of, server_values
from cdxmill.stages.pages.decode_text import markup_of
from cdxmill.stages.pages.is_page import is_binary, is_page, may_be_page
from cdxmill.stages.pages.parse_page import CUT, MAX_HTML, Page
from cdxmill.stages.pages.web_hosts import host_of
from cdxmill.stages.pages.web_urls import LinkBase, outward
from cdxmill.stages.records.decode_payload import PayloadError, decode_body
from cdxmill.stages.records.parse_header import REPAIR
from cdxmill.stages.records.record_parts import http_head_of, payload_start, payload_type

_LABEL = regex(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_ADDRESS = regex(r"[0-9.]+")
_LONGEST = 253
_CACHED = 1 << 16
MAX_CONTENT = 64 << 20
"""Bytes of a record, and of its decoded payload, that are counted. The rest of a larger one is reported."""
_SERVER = regex(rb"\nserver[ \t]*:([^\n]*(?:\n[ \t][^\n]*)*)", re.I)
Value = TypeVar("Value")
_NO_PAGES = frozenset((b"request", b"metadata", b"warcinfo", b"revisit", b"conversion"))


def add_links(url: str, base: LinkBase, hrefs: list[str | None], tally: Tally) -> None:
    """Count the links from the page at `url`. They are as the page has them, and start from `base`."""
    source = _node(host_of(url))
    if not source:
        return
    if (
        base.url == url or _node(host_of(base.url)) == source
    ):  # all other links are within the host, and most links are
        hrefs = outward(hrefs)
    for host, count in collections.Counter(map(host_of, base.absolute(hrefs))).items():
        target = _node(host)
        if target and target != source:
            tally.add(f"{source} {target}".encode(), count)


@lru_cache(_CACHED)
def _node(host: str) -> str:
    """A host as an item has it; "" if it is none that can be counted.

    >>> _node("www.example.com"), _node("127.0.0.1")
    ('com.example', '')
    """
    labels = host.split(".")
    if labels[0] == "www" and len(labels) > 1:
        del labels[0]
    if len(host) > _LONGEST or _ADDRESS.fullmatch(host) or not all(map(_LABEL.fullmatch, labels)):
        return ""
    return ".".join(reversed(labels))


class BadRecord(ValueError):
    """A record that cannot be counted. The text is the reason; `hint` is what the user can do."""

    hint = REPAIR


class MissingLibrary(BadRecord):
    """A record that cannot be decoded, because a library is missing. The text says which one."""

    hint = ""


class NotWanted(Exception):
    """A record that has nothing of the kind that is counted. The text says why, if that is unusual."""


class Counter(NamedTuple):
    """How records are counted. `add` adds the items of a record to a tally, and may return notes. It raises BadRecord, NotWanted.

    Records of the types in `others` have nothing to count. `needs` says which archives have something. `compiled` is the
    name of the compiled function that counts common records. `needs_all`: what a very large record has beyond MAX_CONTENT is
    missing in the counts, and is reported. Pages have a limit of their own.
    """

    add: Callable[[Record, Tally], list[str] | None]
    others: frozenset[bytes]
    needs: str
    compiled: str = ""
    needs_all: bool = False


def _media(headers: Headers) -> bytes:
    return _media_type(headers.get(b"content-type", b"")[:200])


@cache
def _media_type(content_type: bytes) -> bytes:
    return media_type(content_type)


def count_words(record: Record, tally: Tally) -> None:
    """Count the words of a text, as a WET file has it."""
    if _media(record.headers) != b"text/plain":
        raise NotWanted
    tally.add_words(record.block)


def count_servers(record: Record, tally: Tally) -> None:
    """Count the servers of a response, or of one that a record of a WAT file describes. Each counts once."""
    values = {value for value in map(clean_item, _server_values(record)) if value}
    if not values:
        raise NotWanted("responses without a Server field")
    for value in values:
        tally.add(value, 1)


def _server_values(record: Record) -> Iterable[bytes]:
    if is_wat(record.headers):
        values = _from_wat(server_values, record)
        if values is None:
            raise NotWanted
        return values
    end = payload_start(record.headers, record.block)
    if not end or record.headers.get(b"warc-type") != b"response":
        raise NotWanted
    return _SERVER.findall(record.block, 0, end)


def count_tags(record: Record, tally: Tally) -> list[str]:
    """Count the tags of an HTML page."""
    html = html_of(record)
    tally.add_tags(markup_of(html.data, html.content_type))
    return html.problems


def count_links(record: Record, tally: Tally) -> list[str]:
    """Count the links of a page to other hosts, or of one that a record of a WAT file describes."""
    if is_wat(record.headers):
        found = _from_wat(links_of, record)
        if found is None:
            raise NotWanted
        add_links(found.url, LinkBase(found.url, found.base), found.hrefs, tally)
        return []
    html = html_of(record)
    url = record.headers.get(b"warc-target-uri", b"").strip(b"<>").decode("utf-8", "replace")
    page = Page(url, html.data, html.content_type)
    add_links(url, page.base, page.hrefs, tally)
    return [*html.problems, *([page.problem] if page.problem else [])]


def _from_wat(read: Callable[[bytes | bytearray], Value], record: Record) -> Value:
    try:
        return read(record.block)
    except ValueError as error:
        raise BadRecord(str(error)) from None


class Html(NamedTuple):
    """The bytes of a page with all encodings undone, the Content-Type, and why they are not all of it."""

    data: bytes
    content_type: bytes | None
    problems: list[str]


def html_of(record: Record) -> Html:
    """The HTML of a page. Raises NotWanted, MissingLibrary."""
    head = http_head_of(record.headers, record.block)
    content_type = payload_type(head, record.headers, record.is_arc)
    media = record.headers.get(b"warc-identified-payload-type") or content_type
    if not may_be_page(record.headers.get(b"warc-type"), media):
        raise NotWanted
    payload = bytes(memoryview(record.block)[head.end :])
    try:
        data, problem = decode_body(bytes(record.block[: head.end]), payload, MAX_CONTENT)
    except PayloadError as error:
        raise MissingLibrary(str(error)) from None
    if not is_page(media, data):
        raise NotWanted
    if is_binary(data, content_type):
        raise NotWanted("pages skipped: they are binary data")
    problems = [text for text in (problem, CUT if len(data) > MAX_HTML else "") if text]
    return Html(data[:MAX_HTML], content_type, problems)


COUNTERS: Mapping[str, Counter] = {
    "tags": Counter(count_tags, _NO_PAGES, "WARC and ARC files with HTML pages", compiled="tags"),
    "servers": Counter(
        count_servers, frozenset((b"request", b"warcinfo")), "WAT, WARC and ARC files", compiled="servers"
    ),
    "words": Counter(
        count_words,
        frozenset((b"request", b"response", b"metadata", b"warcinfo")),
        "WET files",
        compiled="words",
        needs_all=True,
    ),
    "links": Counter(
        count_links,
        frozenset((b"request", b"warcinfo", b"revisit", b"conversion")),
        "WAT files, or WARC and ARC files with HTML pages",
    ),
}
"""What `cdxmill count` can count."""
