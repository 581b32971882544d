"""A gzip member, compared with its index line the quick way: what `check_digest` and `match_record` do, for the common kind.

    member -> content, proven by libdeflate -> line by the compiled reader -> compared up to the digest -> SHA-1

Whatever is unusual or differs is left to those two, which say what differs.
"""

from __future__ import annotations

import re

from cdxmill.capture import CommonLine
from cdxmill.formats.archives.small_member import inflate_member
from cdxmill.formats.lines.cdxj import is_of_revisit, up_to_digest
from cdxmill.formats.lines.surt import origin_keys
from cdxmill.stages import native
from cdxmill.stages.captures.common_line import common_payload, is_revisit
from cdxmill.stages.records.payload_digest import base32, sha1
from cdxmill.stages.records.read_gzip import QUICK_CONTENT

_DIGEST_FIELD = re.compile(rb'"digest": "([A-Z2-7]{32})"')
_DIGITS = bytes.maketrans(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", b"0123456789abcdefghijklmnopqrstuv")


class CommonChecks:
    """Checks members, one after the other. `has_revisits` says whether revisits are accepted, too."""

    def __init__(self, has_revisits: bool = True) -> None:
        self._has_revisits = has_revisits
        self._wanted = b""
        self._is_checked = False
        self._archive = origin_keys(False), b"", self._own_digest

    def _own_digest(self, content: bytearray | bytes, start: int, end: int) -> bytes:
        """The digest of a payload whose record has none: the wanted one if it has that."""
        hashed = sha1(memoryview(content)[start:end])
        self._is_checked = _is_same(self._wanted, hashed.digest())
        return self._wanted if self._is_checked else base32(hashed)

    def line_of(self, member: bytes, line: bytes) -> CommonLine | None:
        """The line of a response or revisit at the start of a file without a name, if it agrees with its index line.

        That is: the member is exactly one record, key, timestamp, URL, MIME type, status and digest are those of
        `line`, and the payload of a response has this digest, in SHA-1. None if this is not so or not certain.
        """
        wanted = _DIGEST_FIELD.search(line)
        content = None if native.read is None or wanted is None else inflate_member(member, QUICK_CONTENT)
        if native.read is None or wanted is None or content is None:
            return None
        self._wanted, self._is_checked = wanted[1], False
        made = native.read(self._archive, content, 0, len(member))
        if not isinstance(made, CommonLine):
            return None
        same = up_to_digest(made.start)
        if not line.startswith(same) or not same.endswith(wanted[0]):
            return None
        if is_of_revisit(same):
            return made if self._has_revisits and is_revisit(content) else None
        return made if self._is_checked or _payload_has(wanted[1], content) else None


def _payload_has(digest: bytes, content: bytearray) -> bool:
    """Whether `digest` is that of the payload of a common record."""
    return _is_same(digest, sha1(common_payload(content)).digest())


def _is_same(digest: bytes, hashed: bytes) -> bool:
    """Whether a digest in base32 is that of these 20 bytes. Faster than base32 of them."""
    return int(digest.translate(_DIGITS), 32) == int.from_bytes(hashed, "big")
