"""What was found in a directory, or by a glob."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from cdxmill.errors import InputError

UNFINISHED = "_temporary"
"""Hadoop's directory for the output of unfinished tasks."""
FILE, DIRECTORY = "", "directory"
SPECIAL = "socket, pipe or device"
SEARCHED = "link to a directory that was searched already"
"""What an entry of a directory is."""
ANY_DEPTH = "**"
_MAGIC = re.compile(r"[*?\[]")


def is_glob(path: str) -> bool:
    """Whether a path, a URL or a step of one has one of the characters `*?[`."""
    return _MAGIC.search(path) is not None


def fixed_start(step: str) -> str:
    """The part of a step before the first of the characters `*?[`."""
    return _MAGIC.split(step, maxsplit=1)[0]


@dataclass
class Listing:
    """The paths or URLs of the files that were found; `links` are symbolic links to files.

    `others` are no files, each with what it is. `errors` report what could not be listed.
    """

    files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)


class Item(NamedTuple):
    """An entry of a directory. Of a symbolic link, `kind` is what it leads to; None if that cannot be read."""

    name: str
    kind: str | None
    is_link: bool = False
