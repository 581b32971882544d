"""Which network addresses content may lead to. What a user names may be anywhere (SECURITY.md).

Content is what others wrote: a redirect, a location in cluster.loc. It must not make cdxmill send requests to
addresses that only this machine or its network can reach.
"""

from __future__ import annotations

import re
from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from unicodedata import normalize
from urllib.parse import unquote

from cdxmill.regex import regex

_METADATA = frozenset(
    map(
        ip_address,
        (
            *("fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42"),
            *("100.100.100.200", "168.63.129.16", "192.0.0.192"),
        ),
    )
)
"""Addresses at which clouds tell a machine its secrets. Most clouds use a link-local one."""
_TRANSLATED = tuple(map(ip_network, ("64:ff9b::/96", "::ffff:0:0:0/96", "::/96")))
"""IPv6 addresses that a gateway turns into the IPv4 address of their last 32 bits (RFC 6052, 2765, 4291)."""
_SITE, _GATEWAY = ip_network("fec0::/10"), ip_network("64:ff9b:1::/48")
"""IPv6 addresses of one site only (RFC 3879), and those that its gateway turns into any IPv4 address (RFC 8215)."""
_OLD_ADDRESS = regex(r"(0x[0-9a-f]*|\d+)(\.(0x[0-9a-f]*|\d+)){0,3}", re.I | re.A)
"""One to four numbers, decimal, octal or hexadecimal: what `inet_aton` reads as an IPv4 address."""


class Reach(IntEnum):
    """How far a request may go. A larger value allows less."""

    ANYWHERE = 0
    """The user named the URL."""
    NETWORK = 1
    """Content of a local file or a private address named it: not link-local, no metadata of a cloud."""
    PUBLIC = 2
    """Content of a public address named it: public addresses only."""


class LedUrl(str):
    """A URL that content names. It keeps its reach wherever it is passed on unchanged, also to other processes."""

    reach: Reach

    def __new__(cls, url: str, reach: Reach) -> LedUrl:
        """Keep the text of a URL and its reach."""
        led = super().__new__(cls, url)
        led.reach = reach
        return led

    def __getnewargs__(self) -> tuple[str, Reach]:  # type: ignore[override]
        """What pickle gives to __new__."""
        return self[:], self.reach

    def __str__(self) -> str:
        """Keep the reach: str(url) is the URL itself."""
        return self


def reach_of(url: str) -> Reach:
    """How far a URL may lead: anywhere, if no content named it."""
    return url.reach if isinstance(url, LedUrl) else Reach.ANYWHERE


def led_as(url: str, part: str) -> str:
    """A URL that is made from `url`, with the same reach."""
    return LedUrl(part, url.reach) if isinstance(url, LedUrl) else part


def is_internal(address: str) -> bool:
    """Whether an IP address is not a public one: loopback, link-local, private, reserved.

    >>> is_internal("8.8.8.8"), is_internal("10.0.0.1"), is_internal("::ffff:127.0.0.1")
    (False, True, True)
    """
    return not _is_public(_plain(address))


def is_refused(address: str, reach: Reach) -> bool:
    """Whether a request of this reach may not go to an IP address.

    >>> is_refused("169.254.169.254", Reach.NETWORK), is_refused("10.0.0.1", Reach.NETWORK)
    (True, False)
    """
    if reach == Reach.ANYWHERE:
        return False
    ip = _plain(address)
    if reach == Reach.PUBLIC and not _is_public(ip):
        return True
    return ip.is_link_local or ip.is_multicast or ip in _METADATA or ip in _GATEWAY


@lru_cache(maxsize=256)
def literal_address(url: str) -> str | None:
    """The IP address that a URL has in place of a host name, None if it has a name. `localhost` is one, too.

    The old ways to write an IPv4 address count, and wide digits and dots, as a proxy may know them. The host is the
    one that urllib3 asks.

    >>> literal_address("http://[::1]:80/a"), literal_address("http://localhost/a"), literal_address("http://host/a")
    ('::1', '127.0.0.1', None)
    >>> literal_address("http://0xA9FEA9FE/"), literal_address("http://2852039166/"), literal_address("http://10.1./")
    ('169.254.169.254', '169.254.169.254', '10.0.0.1')
    """
    from urllib3.util import parse_url  # slow to import, and most paths are local

    try:
        host = normalize("NFKC", unquote(parse_url(url).host or "")).replace("\u3002", ".")
        host = host.strip("[]").rstrip(".").lower()
        if host.endswith("localhost"):
            return "127.0.0.1"
        return str(_old_address(host) if _OLD_ADDRESS.fullmatch(host) else ip_address(host))
    except ValueError:
        return None


def _old_address(host: str) -> IPv4Address:
    from socket import inet_aton  # slow to import

    try:
        return IPv4Address(inet_aton(host))
    except OSError:
        raise ValueError(host) from None


def resolves_inside(host: str) -> bool:
    """Whether all addresses of a host name are internal. False if it has none."""
    import socket  # slow to import, and most paths are local

    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except (OSError, ValueError):
        return False
    return bool(found) and all(is_internal(str(entry[4][0])) for entry in found)


def _plain(address: str) -> IPv4Address | IPv6Address:
    """An address without its zone. An IPv6 address that stands for an IPv4 address gives that one."""
    ip = ip_address(address.partition("%")[0])
    if isinstance(ip, IPv4Address):
        return ip
    if any(ip in network for network in _TRANSLATED) and int(ip) > 1:  # ::1 is loopback
        return IPv4Address(int(ip) & 0xFFFFFFFF)
    return ip.ipv4_mapped or ip.sixtofour or ip


def _is_public(ip: IPv4Address | IPv6Address) -> bool:
    return ip.is_global and not ip.is_multicast and ip not in _SITE and ip not in _GATEWAY
