"""A non-GET request -> a query that is appended to its URL (IIPC warc-specifications, cdx-non-get-requests).

    POST /search, body a=1&b=2   ->   /search?__wb_method=POST&a=1&b=2

The query of the body is truncated to 4096 characters. AMF bodies are handled as binary: decoding them needs an
object library, and only other AMF decoders would give the same keys.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from urllib.parse import unquote_plus, urlencode

from cdxmill.regex import regex

MAX_QUERY = 4096

_BOUNDARY = regex(r'boundary="?([^";]+)')
_PART_NAME = regex(rb'\bname="([^"]*)"')


def append_query(url: str, method: str, content_type: str, body: bytes) -> tuple[str, str]:
    """`url` with method and body appended, and the query of the body alone. A GET does not change the URL.

    >>> append_query("http://a.b/", "POST", "application/json", b'{"n": [1, true]}')
    ('http://a.b/?__wb_method=POST&n=1&n.2_=true', 'n=1&n.2_=true')
    """
    if method == "GET":
        return url, ""
    query = _body_query(content_type, body)[:MAX_QUERY] if method in ("POST", "PUT") and body else ""
    joint = "&" if "?" in url else "?"
    return f"{url}{joint}__wb_method={method}" + (f"&{query}" if query else ""), query


def _body_query(content_type: str, body: bytes) -> str:
    try:
        if content_type.startswith("application/x-www-form-urlencoded"):
            return unquote_plus(body.decode())
        if content_type.startswith("multipart/"):
            return _multipart(content_type, body)
        if content_type.startswith("text/plain"):
            return _json(body)
    except (ValueError, RecursionError):
        return _binary(body)
    if content_type.startswith("application/json"):
        try:
            return _json(body)
        except (ValueError, RecursionError):
            return ""
    return _binary(body)


def _binary(body: bytes) -> str:
    return "__wb_post_data=" + base64.b64encode(body).decode()


def _multipart(content_type: str, body: bytes) -> str:
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise ValueError("no boundary")
    values = []
    for part in body.split(b"--" + boundary.group(1).strip().encode())[1:]:
        head, gap, content = part.partition(b"\r\n\r\n")
        name = _PART_NAME.search(head)
        if gap and name is not None:
            values.append((name.group(1), content.removesuffix(b"\r\n")))
    return urlencode(values)


def _json(body: bytes) -> str:
    fields: dict[str, str] = {}
    counts: dict[str, int] = {}
    for name, value in _leaves(json.loads(body), ""):
        if name in fields:
            counts[name] = counts.get(name, 1) + 1
            name = f"{name}.{counts[name]}_"
        fields[name] = value
    return urlencode(fields)


def _leaves(node: object, name: str) -> Iterator[tuple[str, str]]:
    if isinstance(node, dict):
        for key, value in node.items():
            yield from _leaves(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from _leaves(value, name)
    elif name:
        yield name, _as_javascript(node)


def _as_javascript(leaf: object) -> str:
    if isinstance(leaf, bool):
        return "true" if leaf else "false"
    if leaf is None:
        return "null"
    if isinstance(leaf, float) and leaf.is_integer():
        return str(int(leaf))
    return str(leaf)
