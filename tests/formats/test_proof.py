"""A proof is read back as it was written, and another file of its name is no proof."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from cdxmill.formats.proof import Proof, Sum, description_fields, format_proof, parse_proof

PROOF = Proof(
    "cdxmill 1.2",
    "old.warc.gz",
    Sum(10, "a" * 64),
    "new.warc.zst",
    Sum(7, "b" * 64),
    Sum(99, "0123456789" * 6 + "cdef"),
    {"format": "zst", "level": 9, "library": "zstandard 0.22", "group": 1},
    {"id": 40000, "sha256": "d" * 64},
    {"warcinfo": 1, "response": 4},
    skipped=2,
    carried=3,
    digests=5,
    wrong_digests=1,
)


@pytest.mark.parametrize("name", [None, "first.warc.gz"])
def test_a_proof_is_read_back(name: str | None) -> None:
    proof = replace(PROOF, warc_filename=name)
    assert parse_proof(format_proof(proof)) == proof


def test_a_record_says_what_the_proof_does() -> None:
    said = dict(description_fields(PROOF))
    assert (said["software"], said["dictionary"], said["records-response"]) == ("cdxmill/1.2", 40000, 4)
    assert said["compression"] == "zst 9 (zstandard 0.22)"
    assert (said["damaged-parts-skipped"], said["damaged-parts-carried"]) == (2, 3)
    assert dict(description_fields(replace(PROOF, dictionary=None)))["dictionary"] == "none"


@pytest.mark.parametrize(
    "change",
    [
        {"proof": 2},
        {"proof": None},
        {"more": 1},
        {"old_file": {"size": 1, "sha256": "a" * 63}},
        {"new_file": {"size": 1, "sha256": "A" * 64}},
        {"content": {"size": 1, "sha256": "a" * 65}},
        {"content": {"size": "one", "sha256": "a" * 64}},
        {"content": {"size": 1}},
        {"content": None},
    ],
    ids=str,
)
def test_a_proof_of_another_version_or_without_a_checksum_is_refused(change: dict[str, Any]) -> None:
    fields = json.loads(format_proof(PROOF)) | change
    with pytest.raises(ValueError, match="is not a proof of cdxmill recompress"):
        parse_proof(json.dumps(fields).encode())


@pytest.mark.parametrize("data", [b"", b"[]", b"1", b"{}", b'{"proof": 1}', b"\xff"])
def test_another_file_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match="is not a proof of cdxmill recompress"):
        parse_proof(data)


def test_a_proof_is_a_file_of_lines() -> None:
    lines = format_proof(PROOF).decode().split("\n")
    assert lines[:4] == ["{", ' "proof": 1,', ' "tool": "cdxmill 1.2",', ' "old_name": "old.warc.gz",']
    assert lines[-2:] == ["}", ""]
