"""The links of a page as absolute URLs."""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import urljoin

_ABSOLUTE = re.compile(r"https?://[^/\\?#\s.\[]", re.I)
"""A URL that needs no check. The other ones, such as those with an IPv6 address, are parsed."""
_HTTP = re.compile(r"https?://[^/?#\s]", re.I)
_ORIGIN = re.compile(r"https?://[^/\\?#\s]+", re.I)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)
_IGNORED = str.maketrans("", "", "\t\n\r")
"""Characters that browsers remove from URLs (WHATWG URL, 4.4)."""
_SPACES = "".join(map(chr, range(33)))


class LinkBase:
    """The address that the links of a page start from."""

    def __init__(self, url: str, href: str | None = None) -> None:
        """`url` is that of the page, `href` that of its base element."""
        joined = _joined(url, href.strip(_SPACES)) if href else None
        self.url = joined or url
        found = _ORIGIN.match(self.url)
        self._origin = found[0] if found is not None else ""

    def absolute(self, hrefs: Iterable[str | None]) -> list[str]:
        """Absolute http and https URLs, without fragments, in the order of the page. Others are skipped."""
        links = (href and self._absolute(href) for href in hrefs)
        return [link for link in links if link]

    def _absolute(self, href: str) -> str | None:
        # A path, as most links are, that is right as it is.
        if (
            href[0] == "/"
            and self._origin
            and href.isprintable()
            and "#" not in href
            and "/." not in href
            and href[1:2] not in ("/", "\\")
            and href[-1] != " "
        ):
            return self._origin + href
        if href[0] <= " " or href[-1] <= " ":
            href = href.strip(_SPACES)
        if not href.isprintable():
            href = href.translate(_IGNORED)
        href = href.partition("#")[0]
        if _ABSOLUTE.match(href):
            return href
        if not href:
            return None
        if _SCHEME.match(href) and href[:4].lower() != "http":
            return None
        return _joined(self.url, href)


def _joined(base: str, href: str) -> str | None:
    try:
        url = urljoin(base, href)
    except ValueError:
        return None
    return url if _HTTP.match(url) else None


def host_of(url: str) -> str:
    """The host of a URL in lower case; "" if it has none.

    >>> host_of("http://user@WWW.Example.com:8080/x"), host_of("dns:example.com")
    ('www.example.com', '')
    """
    _, sep, rest = url.partition("://")
    if not sep:
        return ""
    for stop in "/?#\\":
        rest = rest.partition(stop)[0]
    rest = rest.rpartition("@")[2]
    if rest.startswith("["):
        return rest.partition("]")[0] + "]"
    return rest.partition(":")[0].rstrip(".").lower()
