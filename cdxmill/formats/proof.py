"""What `recompress` writes about a new archive beside it: a JSON object that proves of which archive and records it is.

docs/formats/proof.md describes the fields.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any

from cdxmill.regex import regex

VERSION = 1
_SHA256 = regex("[0-9a-f]{64}")


@dataclass(frozen=True)
class Sum:
    """The size and the SHA-256 of bytes."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Proof:
    """The proof of one archive.

    `old_file` and `new_file` are whole files as they lie, `content` the bytes of all records of the new file, decompressed
    and joined. `records` has the number of records by type; `skipped` and `carried` are the number of damaged parts.
    `digests` and `wrong_digests` count what was checked. `dictionary` is its id and SHA-256, None without one.
    `warc_filename` is the file name in the first record, if it is not that of the new file.
    """

    tool: str
    old_name: str
    old_file: Sum
    new_name: str
    new_file: Sum
    content: Sum
    compression: dict[str, Any]
    dictionary: dict[str, Any] | None
    records: dict[str, int]
    skipped: int
    carried: int
    digests: int
    wrong_digests: int
    warc_filename: str | None = None


def description_fields(proof: Proof) -> list[tuple[str, object]]:
    """What a record in the new archive itself says. It cannot have the checksum of its own file."""
    used = proof.dictionary or {"id": "none"}
    return [
        ("software", proof.tool.replace(" ", "/")),
        ("old-filename", proof.old_name),
        ("old-size", proof.old_file.size),
        ("old-sha256", proof.old_file.sha256),
        ("content-size", proof.content.size),
        ("content-sha256", proof.content.sha256),
        ("compression", f"{proof.compression['format']} {proof.compression['level']} ({proof.compression['library']})"),
        ("dictionary", used["id"]),
        *((f"records-{kind}", number) for kind, number in proof.records.items()),
        ("damaged-parts-skipped", proof.skipped),
        ("damaged-parts-carried", proof.carried),
    ]  # fmt: skip


def format_proof(proof: Proof) -> bytes:
    """The content of the file."""
    return json.dumps({"proof": VERSION, **asdict(proof)}, indent=1).encode("utf-8", "replace") + b"\n"


def parse_proof(data: bytes) -> Proof:
    """The proof in a file. Raises ValueError if it is none that this version reads."""
    try:
        found = json.loads(data)
        if found.pop("proof") != VERSION:
            raise ValueError
        for name in ("old_file", "new_file", "content"):
            found[name] = Sum(int(found[name]["size"]), str(found[name]["sha256"]))
            if not _SHA256.fullmatch(found[name].sha256):
                raise ValueError
        return Proof(**found)
    except (ValueError, TypeError, KeyError, AttributeError):
        raise ValueError("is not a proof of cdxmill recompress") from None
