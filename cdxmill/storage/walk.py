"""List the files below a folder, or that match a glob, at an s3 or hdfs URL."""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase

from cdxmill.storage.choose import join, list_folder

_UNFINISHED = "_temporary"
"""Hadoop's folder for the output of unfinished tasks."""
_MAGIC = re.compile(r"[*?\[]")


def is_glob(url: str) -> bool:
    """Whether a URL has one of the characters `*?[`."""
    return _MAGIC.search(url) is not None


def files_below(folder: str) -> Iterator[str]:
    """Yield the URL of every file below `folder` and its subfolders, in order. Raises InputError."""
    for name, entry in sorted(list_folder(folder).items()):
        if not entry.is_folder:
            yield join(folder, name)
        elif name != _UNFINISHED:
            yield from files_below(join(folder, name))


def files_like(pattern: str) -> Iterator[str]:
    """Yield the URL of every file that matches `pattern`, in order; `*` does not match a slash. Raises InputError."""
    scheme, _, path = pattern.partition("://")
    steps = path.split("/")
    fixed = next(number for number, step in enumerate([*steps[:-1], "*"]) if is_glob(step))
    return _matching(f"{scheme}://{'/'.join(steps[:fixed])}", steps[fixed:])


def _matching(folder: str, steps: list[str]) -> Iterator[str]:
    for name, entry in sorted(list_folder(folder).items()):
        if not fnmatchcase(name, steps[0]) or entry.is_folder != (len(steps) > 1):
            continue
        if entry.is_folder:
            yield from _matching(join(folder, name), steps[1:])
        else:
            yield join(folder, name)
