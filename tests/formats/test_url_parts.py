"""Hosts of URLs that are not the usual ones: addresses, names that are not ASCII, and what has no host."""

from __future__ import annotations

import pytest

from cdxmill.formats.lines.public_suffixes import PublicSuffixes
from cdxmill.formats.lines.url_parts import split_filename, split_host, split_url


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


SUFFIXES = PublicSuffixes(
    ["// ===BEGIN ICANN DOMAINS===", "com", "uk", "co.uk", "// ===END ICANN DOMAINS===", "blogspot.co.uk"]
)


@pytest.mark.parametrize(
    ("host", "last", "domains"),
    [
        (
            "a.b.c.d.www.Example.co.uk",
            "uk co Example www d",
            ("co.uk", "Example.co.uk", "co.uk", "Example.co.uk"),
        ),
        (
            "x.blogspot.co.uk",
            "uk co blogspot x",
            ("co.uk", "blogspot.co.uk", "blogspot.co.uk", "x.blogspot.co.uk"),
        ),
        ("blogspot.co.uk", "uk co blogspot", ("co.uk", "blogspot.co.uk", "blogspot.co.uk", None)),
        ("co.uk", "uk co", ("co.uk", None, "co.uk", None)),
        ("example.CO.uk.", "uk CO example", ("co.uk", "example.CO.uk", "co.uk", "example.CO.uk")),
        ("a.new", "new a", (None, None, None, None)),
        ("a..com", "com  a", (None, None, None, None)),
        ("a,b.com", "com a,b", ("com", "a,b.com", "com", "a,b.com")),
        ("256.1", "1 256", (None, None, None, None)),
    ],
)
def test_a_host_has_labels_and_a_domain_below_its_suffixes(
    host: str, last: str, domains: tuple[str | None, ...]
) -> None:
    found = split_host(host, SUFFIXES)
    labels = [found.tld, found.second, found.third, found.fourth, found.fifth]
    assert labels == [*last.split(" "), None, None, None, None, None][:5]
    assert found[6:10] == domains
    assert found.reversed == ".".join(host.removesuffix(".").split(".")[::-1])


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("1.2.3.4", "1.2.3.4"),
        ("1.256", "1.0.1.0"),
        ("1.16777215", "1.255.255.255"),
        ("1.16777216", "1.16777216"),
        ("1.2.65535", "1.2.255.255"),
        ("1.2.65536", "1.2.65536"),
        ("4294967295", "255.255.255.255"),
        ("[::1]", "[::1]"),
    ],
)
def test_an_address_has_only_a_name(host: str, address: str) -> None:
    assert split_host(host, SUFFIXES) == (address, *[None] * 10)


@pytest.mark.parametrize(
    ("url", "parts"),
    [
        ("http://a.com", ("a.com", "http", "", None, None)),
        ("http://a.com?q", ("a.com", "http", "", "q", None)),
        ("http://a.com/#f?q", ("a.com", "http", "/", None, None)),
        ("http:a.com/x", ("a.com", "http", "/x", None, None)),
        ("https:///a.com/x?y#z", ("a.com", "https", "/x", "y", None)),
        ("HTTP://A.com:/", ("a.com", "http", "/", None, None)),
        ("http://a.com:99999/", ("a.com", "http", "/", None, 99999)),
        ("http://a.com:100000/", ("a.com", "http", "/", None, None)),
        ("ftp:a", (None, "ftp", None, None, None)),
        ("ftp:///a/b?c", (None, "ftp", "/a/b", "c", None)),
        ("mailto:x@y", (None, "mailto", None, None, None)),
        ("http://[::1]:80/x", ("[::1]", "http", "/x", None, 80)),
        ("http:", (None, "http", "", None, None)),
        ("a.com/x", (None, None, None, None, None)),
    ],
)
def test_a_url_has_none_of_what_it_lacks(url: str, parts: tuple[object, ...]) -> None:
    assert split_url(url) == parts


@pytest.mark.parametrize(
    ("filename", "parts"),
    [
        ("crawl-data/CC-MAIN-2024-22/segments/17.1/warc/a.gz", ("CC-MAIN-2024-22", "17.1", "warc")),
        ("common-crawl/crawl-data/C/segments/1/robotstxt/a.gz", ("C", "1", "robotstxt")),
        (
            "crawl-data/CC-NEWS/2020/02/CC-NEWS-20200201-7.warc.gz",
            ("CC-NEWS-2020-02", "20200201-7", "news-warc"),
        ),
        ("crawl-data/C/segments/1/other/a.gz", (None, None, None)),
        ("x/crawl-data/C/segments/1/warc/a.gz", (None, None, None)),
    ],
)
def test_only_file_names_of_common_crawl_have_a_crawl(filename: str, parts: tuple[str | None, ...]) -> None:
    assert split_filename(filename) == parts
