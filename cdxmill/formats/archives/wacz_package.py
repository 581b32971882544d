"""The files of a WACZ beside its archives (WACZ 1.1.1): the list of pages, the index of the index, and the list of all files.

pages/pages.jsonl           a head, then {"id": ..., "url": ..., "ts": ...} for each page
indexes/index.cdx.gz        lines of CDXJ, in blocks that are gzip members
indexes/index.idx           a head, then KEY {"offset": ..., "length": ..., "digest": ...} for each block
datapackage.json            the size and the SHA-256 of each file
datapackage-digest.json     the SHA-256 of datapackage.json, and perhaps a signature of it (WACZ-AUTH 0.1.0)
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from cdxmill.formats.lines.capture_fields import parse_fields
from cdxmill.regex import regex

PAGES, INDEX, INDEX_OF_INDEX = "pages/pages.jsonl", "indexes/index.cdx.gz", "indexes/index.idx"
PACKAGE, DIGEST = "datapackage.json", "datapackage-digest.json"
VERSION = "1.1.1"
PAGES_HEAD = b'{"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}\n'
INDEX_HEAD = b'!meta 0 {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}\n'
_HTML = ("text/html", "application/xhtml+xml")
_TIME = regex(r"(\d{4})(\d\d)(\d\d)(\d\d)(\d\d)(\d\d)")
_NO_NAME = regex(r"[^-a-z0-9._]")
"""Characters that the name of a resource may not have (Frictionless Data Package)."""


class Resource(NamedTuple):
    """A file of a WACZ: its path, its size in bytes and its SHA-256 in hexadecimal digits."""

    path: str
    size: int
    sha256: str


def iso_time(timestamp: str) -> str:
    """A timestamp of 14 digits as in RFC 3339. Raises ValueError.

    >>> iso_time("20140126200624")
    '2014-01-26T20:06:24Z'
    """
    found = _TIME.fullmatch(timestamp)
    if found is None:
        raise ValueError(f"invalid timestamp {timestamp!r}")
    return "{}-{}-{}T{}:{}:{}Z".format(*found.groups())


def page_of(line: bytes) -> bytes | None:
    r"""The line of a capture in the list of pages; None if it is no page: HTML with status 200 and a timestamp.

    >>> page_of(b'com,a)/ 20200101000000 {"url": "http://a.com/", "mime": "text/html", "status": "200"}')
    b'{"id": "33b80f18bd5c06a3", "url": "http://a.com/", "ts": "2020-01-01T00:00:00Z"}\n'
    """
    if b"html" not in line:
        return None
    try:
        fields = parse_fields(line)
        time = iso_time(str(fields["timestamp"]))
    except (KeyError, ValueError, RecursionError):
        return None
    kind = fields.get("mime-detected") or fields.get("mime")
    if kind not in _HTML or str(fields.get("status")) != "200" or "url" not in fields:
        return None
    url = str(fields["url"])
    known = hashlib.sha256(f"{time} {url}".encode("utf-8", "replace")).hexdigest()[:16]
    return json.dumps({"id": known, "url": url, "ts": time}).encode() + b"\n"


def format_block_line(key: bytes, offset: int, block: bytes) -> bytes:
    """The line of a block in the index of the index; `key` is the urlkey and timestamp of its first line."""
    digest = hashlib.sha256(block).hexdigest()
    return b'%b {"offset": %d, "length": %d, "digest": "sha256:%b"}\n' % (
        key,
        offset,
        len(block),
        digest.encode(),
    )


def format_package(files: Sequence[Resource], about: dict[str, str]) -> bytes:
    """datapackage.json: the files, with what is known `about` the WACZ, such as its title."""
    resources = [
        {
            "name": _NO_NAME.sub("_", one.path.rpartition("/")[2].lower()),
            "path": one.path,
            "hash": f"sha256:{one.sha256}",
            "bytes": one.size,
        }
        for one in files
    ]
    package = {"profile": "data-package", "wacz_version": VERSION, **about, "resources": resources}
    return json.dumps(package, indent=2).encode() + b"\n"


def hash_of(package: bytes) -> str:
    """What is signed: the digest of datapackage.json."""
    return f"sha256:{hashlib.sha256(package).hexdigest()}"


def format_digest(package: bytes, signed: dict[str, Any] | None) -> bytes:
    """datapackage-digest.json, for the bytes of datapackage.json; `signed` is what WACZ-AUTH calls signedData."""
    found: dict[str, Any] = {"path": PACKAGE, "hash": hash_of(package)}
    if signed is not None:
        found["signedData"] = signed
    return json.dumps(found, indent=2).encode() + b"\n"
