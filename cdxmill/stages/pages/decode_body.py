"""The payload of a record -> its bytes with all encodings undone, up to a size."""

from __future__ import annotations

import re
from typing import NamedTuple

from cdxmill.stages.records.decode_payload import PayloadError, decode_payload

MAX_BODY = 256 << 20
"""Bytes of a decoded body. A bomb of a few kilobytes could fill the memory."""

_IS_ENCODED = re.compile(rb"\n(?:content|transfer)-encoding[ \t]*:", re.I)


class Body(NamedTuple):
    """The bytes of a decoded body. `problem` says why they are not all of it; "" if they are."""

    data: bytes
    problem: str = ""


def decode_body(http_head: bytes, payload: bytes, max_body: int = MAX_BODY) -> Body:
    """`payload` as its HTTP head says. What comes before an error is kept, as browsers do.

    >>> decode_body(b"HTTP/1.1 200 OK\\r\\nTransfer-Encoding: chunked\\r\\n\\r\\n", b"2\\r\\nab\\r\\n5\\r\\nc").data
    b'abc'
    """
    if _IS_ENCODED.search(http_head) is None:
        return Body(payload)
    parts: list[bytes] = []
    size = 0
    try:
        pieces = decode_payload(http_head, iter((payload,)))
    except PayloadError as error:  # an unknown encoding, which is often no encoding at all
        return Body(payload, _reason(error))
    try:
        for piece in pieces:
            parts.append(piece)
            size += len(piece)
            if size > max_body:
                return Body(b"".join(parts)[:max_body], f"the decoded body is larger than {max_body} bytes")
    except PayloadError as error:
        return Body(b"".join(parts), _reason(error))
    return Body(b"".join(parts))


def _reason(error: PayloadError) -> str:
    return str(error).removesuffix("; omit --decode")
