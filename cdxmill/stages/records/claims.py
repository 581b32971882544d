"""A digest in the header of a record: `algorithm:value`, in base32, hexadecimal or base64 digits (WARC 1.1, 5.8 and 5.9)."""

from __future__ import annotations

import base64
from typing import NamedTuple

from cdxmill.regex import regex
from cdxmill.stages.records.record_parts import is_base32_of

_ALGORITHMS = frozenset(("md5", "sha1", "sha256", "sha384", "sha512"))
_CLAIM = regex(r"(?:urn:)?([A-Za-z0-9-]+):(\S+)")
_SHA1, _SHA1_SIZE = regex("[A-Z2-7]{32}"), 20
"""The usual form: SHA-1 in base32."""


class Claim(NamedTuple):
    """A digest that a record says it has: the name of the field, the algorithm and the value."""

    field: str
    algorithm: str
    value: str

    def is_of(self, digest: bytes) -> bool:
        """Whether the value is this digest.

        >>> Claim("", "sha1", "3I42H3S6NNFQ2MSVX7XZKYAYSCX5QBYJ").is_of(bytes.fromhex("da39a3ee5e6b4b0d3255bfef95601890afd80709"))
        True
        >>> Claim("", "md5", "D41D8CD98F00B204E9800998ECF8427E").is_of(bytes.fromhex("d41d8cd98f00b204e9800998ecf8427e"))
        True
        """
        if len(digest) == _SHA1_SIZE and _SHA1.fullmatch(self.value):
            return is_base32_of(self.value.encode(), digest)
        value = self.value.rstrip("=")
        if len(value) == 2 * len(digest):
            return value.lower() == digest.hex()
        if value.upper() == base64.b32encode(digest).decode().rstrip("="):
            return True
        in_base64 = value.replace("-", "+").replace("_", "/") + "=" * (-len(value) % 4)
        try:
            return base64.b64decode(in_base64, validate=True) == digest
        except ValueError:
            return False


def parse_claim(field: str, text: bytes | None) -> Claim | None:
    """The digest in a field. None if it is missing, or of an algorithm that nobody can compute.

    >>> parse_claim("WARC-Block-Digest", b"sha-256:00ff")
    Claim(field='WARC-Block-Digest', algorithm='sha256', value='00ff')
    """
    found = _CLAIM.fullmatch((text or b"").decode("latin-1").strip())
    if found is None:
        return None
    algorithm = found[1].lower().replace("-", "")
    return Claim(field, algorithm, found[2]) if algorithm in _ALGORITHMS else None
