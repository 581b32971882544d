"""A URL and a host -> the parts that Common Crawl's columnar index has for them, as its Java converter finds them.

The differences: a path keeps its `/./` and `/../`, which Java's URL class takes out.
"""

from __future__ import annotations

import re
from typing import NamedTuple
from urllib.parse import unquote_plus

from cdxmill.formats.lines.public_suffixes import Depths, PublicSuffixes
from cdxmill.regex import regex

_URL = regex(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)", re.S)
_HIERARCHY = regex(r"//([^/?#]*)([^?#]*)(?:\?([^#]*))?(?:#.*)?", re.S)
_AUTHORITY = regex(r"(\[[^]]*\]|[^:]*)(?::(.*))?", re.S)
_PORT = regex(r"\d{1,5}", re.ASCII)
_SLASHES = regex("/*")
_WEB = ("http", "https")
_DECIMAL = regex(r"(?:(?:25[0-5]|(?:2[0-4]|1?[0-9])?[0-9])\.){0,3}[0-9]+", re.ASCII)
_IPV6 = regex(r"\[[0-9a-fA-F:]+\]", re.ASCII)


class UrlParts(NamedTuple):
    """The parts of a URL; None for what it does not have. The host is in lower case."""

    host: str | None = None
    protocol: str | None = None
    path: str | None = None
    query: str | None = None
    port: int | None = None


def split_url(url: str) -> UrlParts:
    """The parts of a URL; all None if it has no scheme.

    >>> split_url("https://WWW.example.com:8080/a?b#c")
    UrlParts(host='www.example.com', protocol='https', path='/a', query='b', port=8080)
    >>> split_url("dns:example.com").host, split_url("http:/example.com").host, split_url("urn:x:y").host
    ('example.com', 'example.com', None)
    """
    found = _URL.fullmatch(url)
    if found is None:
        return UrlParts()
    protocol, rest = found[1].lower(), found[2]
    if protocol in _WEB and (not rest.startswith("//") or rest.startswith("///")):
        rest = "//" + _SLASHES.sub("", rest, count=1)
    parts = _HIERARCHY.fullmatch(rest)
    if parts is None:
        return UrlParts(rest.lower() if protocol in ("dns", "whois") else None, protocol)
    host, port = _split_authority(parts[1])
    if protocol == "whois":
        host = parts[2].lstrip("/") or host
    return UrlParts(host or None, protocol, parts[2], parts[3], port)


def _split_authority(text: str) -> tuple[str, int | None]:
    if text.count("@") > 1:
        return "", None
    found = _AUTHORITY.fullmatch(text.rpartition("@")[2])
    assert found is not None, "the pattern matches every text"
    port = found[2] or ""
    return found[1].lower(), int(port) if _PORT.fullmatch(port) else None


class HostParts(NamedTuple):
    """A host as the table has it: its name, the last five of its parts, its suffixes and domains, its name reversed."""

    name: str | None = None
    tld: str | None = None
    second: str | None = None
    third: str | None = None
    fourth: str | None = None
    fifth: str | None = None
    registry_suffix: str | None = None
    registered_domain: str | None = None
    private_suffix: str | None = None
    private_domain: str | None = None
    reversed: str | None = None


def split_host(host: str, suffixes: PublicSuffixes) -> HostParts:
    """The parts of the host of a URL, with its suffix at a registry and the longer one of a private domain. An IP address has only a name.

    >>> suffixes = PublicSuffixes(["com"])
    >>> split_host("www.example.com.", suffixes)[:4]
    ('www.example.com', 'com', 'example', 'www')
    >>> split_host("1.2.3", suffixes)[:2]
    ('1.2.0.3', None)
    """
    if _DECIMAL.fullmatch(host):
        return HostParts(_ip_address(host))
    if _IPV6.fullmatch(host):
        return HostParts(host)
    name = _ascii_name(host)
    if name is None:
        return HostParts()
    name = name.removesuffix(".")
    parts = name.rstrip(".").split(".")[::-1]
    last = [*parts[:5], *[None] * 5][:5]
    domains = (text for depth in _depths(name, suffixes) for text in _suffix_and_domain(name, depth))
    return HostParts._make((name, *last, *domains, ".".join(parts)))


def _depths(name: str, suffixes: PublicSuffixes) -> Depths:
    """The depths of the public suffixes of a name in ASCII. A comma is no dot here."""
    labels = name.lower().replace(",", ";").split(".")
    return Depths(0, 0) if "" in labels else suffixes.depths(",".join(labels[::-1]).encode())


def _suffix_and_domain(name: str, depth: int) -> tuple[str | None, str | None]:
    """The last `depth` labels of a name, and one more; None for what it does not have."""
    if not depth:
        return None, None
    start = len(name) + 1
    for _ in range(depth):
        start = name.rfind(".", 0, start - 1) + 1
    domain = name[name.rfind(".", 0, start - 1) + 1 :] if start else None
    return name[start:].lower(), domain


def _ip_address(text: str) -> str:
    """The four numbers of an address, the last of which may stand for several; other text stays as it is."""
    *first, last = map(int, text.split("."))
    room = 4 - len(first)
    if last >= 256**room:
        return text
    return ".".join(map(str, (*first, *last.to_bytes(room, "big"))))


def _ascii_name(host: str) -> str | None:
    """The name of a host in ASCII; None if it has none."""
    if "%" in host:
        host = unquote_plus(host)
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode()
    except UnicodeError:
        return None


_CRAWL = regex(
    r"(?:common-crawl/)?crawl-data/([^/]+)/segments/([^/]+)/(crawldiagnostics|robotstxt|warc|wat|wet)/"
)
_NEWS = regex(r"(?:common-crawl/)?crawl-data/CC-NEWS/(\d+)/(\d+)/CC-NEWS-(.+)\.warc\.gz", re.ASCII)


class CrawlParts(NamedTuple):
    """The crawl, segment and subset in the file name of an archive of Common Crawl."""

    crawl: str | None = None
    segment: str | None = None
    subset: str | None = None


def split_filename(filename: str) -> CrawlParts:
    """The parts of a file name; all None if it is not of Common Crawl.

    >>> split_filename("crawl-data/CC-MAIN-2024-22/segments/17.1/warc/a.warc.gz")
    CrawlParts(crawl='CC-MAIN-2024-22', segment='17.1', subset='warc')
    """
    if found := _CRAWL.match(filename):
        return CrawlParts(*found.groups())
    if found := _NEWS.match(filename):
        return CrawlParts(f"CC-NEWS-{found[1]}-{found[2]}", found[3], "news-warc")
    return CrawlParts()
