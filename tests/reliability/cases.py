"""The test case of a row of docs/reliability.md: files, and which of their records are corrupt."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import zstandard

from .sources import Source

BAD = 2
"""The index of the record that is corrupt."""


class Sources(NamedTuple):
    """Real records to build archives from."""

    warc: Source
    arc: Source


class Case(NamedTuple):
    """Files by name, all records of the intact files, and the indexes of the corrupt ones.

    `inputs` are the command's arguments, relative to the files' folder; by default the files.
    With `is_forbidden`, the command has no permission to read the files.
    """

    files: dict[str, bytes]
    names: list[str]
    hit: frozenset[int]
    inputs: tuple[str, ...] = ()
    dictionary: zstandard.ZstdCompressionDict | None = None
    is_forbidden: bool = False


Builder = Callable[[Sources], Case]

BUILDERS: dict[str, Builder] = {}


def row(slug: str) -> Callable[[Builder], Builder]:
    """The builder of the row `slug`."""

    def register(builder: Builder) -> Builder:
        assert slug not in BUILDERS, f"two builders for {slug}"
        BUILDERS[slug] = builder
        return builder

    return register


def one_file(name: str, parts: list[bytes], source: Source, hit: Collection[int] = ()) -> Case:
    """A case with one file, which consists of `parts`."""
    return Case({name: b"".join(parts)}, source.names(), frozenset(hit))


def swap(parts: list[bytes], new: bytes, index: int = BAD) -> list[bytes]:
    """`parts` with one of them replaced."""
    return [*parts[:index], new, *parts[index + 1 :]]


def put(parts: list[bytes], new: bytes, index: int = BAD) -> list[bytes]:
    """`parts` with one more inserted at `index`."""
    return [*parts[:index], new, *parts[index:]]


def overwrite(data: bytes, at: int, new: bytes) -> bytes:
    """`data` with `new` at `at`; a negative `at` counts from the end."""
    at %= len(data)
    return data[:at] + new + data[at + len(new) :]


def flip(data: bytes, at: int, bit: int = 0) -> bytes:
    """`data` with one bit flipped; a negative `at` counts from the end."""
    return overwrite(data, at, bytes((data[at] ^ 1 << bit,)))
