"""A WARC as Common Crawl writes it: warcinfo, then request, response and metadata of each page."""

from __future__ import annotations

import math
import time
from base64 import b32encode
from collections.abc import Iterator
from hashlib import sha1
from random import Random
from typing import NamedTuple

import deflate

from bench.html import make_page
from bench.words import Url, ascii_words, make_urls, pick

START = 1_715_989_282  # 2024-05-17T23:41:22Z
LANGUAGES = [
    ("en", "eng", "ENGLISH"),
    ("en", "eng", "ENGLISH"),
    ("de", "deu", "GERMAN"),
    ("ru", "rus", "RUSSIAN"),
    ("fr", "fra", "FRENCH"),
    ("es", "spa", "SPANISH"),
]
CHARSETS = ["UTF-8", "UTF-8", "UTF-8", "UTF-8", "utf-8", "utf-8", "ISO-8859-1", "windows-1251"]
SERVERS = [
    "nginx",
    "nginx/1.24.0",
    "Apache",
    "Apache/2.4.57 (Debian)",
    "cloudflare",
    "LiteSpeed",
    "Microsoft-IIS/10.0",
]
CACHING = ["no-cache, no-store, must-revalidate", "max-age=600", "public, max-age=86400", "private"]
OPTIONAL_HEADERS = [
    "X-Powered-By: PHP/8.1.27",
    "Vary: Accept-Encoding",
    "X-Frame-Options: SAMEORIGIN",
    "X-Content-Type-Options: nosniff",
    "Strict-Transport-Security: max-age=31536000; includeSubDomains",
    "X-XSS-Protection: 1; mode=block",
    "Referrer-Policy: strict-origin-when-cross-origin",
    'Link: </wp-json/>; rel="https://api.w.org/"',
    "Accept-Ranges: bytes",
    "CF-Cache-Status: DYNAMIC",
    'Alt-Svc: h3=":443"; ma=86400',
    "X-Crawler-Transfer-Encoding: chunked",
    "X-Crawler-Content-Encoding: gzip",
    "Pragma: no-cache",
]
REASONS = {200: "OK", 301: "Moved Permanently", 302: "Found", 404: "Not Found"}


class WarcRecipe(NamedTuple):
    """The recipe of a file. Equal recipes give equal bytes."""

    seed: int
    pages: int
    median_body: int = 15_300
    payload_digests: bool = True
    links: int = 0
    """Links of each page to other pages, besides those of its text."""


def digest(data: bytes) -> str:
    return "sha1:" + b32encode(sha1(data).digest()).decode()


def record_id(rng: Random) -> str:
    text = f"{rng.getrandbits(128):032x}"
    return f"<urn:uuid:{text[:8]}-{text[8:12]}-4{text[13:16]}-a{text[17:20]}-{text[20:]}>"


def iso_date(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(seconds))


def http_date(seconds: int) -> str:
    return time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(seconds))


def make_member(fields: list[tuple[str, str]], block: bytes) -> bytes:
    head = "WARC/1.0\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields) + "\r\n"
    # libdeflate, in one version: fast, and the same bytes on every machine. The system's zlib differs.
    return bytes(deflate.gzip_compress(head.encode() + block + b"\r\n\r\n", 6))


def make_warcinfo(identifier: str, name: str) -> bytes:
    block = (
        b"isPartOf: BENCH-2024-22\r\npublisher: cdxmill\r\ndescription: made-up pages for measuring\r\n"
        b"software: cdxmill bench\r\nformat: WARC File Format 1.0\r\n\r\n"
    )
    fields = [
        ("WARC-Type", "warcinfo"),
        ("WARC-Date", iso_date(START)),
        ("WARC-Record-ID", identifier),
        ("Content-Length", str(len(block))),
        ("Content-Type", "application/warc-fields"),
        ("WARC-Filename", name),
    ]
    return make_member(fields, block)


class Page(NamedTuple):
    """One fetch: the values that its three records share."""

    url: Url
    seconds: int
    address: str
    warcinfo_id: str
    payload_digests: bool


class Block(NamedTuple):
    """The block of a record, with the header fields about it."""

    kind: str
    media: str
    head: bytes
    payload: bytes
    extra: tuple[tuple[str, str], ...] = ()


def make_record(page: Page, block: Block, identifier: str, concurrent_to: str = "") -> bytes:
    data = block.head + block.payload
    fields = [
        ("WARC-Type", block.kind),
        ("WARC-Date", iso_date(page.seconds)),
        ("WARC-Record-ID", identifier),
        ("Content-Length", str(len(data))),
        ("Content-Type", block.media),
        ("WARC-Warcinfo-ID", page.warcinfo_id),
    ]
    fields += [("WARC-Concurrent-To", concurrent_to)] if concurrent_to else []
    fields += [("WARC-IP-Address", page.address)] if block.kind != "metadata" else []
    fields.append(("WARC-Target-URI", page.url.text))
    fields += [("WARC-Payload-Digest", digest(block.payload))] if page.payload_digests else []
    fields += [("WARC-Block-Digest", digest(data)), *block.extra]
    return make_member(fields, data)


def make_request(page: Page) -> Block:
    head = (
        f"GET {page.url.path} HTTP/1.1\r\nUser-Agent: CCBot/2.0 (https://commoncrawl.org/faq/)\r\n"
        "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8\r\n"
        "Accept-Language: en-US,en;q=0.5\r\nAccept-Encoding: br,gzip\r\n"
        f"Host: {page.url.host}\r\nConnection: Keep-Alive\r\n\r\n"
    )
    return Block("request", "application/http; msgtype=request", head.encode(), b"")


def make_http_head(rng: Random, page: Page, status: int, media: str, length: int) -> bytes:
    """A status line and 8 to 15 headers in no fixed order."""
    lines = [
        f"Date: {http_date(page.seconds)}",
        f"Server: {pick(rng, SERVERS)}",
        f"Content-Type: {media}",
        f"Cache-Control: {pick(rng, CACHING)}",
        f'ETag: W/"{rng.getrandbits(64):x}"',
        f"Set-Cookie: sid={rng.getrandbits(120):x}; Path=/; HttpOnly",
    ]
    start = int(rng.random() * len(OPTIONAL_HEADERS))
    lines += (OPTIONAL_HEADERS * 2)[start : start + 1 + int(rng.random() * 8)]
    turn = int(rng.random() * len(lines))
    lines = [*lines[turn:], *lines[:turn], f"Content-Length: {length}"]
    if status in (301, 302):
        lines.append(f"Location: {page.url.text.rstrip('/')}/{pick(rng, ascii_words())}")
    status_line = f"HTTP/1.1 {status} {REASONS[status]}"
    return "\r\n".join([status_line, *lines, "\r\n"]).encode()


def choose_status(rng: Random) -> int:
    chance = rng.random()
    return 301 if chance < 0.03 else 302 if chance < 0.05 else 404 if chance < 0.08 else 200


def choose_size(rng: Random, status: int, median: int) -> int:
    """A lognormal size (sigma 1). A sum of 12 uniform numbers replaces the normal one, so libm does not matter."""
    if status in (301, 302):
        return 0
    normal = sum(rng.random() for _ in range(12)) - 6
    return int(median * math.exp(normal))


def make_response(rng: Random, page: Page, charset: str, recipe: WarcRecipe) -> Block:
    status = choose_status(rng)
    kind = "application/pdf" if rng.random() < 0.01 else "text/html"
    media = kind if kind != "text/html" or rng.random() < 0.15 else f"text/html; charset={charset}"
    body = make_page(rng, page.url.path, choose_size(rng, status, recipe.median_body), recipe.links)
    extra: tuple[tuple[str, str], ...] = (("WARC-Identified-Payload-Type", kind),)
    if rng.random() < 0.005:
        extra += (("WARC-Truncated", "length"),)
    head = make_http_head(rng, page, status, media, len(body))
    return Block("response", "application/http; msgtype=response", head, body, extra)


def make_metadata(rng: Random, charset: str) -> Block:
    code, iso, name = LANGUAGES[int(rng.random() * len(LANGUAGES))]
    languages = (
        f'{{"reliable":true,"text-bytes":{rng.getrandbits(14)},"languages":[{{"code":"{code}","code-iso-639-3":"{iso}",'
        f'"text-covered":0.{90 + int(rng.random() * 10)},"score":{rng.getrandbits(11)}.0,"name":"{name}"}}]}}'
    )
    text = f"fetchTimeMs: {rng.getrandbits(11)}\r\ncharset-detected: {charset.upper()}\r\n"
    if rng.random() < 0.9:
        text += f"languages-cld2: {languages}\r\n"
    return Block("metadata", "application/warc-fields", b"", (text + "\r\n").encode())


def make_records(recipe: WarcRecipe, name: str) -> Iterator[bytes]:
    """The members of the file `name`, warcinfo first, three per page."""
    rng = Random(recipe.seed)
    warcinfo_id = record_id(rng)
    yield make_warcinfo(warcinfo_id, name)
    for number, url in enumerate(make_urls(rng, recipe.pages)):
        address = ".".join(str(1 + rng.getrandbits(8) % 254) for _ in range(4))
        page = Page(url, START + number // 3, address, warcinfo_id, recipe.payload_digests)
        ids = [record_id(rng) for _ in range(3)]
        charset = pick(rng, CHARSETS)
        yield make_record(page, make_request(page), ids[0])
        yield make_record(page, make_response(rng, page, charset, recipe), ids[1], ids[0])
        yield make_record(page, make_metadata(rng, charset), ids[2], ids[1])
