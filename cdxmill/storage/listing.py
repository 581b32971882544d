"""What was found in a folder, or by a glob."""

from __future__ import annotations

from dataclasses import dataclass, field

from cdxmill.errors import InputError

UNFINISHED = "_temporary"
"""Hadoop's folder for the output of unfinished tasks."""


@dataclass
class Listing:
    """The paths or URLs of the files that were found; `links` are symbolic links to files.

    `others` are no files, each with what it is. `errors` report what could not be listed.
    """

    files: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)
    others: list[tuple[str, str]] = field(default_factory=list)
    errors: list[InputError] = field(default_factory=list)
