"""What a record of a WAT file says about a response: its servers, its links.

Only the parts that are needed become objects; the rest of the JSON is checked and skipped. JSON that this way cannot
read, for example with half a surrogate pair, is read by Python's own parser.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from cdxmill.capture import Headers

if TYPE_CHECKING:
    from msgspec.json import Decoder

_SERVER = "server"
_LINKS = ("A@/href", "AREA@/href")


class WatLinks(NamedTuple):
    """The links of a page as it has them: its URL, that of its `<base>`, and those of `a` and `area` elements."""

    url: str
    base: str | None
    hrefs: list[str | None]


def is_wat(headers: Headers) -> bool:
    """Whether a record is one of a WAT file: metadata in JSON."""
    return headers.get(b"warc-type") == b"metadata" and headers.get(b"content-type", b"").startswith(
        b"application/json"
    )


def server_values(block: bytes | bytearray) -> list[bytes] | None:
    """The Server fields of the response that the JSON describes; None if there is none. Raises ValueError: no JSON."""
    import msgspec

    try:
        envelope = _server_decoder().decode(block).Envelope
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        response = _response(_parsed(block))
        headers = _at(response, "Headers")
    else:
        payload = envelope and envelope.payload
        response = payload and payload.response
        headers = response and response.Headers
    return None if response is None else list(_servers(headers))


def links_of(block: bytes | bytearray) -> WatLinks | None:
    """The links of the page that the JSON describes; None if there is none. Raises ValueError: no JSON."""
    import msgspec

    try:
        envelope = _link_decoder().decode(block).Envelope
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _links_by_json(_parsed(block))
    response = envelope and envelope.payload and envelope.payload.response
    page, header = response and response.page, envelope and envelope.header
    if not page or not header or not header.url:
        return None
    base = page.Head and page.Head.Base
    return WatLinks(
        header.url, base, [link.url for link in page.Links or () if link.url and link.path in _LINKS]
    )


def _links_by_json(value: Any) -> WatLinks | None:
    page = _at(_response(value), "HTML-Metadata")
    url = _at(value, "Envelope", "WARC-Header-Metadata", "WARC-Target-URI")
    if not isinstance(page, dict) or not isinstance(url, str) or not url:
        return None
    base, links = _at(page, "Head", "Base"), page.get("Links")
    hrefs = [
        link["url"]
        for link in (links if isinstance(links, list) else ())
        if _at(link, "path") in _LINKS and isinstance(link.get("url"), str)
    ]
    return WatLinks(url, base if isinstance(base, str) else None, [href for href in hrefs if href])


@cache
def _server_decoder() -> Decoder[Any]:
    import msgspec

    return _decoder(msgspec.defstruct("Response", [("Headers", dict[str, Any] | None, None)]))


@cache
def _link_decoder() -> Decoder[Any]:
    import msgspec

    struct, text = msgspec.defstruct, str | None
    link = struct("Link", [("path", text, None), ("url", text, None)], gc=False)
    head = struct("Head", [("Base", text, None)])
    page = struct("Page", [("Head", head | None, None), ("Links", list[link] | None, None)])  # type: ignore[valid-type]
    header = struct("Header", [("url", text, None)], rename={"url": "WARC-Target-URI"})
    response = struct("Response", [("page", page | None, None)], rename={"page": "HTML-Metadata"})
    return _decoder(response, ("header", header | None, None))


def _decoder(response: Any, *more: Any) -> Decoder[Any]:
    """A decoder that reads `response` of a record, and `more` fields of the envelope."""
    import msgspec

    struct = msgspec.defstruct
    names = {"payload": "Payload-Metadata", "header": "WARC-Header-Metadata"}
    payload = struct(
        "Payload", [("response", response | None, None)], rename={"response": "HTTP-Response-Metadata"}
    )
    envelope = struct("Envelope", [("payload", payload | None, None), *more], rename=names)
    return msgspec.json.Decoder(struct("Record", [("Envelope", envelope | None, None)]))


def _servers(headers: Any) -> Iterator[bytes]:
    if not isinstance(headers, dict):
        return
    for name, value in headers.items():
        if name.lower() == _SERVER:
            values: Iterable[Any] = value if isinstance(value, list) else (value,)
            yield from (text.encode("utf-8", "replace") for text in values if isinstance(text, str))


def _parsed(block: bytes | bytearray) -> Any:
    """The JSON of a record. Raises ValueError with a reason."""
    try:
        return json.loads(block)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"the JSON is corrupt ({error})") from None


def _response(value: Any) -> Any:
    return _at(value, "Envelope", "Payload-Metadata", "HTTP-Response-Metadata")


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
