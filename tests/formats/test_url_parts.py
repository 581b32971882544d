"""Hosts of URLs that are not the usual ones: addresses, names that are not ASCII, and what has no host."""

from __future__ import annotations

import pytest

from cdxmill.formats.lines.public_suffixes import PublicSuffixes
from cdxmill.formats.lines.url_parts import split_host, split_url


@pytest.mark.parametrize(
    ("url", "host", "port"),
    [
        ("whois://whois.nic.fr/example.fr", "example.fr", None),
        ("whois://whois.nic.fr", "whois.nic.fr", None),
        ("whois:Example.fr", "example.fr", None),
        ("http://user@name@a.com/", None, None),
        ("http://user@a.com:8080/", "a.com", 8080),
        ("http://a.com:80:80/", "a.com", None),
    ],
)
def test_the_host_of_a_url(url: str, host: str | None, port: int | None) -> None:
    found = split_url(url)
    assert (found.host, found.port) == (host, port)


@pytest.mark.parametrize(
    ("host", "name", "tld", "domain"),
    [
        ("[2001:db8::1]", "[2001:db8::1]", None, None),
        ("1.2.3.999", "1.2.3.999", None, None),
        ("4294967296", "4294967296", None, None),
        ("www.b%C3%BCcher.com", "www.xn--bcher-kva.com", "com", "xn--bcher-kva.com"),
        ("www.b\xfccher.com", "www.xn--bcher-kva.com", "com", "xn--bcher-kva.com"),
        ("b\xfccher..com", None, None, None),
        ("\xfc" * 70 + ".com", None, None, None),
    ],
)
def test_the_parts_of_a_host(host: str, name: str | None, tld: str | None, domain: str | None) -> None:
    found = split_host(host, PublicSuffixes(["com"]))
    assert (found.name, found.tld, found.private_domain) == (name, tld, domain)
