"""The connection to a web server: URLs, hosts, certificates, redirects, proxies."""

from __future__ import annotations

import datetime
import os
import socket
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from cdxmill.storage.web.http import open_ranges

from .range_server import RangeServer, Served, serving
from .web_file import BODY, A, error_of, read_all


def self_signed(path: Path) -> Path:
    """A key and a certificate for localhost, in one file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    today = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(today - datetime.timedelta(days=1))
        .not_valid_after(today + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem, plain = serialization.Encoding.PEM, serialization.NoEncryption()
    path.write_bytes(
        key.private_bytes(pem, serialization.PrivateFormat.PKCS8, plain) + certificate.public_bytes(pem)
    )
    return path


def test_a_host_that_does_not_exist_is_told_at_once(
    monkeypatch: pytest.MonkeyPatch, slept: list[float]
) -> None:
    def unknown(*_: object, **__: object) -> None:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert error_of("http://archive.invalid/a.warc.gz") == "unknown host; check the URL"
    assert slept == []


def test_a_certificate_that_nobody_vouches_for_is_told_at_once(
    server: RangeServer, file: Served, tmp_path: Path, slept: list[float]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(self_signed(tmp_path / "server.pem"))
    server.socket = context.wrap_socket(server.socket, server_side=True)
    told = "the server's certificate is not valid (self-signed certificate)"
    assert error_of(server.url.replace("http:", "https:") + A) == told
    assert slept == []


@pytest.mark.parametrize("url", ["http://", "http://[::1/a.warc", "http://host:port/a.warc"])
def test_what_is_no_url_is_told_at_once(url: str, slept: list[float]) -> None:
    assert "check the URL" in error_of(url)
    assert slept == []


def test_ranges_over_tls(
    server: RangeServer, file: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pem = self_signed(tmp_path / "server.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(pem))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    assert read_all(server.url.replace("http://127.0.0.1", "https://localhost") + A) == BODY


def test_bytes_of_no_encoding_in_a_url_are_no_fault_of_ours(server: RangeServer) -> None:
    assert "404" in error_of(server.url + os.fsdecode(b"/a\xfc.warc.gz"))


def test_the_target_of_a_redirect_is_remembered(server: RangeServer, file: Served) -> None:
    server.add("/moved/a.warc.gz", b"").moved_to = "../crawl/a.warc.gz"
    assert read_all(server.url + "/moved/a.warc.gz") == BODY
    assert server.ranges("/moved/a.warc.gz") == ["bytes=0-0"]


@pytest.mark.parametrize("status", [403, 404, 503])
def test_if_the_target_of_a_redirect_is_gone_the_first_url_is_asked(
    server: RangeServer, file: Served, hurry: None, status: int
) -> None:
    with serving() as other:
        server.add("/moved", b"").moved_to = other.url + A
        there = other.add(A, BODY)
        with open_ranges(server.url + "/moved") as read_at:
            assert read_at(0, 10) == BODY[:10]
            there.statuses = [status]
            assert read_at(10, 10) == BODY[10:20]
    assert len(server.ranges("/moved")) == 2


def test_redirects_that_never_end_are_told(server: RangeServer, slept: list[float]) -> None:
    server.add("/loop", b"").moved_to = "/loop"
    assert error_of(server.url + "/loop") == "redirects more than 5 times; check the URL"
    assert slept == []


def test_a_proxy_is_used_and_spared_as_the_environment_says(
    server: RangeServer, file: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.add("http://archive.example/a.warc", BODY)
    monkeypatch.setenv("http_proxy", server.url.replace("://", "://me:secret@"))
    assert read_all("http://archive.example/a.warc") == BODY
    assert server.request_headers[0]["proxy-authorization"] == "Basic bWU6c2VjcmV0"
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    assert read_all(server.url + A) == BODY
