"""What a row of docs/reliability.md is tested on: files, and which of their records are hit."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import zstandard

from .sources import Source

BAD = 2
"""The record that is hit, where one is."""


class Sources(NamedTuple):
    """Real records to build archives of."""

    warc: Source
    arc: Source


class Case(NamedTuple):
    """Files by name, all records that they had when they were whole, and the indexes of those that are hit.

    `inputs` are the command's arguments, relative to the files' folder; by default the files.
    With `is_forbidden` the command may not read the files.
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
    """A case of one file, which `parts` make up."""
    return Case({name: b"".join(parts)}, source.names(), frozenset(hit))


def swap(parts: list[bytes], new: bytes, index: int = BAD) -> list[bytes]:
    """`parts` with another one in the place of one."""
    return [*parts[:index], new, *parts[index + 1 :]]


def put(parts: list[bytes], new: bytes, index: int = BAD) -> list[bytes]:
    """`parts` with one more before that of `index`."""
    return [*parts[:index], new, *parts[index:]]


def overwrite(data: bytes, at: int, new: bytes) -> bytes:
    """`data` with `new` at `at`, which counts from the end where it is negative."""
    at %= len(data)
    return data[:at] + new + data[at + len(new) :]


def flip(data: bytes, at: int, bit: int = 0) -> bytes:
    """`data` with one bit flipped; `at` counts from the end where it is negative."""
    return overwrite(data, at, bytes((data[at] ^ 1 << bit,)))
