"""The hosts of URLs as browsers read them (WHATWG URL; UTS 46 without transitional mappings)."""

from __future__ import annotations

import re
from functools import lru_cache

from cdxmill.regex import regex

NAME = r"(?:[a-z0-9_-]+\.)*+[a-z][a-z0-9_-]*+"
"""A host in lower case. The last label of an IPv4 address starts with a digit."""
_HOST = regex(rf"https?://({NAME})(?::[0-9]{{1,4}})?(?=[/?#]|\Z)")
_ORIGIN = regex(r"[a-z][a-z0-9+.-]*:[/\\\t\n\r]*[^/?#]*", re.I)
LONGEST = 300
"""Characters of the longest text that is remembered."""


def whole_text(url: str) -> str:
    """The URL with U+FFFD for half surrogate pairs, which JSON may have."""
    return url if url.isascii() else url.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def host_of(url: str) -> str:
    """The host of a URL in lower case, in Punycode, without a dot at its end; "" if it has none or is invalid.

    >>> [host_of(url) for url in ("http://user@WWW.Straße.de.:8080/x", "http:\\\\127.1", "http://[::1]/", "dns:a.com", "x://A.arc")]
    ['www.xn--strae-oqa.de', '127.0.0.1', '[::1]', '', 'a.arc']
    """
    found = _HOST.match(url)
    if found is not None:
        return found[1]
    start = _ORIGIN.match(url)
    text = url if start is None or start.end() == len(url) else start[0] + "/"
    return _parsed_host(text) if len(text) <= LONGEST else _parsed_host.__wrapped__(text)


@lru_cache(1 << 14)
def _parsed_host(url: str) -> str:
    from ada_url import URL

    try:
        return str(URL(whole_text(url)).hostname).rstrip(".").lower()  # not yet if it is not of http
    except ValueError:
        return ""
