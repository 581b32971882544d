"""A digest of a record may be written in hex, base32 or base64, and is compared in each of them."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

import pytest

from cdxmill.stages.records.claims import Claim

URL_SAFE = "of base64 with - and _"
FORMS: dict[str, Callable[[bytes], str]] = {
    "hex": lambda digest: digest.hex(),
    "HEX": lambda digest: digest.hex().upper(),
    "base32": lambda digest: base64.b32encode(digest).decode(),
    "base32 without its end": lambda digest: base64.b32encode(digest).decode().rstrip("="),
    "base32 in lower case": lambda digest: base64.b32encode(digest).decode().lower(),
    "base64": lambda digest: base64.b64encode(digest).decode(),
    "base64 without its end": lambda digest: base64.b64encode(digest).decode().rstrip("="),
    URL_SAFE: lambda digest: base64.urlsafe_b64encode(digest).decode().rstrip("="),
}


def digests(algorithm: str) -> list[bytes]:
    """Of many texts: some in base64 have `+` or `/`, and some have neither."""
    return [hashlib.new(algorithm, b"%d" % number).digest() for number in range(40)]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
def test_a_digest_is_of_its_bytes_and_of_no_others(algorithm: str, form: str) -> None:
    found = digests(algorithm)
    for digest, other in zip(found, found[1:] + found[:1], strict=True):
        claim = Claim("", algorithm, FORMS[form](digest))
        assert claim.is_of(digest) is True
        assert claim.is_of(other) is False


@pytest.mark.parametrize("form", [base64.b64encode, base64.urlsafe_b64encode])
def test_base64_with_other_characters_in_it_is_of_none(form: Callable[[bytes], bytes]) -> None:
    for digest in digests("sha256"):
        value = form(digest).decode()
        assert not Claim("", "sha256", f"{value[:9]}!!!!{value[9:]}").is_of(digest)


@pytest.mark.parametrize("value", ["", "?", "=", "abcde", "é", "00", "A" * 32, "z" * 40])
def test_what_is_no_digest_is_of_none(value: str) -> None:
    for algorithm in ("md5", "sha1", "sha256"):
        assert not Claim("", algorithm, value).is_of(digests(algorithm)[0])


def test_an_md5_in_hex_may_look_like_a_sha1_in_base32() -> None:
    assert Claim("", "md5", "ABCDEF27" * 4).is_of(bytes.fromhex("ABCDEF27" * 4))
