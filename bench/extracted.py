"""The records of a WAT or WET file about the records of a WARC, in the form that Common Crawl writes."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator
from typing import Any

from bench.warc_corpus import digest, iso_date

_LINK = re.compile(rb'<(a|img|link)\b[^>]*?\b(href|src)="([^"]*)"[^>]*>([^<]*)')
_META = re.compile(rb'<meta (?:property|name)="([^"]*)" content="([^"]*)"')
_TITLE = re.compile(rb"<title>([^<]*)")
_HIDDEN = re.compile(rb"(?s)<script.*?</script>|<[^>]*>")
_START = 1_717_000_000


def _headers(data: bytes) -> dict[str, str]:
    lines = data.decode("utf-8", "replace").split("\r\n")[1:]
    return dict(line.split(": ", 1) for line in lines if ": " in line)


def _record(kind: str, fields: list[tuple[str, str]], block: bytes) -> bytes:
    head = [
        "WARC/1.0",
        f"WARC-Type: {kind}",
        *(f"{name}: {value}" for name, value in fields),
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join([*head, "", ""]).encode() + block + b"\r\n\r\n"


def _identifier(text: str) -> str:
    number = f"{zlib.crc32(text.encode()):08x}{zlib.adler32(text.encode()):08x}" * 2
    return f"<urn:uuid:{number[:8]}-{number[8:12]}-4{number[13:16]}-a{number[17:20]}-{number[20:]}>"


def _html(body: bytes) -> dict[str, Any]:
    def text(data: bytes) -> str:
        return data.decode("utf-8", "replace")

    paths = {b"a": "A@/href", b"img": "IMG@/src", b"link": "LINK@/href"}
    links = [
        {"path": paths[tag], "url": text(url)} | ({"text": text(label).strip()} if label.strip() else {})
        for tag, _, url, label in _LINK.findall(body)
    ]
    metas = [{"property": text(name), "content": text(value)} for name, value in _META.findall(body)]
    title = _TITLE.search(body)
    return {"Head": {"Title": text(title[1]) if title else "", "Metas": metas}, "Links": links}


def _payload(kind: str, media: str, block: bytes) -> dict[str, Any]:
    head, _, body = block.partition(b"\r\n\r\n")
    if kind == "metadata":
        values = [{"Name": name, "Value": value} for name, value in _headers(b"\r\n" + block).items()]
        return {"Actual-Content-Type": media, "WARC-Metadata-Metadata": {"Metadata-Records": values}}
    first = head.partition(b"\r\n")[0].decode().split(" ", 2)
    details = {
        "Headers": _headers(head),
        "Headers-Length": str(len(head) + 4),
        "Entity-Length": str(len(body)),
    }
    details["Entity-Digest"] = digest(body)
    if kind == "request":
        message = {"Method": first[0], "Path": first[1], "Version": first[2]}
        return {
            "Actual-Content-Type": media,
            "HTTP-Request-Metadata": {**details, "Request-Message": message},
        }
    message = {"Status": first[1], "Version": first[0], "Reason": first[-1]}
    found = {**details, "Response-Message": message, "HTML-Metadata": _html(body)}
    return {"Actual-Content-Type": media, "HTTP-Response-Metadata": found}


def wat_records(records: Iterable[bytes], name: str) -> Iterator[bytes]:
    """A metadata record with JSON for each record of the WARC file `name`."""
    for number, record in enumerate(records):
        head, _, rest = record.partition(b"\r\n\r\n")
        fields, block = _headers(head), rest[:-4]
        kind, identifier = fields["WARC-Type"], fields["WARC-Record-ID"]
        payload = {} if kind == "warcinfo" else _payload(kind, fields["Content-Type"], block)
        envelope = {
            "Format": "WARC",
            "WARC-Header-Length": str(len(head) + 4),
            "Actual-Content-Length": str(len(block)),
            "Block-Digest": digest(block),
            "WARC-Header-Metadata": fields,
            "Payload-Metadata": payload,
        }
        gzip = {"Inflated-Length": str(len(record)), "Footer-Length": "8", "Header-Length": "10",
                "Inflated-CRC": str(zlib.crc32(record)), "Deflate-Length": str(len(record) // 4)}  # fmt: skip
        container = {
            "Filename": name,
            "Compressed": True,
            "Offset": str(number * 2347),
            "Gzip-Metadata": gzip,
        }
        text = json.dumps({"Container": container, "Envelope": envelope}, separators=(",", ":"))
        about = [
            ("WARC-Target-URI", fields.get("WARC-Target-URI", name)),
            ("WARC-Date", iso_date(_START + number // 9)),
            ("WARC-Record-ID", _identifier(f"{name} wat {number}")),
            ("WARC-Refers-To", identifier),
            ("Content-Type", "application/json"),
        ]
        yield _record("metadata", about, text.encode())


def wet_records(records: Iterable[bytes], name: str) -> Iterator[bytes]:
    """A conversion record with the text of each response of the WARC file `name`."""
    for number, record in enumerate(records):
        head, _, rest = record.partition(b"\r\n\r\n")
        fields = _headers(head)
        if fields["WARC-Type"] != "response":
            continue
        body = rest[:-4].partition(b"\r\n\r\n")[2]
        lines = (line.strip() for line in _HIDDEN.sub(b"\n", body).split(b"\n"))
        text = b"\n".join(line for line in lines if line) + b"\n"
        about = [
            ("WARC-Target-URI", fields["WARC-Target-URI"]),
            ("WARC-Date", fields["WARC-Date"]),
            ("WARC-Record-ID", _identifier(f"{name} wet {number}")),
            ("WARC-Refers-To", fields["WARC-Record-ID"]),
            ("WARC-Block-Digest", digest(text)),
            ("WARC-Identified-Content-Language", "eng"),
            ("Content-Type", "text/plain"),
        ]
        yield _record("conversion", about, text)
