"""The links between hosts: from a page of a WARC or ARC file, or from a record of a WAT file.

A link is an `<a>` or `<area>` with an http or https URL. An item is `<host of the page> <host of the link>`. Hosts are
written as in Common Crawl's web graphs: reversed, in lower case, without `www.` at the start, IDNs in Punycode, without
a port. Links within a host, and those from or to an IP address, are not counted.
"""

from __future__ import annotations

import re
import collections
from collections.abc import Iterable
from functools import lru_cache

from cdxmill.stages.counting.tally import Tally
from cdxmill.stages.pages.link_base import LinkBase, host_of

_PLAIN = re.compile(r"https?://([a-z0-9.-]+)(?:[/?#]|\Z)", re.I)
"""A URL whose host needs no further parsing."""
_LABEL = re.compile(r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?")
_ADDRESS = re.compile(r"[0-9.]+")
_LONGEST = 253
_CACHED = 1 << 16


def add_links(url: str, base: LinkBase, hrefs: Iterable[str | None], tally: Tally) -> None:
    """Count the links from the page at `url`. They are as the page has them, and start from `base`."""
    source = _node_of(url)
    if not source:
        return
    if _node_of(base.url) == source:  # all other links are within the host, and most links are
        hrefs = [href for href in hrefs if href and ("//" in href or not href.isprintable())]
    for host, count in collections.Counter(map(_host, base.absolute(hrefs))).items():
        target = _node(host)
        if target and target != source:
            tally.add(f"{source} {target}".encode(), count)


def _node_of(url: str) -> str:
    return _node(_host(url))


def _host(url: str) -> str:
    found = _PLAIN.match(url)
    return found[1] if found is not None else host_of(url)


@lru_cache(_CACHED)
def _node(host: str) -> str:
    """A host as an item has it; "" if it is none that can be counted.

    >>> _node("WWW.Example.com"), _node("127.0.0.1")
    ('com.example', '')
    """
    host = host.lower().rstrip(".")
    if not host.isascii():
        try:
            host = host.encode("idna").decode()
        except UnicodeError:
            return ""
    labels = host.split(".")
    if labels[0] == "www" and len(labels) > 1:
        del labels[0]
    if len(host) > _LONGEST or _ADDRESS.fullmatch(host) or not all(map(_LABEL.fullmatch, labels)):
        return ""
    return ".".join(reversed(labels))
