"""Redirects and other content lead only to addresses that they may name."""

from __future__ import annotations

import pickle
import re
import socket
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from cdxmill.cluster.find import resolved
from cdxmill.errors import InputError
from cdxmill.storage.location import locate
from cdxmill.storage.reach import LedUrl, Reach, is_internal, is_refused
from cdxmill.storage.web import http_file
from cdxmill.storage.web.connections import is_inside
from cdxmill.storage.web.http_file import HttpFile

from .range_server import RangeServer, Served, serving
from .web_file import BODY, A, error_of, read_all

METADATA = "http://169.254.169.254/latest/meta-data/"
REFUSED = "which others' content may not name; if you trust it, name that URL yourself"


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Addresses of host names, to be filled in. Other names resolve as usual."""
    known: dict[str, str] = {}
    resolve = socket.getaddrinfo

    def getaddrinfo(host: Any, *rest: Any, **options: Any) -> Any:
        return resolve(known.get(host, host), *rest, **options)

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return known


@pytest.fixture
def public(monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers of the tests count as public when they redirect."""
    monkeypatch.setattr(http_file, "reach_from", lambda url: Reach.PUBLIC)


@pytest.mark.parametrize(
    ("address", "reaches"),
    [
        ("8.8.8.8", {Reach.ANYWHERE, Reach.NETWORK, Reach.PUBLIC}),
        ("2606:4700::1111", {Reach.ANYWHERE, Reach.NETWORK, Reach.PUBLIC}),
        *(
            (text, {Reach.ANYWHERE, Reach.NETWORK})
            for text in ("127.0.0.1", "::1", "10.1.2.3", "192.168.0.1")
        ),
        *(
            (text, {Reach.ANYWHERE, Reach.NETWORK})
            for text in ("0.0.0.0", "100.64.0.1", "fc00::1", "::ffff:10.0.0.1")
        ),
        *((text, {Reach.ANYWHERE}) for text in ("169.254.169.254", "fe80::1%eth0", "::ffff:169.254.169.254")),
        *((text, {Reach.ANYWHERE}) for text in ("64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::", "fd00:ec2::254")),
        *((text, {Reach.ANYWHERE}) for text in ("fd20:ce::254", "fd00:ec2::23", "64:ff9b:1::a9fe:a9fe")),
        *((text, {Reach.ANYWHERE}) for text in ("::ffff:0:a9fe:a9fe", "::a9fe:a9fe", "ff02::1", "224.0.0.1")),
        ("fec0::1", {Reach.ANYWHERE, Reach.NETWORK}),
    ],
)
def test_addresses_are_allowed_by_reach(address: str, reaches: set[Reach]) -> None:
    assert {reach for reach in Reach if not is_refused(address, reach)} == reaches
    assert is_internal(address) == (Reach.PUBLIC not in reaches)


def test_a_redirect_never_leads_to_a_link_local_address(
    server: RangeServer, slept: list[float], names: dict[str, str]
) -> None:
    names["metadata.example"] = "127.0.0.1"  # a name that is no address says nothing
    server.add("/moved", b"").moved_to = METADATA
    told = f"leads by a redirect to {METADATA} to the internal address 169.254.169.254, {REFUSED}"
    assert error_of(server.url + "/moved") == told
    assert slept == []


HOSTS = (
    *(
        "169.254.169.254",
        "169.254.169.254.",
        "2852039166",
        "0xA9FEA9FE",
        "0251.0376.0251.0376",
        "169.254.43518",
    ),
    *(
        "[fd20:ce::254]",
        "[FD00:EC2::23]",
        "[64:ff9b:1::1]",
        "[::ffff:0:a9fe:a9fe]",
        "[fe80::1%25eth0]",
        "[ff02::1]",
    ),
    *("100.100.100.200:80", "8.8.8.8@168.63.129.16", r"169.254.169.254\@8.8.8.8", "%3169.254.169.254"),
    *("169。254。169。254", "１６９.254.169.254"),
)


@pytest.mark.parametrize("by_proxy", [False, True])
def test_no_request_is_sent_to_an_address_of_a_cloud(
    server: RangeServer, slept: list[float], monkeypatch: pytest.MonkeyPatch, by_proxy: bool
) -> None:
    """In each way to write it, as a redirect, in cluster.loc or archives.tsv, and in a WACZ. A proxy gets no request."""
    refused = "to the internal address|is not a valid URL"
    with serving() as proxy:
        if by_proxy:
            monkeypatch.setenv("http_proxy", proxy.url)
            monkeypatch.setenv("no_proxy", "127.0.0.1")
        for host in HOSTS:
            server.add("/moved", b"").moved_to = quote(f"http://{host}/a", "/:@%\\[]")
            assert re.search(refused, error_of(server.url + "/moved"))
            for name in ("a", "x.wacz/archive/a.warc.gz"):
                place = resolved(locate("/data/C"), f"http://{host}/{name}")
                with pytest.raises(InputError, match=refused):
                    place.read_bytes()
        assert proxy.seen == []


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "rebound.example", "2130706433"])
def test_a_public_server_does_not_redirect_to_an_internal_address(
    server: RangeServer, file: Served, names: dict[str, str], public: None, host: str
) -> None:
    names["rebound.example"] = "127.0.0.1"
    with serving() as other:
        other.add(A, BODY)
        server.add("/moved", b"").moved_to = other.url.replace("127.0.0.1", host) + A
        assert f"to the internal address 127.0.0.1, {REFUSED}" in error_of(server.url + "/moved")
        assert other.seen == []


def test_an_internal_server_redirects_to_internal_ones(
    server: RangeServer, file: Served, names: dict[str, str]
) -> None:
    names["archives.example"] = "127.0.0.1"
    server.add("/moved", b"").moved_to = server.url.replace("127.0.0.1", "archives.example") + A
    assert read_all(server.url.replace("127.0.0.1", "archives.example") + "/moved") == BODY
    assert is_inside("http://archives.example/")


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://host/a", "gopher://host/"])
def test_a_redirect_does_not_leave_the_web(server: RangeServer, slept: list[float], target: str) -> None:
    server.add("/moved", b"").moved_to = target
    assert (
        error_of(server.url + "/moved") == f"redirects to {target}, which is not a web address; check the URL"
    )


def test_a_redirect_does_not_leave_tls() -> None:
    with pytest.raises(InputError, match="redirects from https to http://host/a, which is not encrypted"):
        HttpFile("https://host/a")._redirected("https://host/a", "http://host/a")


def test_a_url_keeps_its_reach_on_its_way(server: RangeServer, file: Served) -> None:
    url = LedUrl(server.url + A, Reach.PUBLIC)
    with pytest.raises(InputError, match="internal address"):
        locate(LedUrl(f"{server.url}/x.wacz/archive/a.warc.gz", Reach.PUBLIC)).status()
    assert pickle.loads(pickle.dumps(url)) == url == server.url + A
    for led in (url, str(url), pickle.loads(pickle.dumps(url))):
        for ask in (read_all, lambda place: locate(place).status(), lambda place: locate(place).exists()):
            with pytest.raises(InputError, match="to the internal address 127"):
                ask(led)
    assert server.seen == []
    assert read_all(LedUrl(server.url + A, Reach.NETWORK)) == BODY


def test_the_reach_of_content_depends_on_its_place(
    monkeypatch: pytest.MonkeyPatch, names: dict[str, str]
) -> None:
    names.update({"public.example": "8.8.8.8", "intranet.example": "10.0.0.1"})
    for path in (
        "/data/C",
        "file:///data/C",
        "hdfs://host/C",
        "http://127.0.0.1/C",
        "http://intranet.example/C",
    ):
        assert locate(path).content_reach() == Reach.NETWORK
    for path in ("https://public.example/C", "http://8.8.8.8/C", "s3://bucket/C"):
        assert locate(path).content_reach() == Reach.PUBLIC
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://minio:9000")
    assert locate("s3://bucket/C").content_reach() == Reach.NETWORK


def test_a_password_of_netrc_is_not_sent(
    server: RangeServer, file: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / ".netrc").write_text("default login me password secret")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    assert read_all(server.url + A) == BODY
    assert not any("authorization" in headers for headers in server.request_headers)


def test_a_password_in_a_url_is_not_sent(server: RangeServer, file: Served) -> None:
    assert read_all(server.url.replace("://", "://me:secret@") + A) == BODY
    assert not any("authorization" in headers for headers in server.request_headers)
