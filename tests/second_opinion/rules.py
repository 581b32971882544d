"""The differences between pywb's cdx-indexer and cdxj-indexer: which of the two cdxmill follows, and why.

A rule decides one field of one record by the values of both peers. The field `line` means that the
record has an index line. Each rule must decide records of more than one file: test_against_peers checks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple

from .seen import Seen

Peer = Literal["pywb", "cdxj"]

CAPTURES = ("response", "revisit", "resource", "metadata", "conversion")
"""Types of records that get an index line (WARC 1.1, 6)."""


class Rule(NamedTuple):
    """`applies(record, pywb's value, cdxj-indexer's value)`; `right` is the one to follow."""

    name: str
    fields: tuple[str, ...]
    right: Peer
    why: str
    applies: Callable[[Seen, str, str], bool]


RULES = (
    Rule(
        "revisit-status",
        ("status",),
        "cdxj",
        "WARC 1.1, 6.7.2: a revisit's block holds the head that came with this visit, and so its status",
        lambda record, pywb, cdxj: record.type == "revisit" and not pywb,
    ),
    Rule(
        "no-head-no-status",
        ("status",),
        "cdxj",
        "RFC 9112, 4: the status is in the HTTP status line; pywb writes 200 for a block without one",
        lambda record, pywb, cdxj: not record.has_head and not cdxj and pywb == "200",
    ),
    Rule(
        "next-source",
        ("mime", "digest"),
        "pywb",
        "if a header is absent or empty, the next source counts: for the type of a block that is no HTTP "
        "message, the record's Content-Type (WARC 1.1, 5.6); for the digest, the payload itself (5.9)",
        lambda record, pywb, cdxj: not record.is_arc and not cdxj,
    ),
    Rule(
        "arc-line-type",
        ("mime",),
        "pywb",
        "ARC 1.0: the header line names the media type; it counts if the HTTP head names none",
        lambda record, pywb, cdxj: record.is_arc and not record.head_type and not cdxj and "/" in pywb,
    ),
    Rule(
        "arc-line-unchecked",
        ("mime", "url"),
        "cdxj",
        "pywb copies the ARC line unchanged; but a URL has no spaces (RFC 3986, 2.1), and a media type "
        "is type/subtype (RFC 9110, 8.3.1; `html`, `no-type` are not), so that of the HTTP head counts, or none",
        lambda record, pywb, cdxj: record.is_arc and (" " in pywb if "://" in pywb else "/" not in pywb),
    ),
    Rule(
        "crawler-notes",
        ("line",),
        "pywb",
        "text/anvl metadata are notes of Heritrix on a capture, as application/warc-fields are; they are no capture",
        lambda record, pywb, cdxj: record.type == "metadata" and record.content_type == "text/anvl",
    ),
    Rule(
        "type-case",
        ("line",),
        "pywb",
        "WARC 1.1, 4: the grammar's literals are case-insensitive (RFC 2616, 2.1), so RESPONSE is response",
        lambda record, pywb, cdxj: record.type not in CAPTURES and record.type.lower() in CAPTURES,
    ),
    Rule(
        "not-a-capture",
        ("line",),
        "cdxj",
        "WARC 1.1, 5.5 and 7: unknown types are skipped; a continuation is part of another record",
        lambda record, pywb, cdxj: record.type.lower() not in CAPTURES,
    ),
    Rule(
        "conversion",
        ("line",),
        "pywb",
        "WARC 1.1, 6.8: a conversion holds a resource's content (WET files consist of them)",
        lambda record, pywb, cdxj: record.type == "conversion",
    ),
)


def rule_for(field: str, record: Seen, pywb: str, cdxj: str) -> Rule | None:
    """The first rule that decides this difference, if any does."""
    for rule in RULES:
        if field in rule.fields and rule.applies(record, pywb, cdxj):
            return rule
    return None
