"""What needs no question to a cluster: the page for people with its files, and the list of collections."""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cache
from importlib.resources import files

from cdxmill.server.answers import JSON, Response
from cdxmill.server.collections import Collection

_FILES = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/page.css": ("page.css", "text/css; charset=utf-8"),
    "/page.js": ("page.js", "text/javascript; charset=utf-8"),
}
_SAFE = (
    (
        b"content-security-policy",
        b"default-src 'self'; style-src 'self'; img-src 'self' data:; base-uri 'none'",
    ),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"max-age=300"),
)


def page(path: str) -> Response | None:
    """The page for people, or one of its files; None for other paths."""
    if path not in _FILES:
        return None
    name, kind = _FILES[path]
    return Response(200, kind, (_content(name),), _SAFE)


@cache
def _content(name: str) -> bytes:
    return (files("cdxmill.server") / "page" / name).read_bytes()


def collection_list(collections: Iterable[Collection], site: str, replay: str | None) -> Response:
    """All collections as Common Crawl lists its crawls; with `replay`, where their pages are shown."""
    found = [
        {
            "id": one.name,
            "name": one.name,
            "timegate": f"{site}/{one.name}/timegate/",
            "cdx-api": f"{site}/{one.name}-index",
            **({"report": f"{site}/{one.name}/report"} if one.has_report else {}),
            **({} if replay is None else {"replay": replay}),
        }
        for one in collections
    ]
    return Response(200, JSON, (json.dumps(found, indent=1).encode() + b"\n",))
