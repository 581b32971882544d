"""What a record of a WAT file says about a response: its servers, its links.

Only the parts that are needed become objects; the rest of the JSON is checked and skipped. JSON that this way cannot
read, for example with half a surrogate pair, is read by Python's own parser.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from cdxmill.capture import Headers

if TYPE_CHECKING:
    from msgspec.json import Decoder

_SERVER = "server"


def is_wat(headers: Headers) -> bool:
    """Whether a record is one of a WAT file: metadata in JSON."""
    return headers.get(b"warc-type") == b"metadata" and headers.get(b"content-type", b"").startswith(
        b"application/json"
    )


def server_values(block: bytes | bytearray) -> list[bytes] | None:
    """The values of the Server fields of the response that the JSON describes; None if it describes no response.

    Raises ValueError if it is no JSON.
    """
    import msgspec

    try:
        envelope = _decoder().decode(block).Envelope
    except msgspec.DecodeError:
        response = _at(_parsed(block), "Envelope", "Payload-Metadata", "HTTP-Response-Metadata")
        headers = _at(response, "Headers")
    else:
        payload = envelope and envelope.payload
        response = payload and payload.response
        headers = response and response.Headers
    return None if response is None else list(_servers(headers))


@cache
def _decoder() -> Decoder[Any]:
    import msgspec

    struct = msgspec.defstruct
    response = struct("Response", [("Headers", dict[str, Any] | None, None)])
    payload = struct(
        "Payload", [("response", response | None, None)], rename={"response": "HTTP-Response-Metadata"}
    )
    envelope = struct("Envelope", [("payload", payload | None, None)], rename={"payload": "Payload-Metadata"})
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


def _at(value: Any, *names: str) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value
