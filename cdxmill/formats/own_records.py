"""The files that `index` and `recompress` keep beside their outputs: their names, and their tab-separated rows.

Control characters, and characters that change the direction of text, are percent-encoded: a tab is %09, LF is %0A. So
the file can be shown on a terminal. If a field has such an encoded character, or %25, as text, its % is written as
%25. Every field is read back as it was, and the URLs of archives mostly look as they did.
"""

from __future__ import annotations

import posixpath
import re

from cdxmill.regex import regex

OUTPUTS = ".outputs.tsv"
FAILURES = "failures.tsv"
APART = "_cdxmill"
"""The directory for these two where all files beside the outputs would be read as parts of one table."""
TABLE = ".parquet"
"""The ending of an output that is a part of a table."""
BESIDE = ".failures"
"""Ending of the list of failures beside a remote output: several machines cannot append to one file there."""
OFFSETS = ".offsets.gz"
"""What the name of the table of offsets of a new archive adds to that of the archive."""
PROOF = ".proof.json"
"""The same of the proof of a new archive."""
_ESCAPES = (
    "(?:%25|%[01][0-9A-F]|%7F|%C2%[89][0-9A-F]|%D8%9C|%E2%80%(?:8[EF]|A[89A-E])|%E2%81%A[6-9]|%EF%BB%BF)"
)
CONTROLS = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
"""The pattern of a control character, or one that changes the direction of text."""
_ESCAPE = regex(_ESCAPES)
_SPECIAL = regex(f"{CONTROLS}|(?={_ESCAPES})%")


def is_own_record(path: str) -> bool:
    """Whether `index` or `recompress` writes a record of this name beside its outputs.

    >>> [is_own_record(name) for name in ("cdx/failures.tsv", ".outputs.tsv", "_a.cdx.gz.failures", "a.zst.offsets.gz")]
    [True, True, True, True]
    >>> [is_own_record(name) for name in ("a.tsv", "_a.tsv", "a.cdx.gz.failures")]
    [False, False, False]
    """
    name = posixpath.basename(path)
    is_list = name.startswith("_") and name.endswith(BESIDE)
    return name in (FAILURES, OUTPUTS) or is_list or name.endswith((OFFSETS, PROOF))


def format_row(fields: list[str]) -> bytes:
    r"""A row with its LF.

    >>> format_row(["a\tb", "100%", "%09", "\x1b[2J", "a%20b"])
    b'a%09b\t100%\t%2509\t%1B[2J\ta%20b\n'
    """
    return f"{row_text(fields)}\n".encode("utf-8", "surrogateescape")


def row_text(fields: list[str]) -> str:
    """A row without its LF, as text."""
    if not _SPECIAL.search("".join(fields)):
        return "\t".join(fields)
    return "\t".join(_SPECIAL.sub(_encode, text) for text in fields)


def parse_row(row: bytes) -> list[str]:
    r"""The fields of a row.

    >>> parse_row(b'a%09b\t100%\t%2509\t%1B[2J\ta%20b\n')
    ['a\tb', '100%', '%09', '\x1b[2J', 'a%20b']
    """
    text = row.decode("utf-8", "surrogateescape").removesuffix("\n")
    return [_ESCAPE.sub(_decode, field) for field in text.split("\t")]


def _encode(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0].encode())


def _decode(found: re.Match[str]) -> str:
    return bytes.fromhex(found[0].replace("%", "")).decode()
