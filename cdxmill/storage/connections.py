"""Connections to web servers: kept open, and shared by all files that a process reads."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import urllib3
from urllib3 import BaseHTTPResponse
from urllib3.exceptions import HTTPError

_SERVERS = 16
"""Servers to which connections are kept."""
_PER_SERVER = 16
"""Connections kept to one server, as `choose.ask_all` sends 16 requests at a time. Further ones are closed after use."""
_SHORT = 1 << 14
"""Bytes. An unwanted body up to this size is read, which takes less time than a new connection."""


def connections(url: str) -> urllib3.PoolManager:
    """The connections to use for `url`, through a proxy if the environment says so (HTTP_PROXY, NO_PROXY)."""
    parts = urlsplit(url)
    proxy = getproxies().get(parts.scheme)
    if not proxy or proxy_bypass(parts.netloc):
        proxy = None
    return _manager(os.getpid(), proxy)


@lru_cache(maxsize=4)
def _manager(process: int, proxy: str | None) -> urllib3.PoolManager:
    """The connections of one process: a forked process must not use those of its parent."""
    options: dict[str, Any] = {"num_pools": _SERVERS, "maxsize": _PER_SERVER, "block": False}
    if proxy is None:
        return urllib3.PoolManager(**options)
    secret = urllib3.util.parse_url(proxy).auth
    headers = urllib3.make_headers(proxy_basic_auth=secret) if secret else None
    return urllib3.ProxyManager(proxy, proxy_headers=headers, **options)


def give_back(answer: BaseHTTPResponse) -> None:
    """End an answer whose body is not wanted. The connection is kept if the rest of the body is short."""
    with suppress(HTTPError, OSError):
        answer.read(_SHORT, decode_content=False)
    answer.close()
