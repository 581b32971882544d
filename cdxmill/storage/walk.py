"""List the files below a folder, or that match a glob, at an s3 or hdfs URL."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from cdxmill.errors import InputError
from cdxmill.storage.choose import S3, join, list_folder, scheme_of
from cdxmill.storage.entry import Entry
from cdxmill.storage.listing import Listing

_MAGIC = re.compile(r"[*?\[]")
_ANY_DEPTH = "**"


def is_glob(url: str) -> bool:
    """Whether a path or URL has one of the characters `*?[`."""
    return _MAGIC.search(url) is not None


def files_below(folder: str) -> Listing:
    """All files below `folder` and its subfolders, in order. Raises InputError if `folder` cannot be listed.

    A subfolder that cannot be listed is in the errors.
    """
    if scheme_of(folder) in S3:
        from cdxmill.storage.s3.walk import keys_below

        return Listing(list(keys_below(folder)))
    found = Listing()
    _add_below(folder, found, is_first=True)
    return found


def files_like(pattern: str) -> Listing:
    """The files that match `pattern`, in order. Raises InputError.

    `*` does not match a slash, `**` matches any number of folders.
    """
    scheme, _, path = pattern.partition("://")
    steps = path.split("/")
    fixed = next(number for number, step in enumerate([*steps[:-1], "*"]) if is_glob(step))
    folder = f"{scheme}://{'/'.join(steps[:fixed])}"
    if _ANY_DEPTH in steps:
        found = files_below(f"{folder}/")
        found.files = [
            path for path in found.files if _fits(path[len(folder) + 1 :].split("/"), steps[fixed:])
        ]
        return found
    if scheme_of(pattern) in S3:
        from cdxmill.storage.s3.walk import keys_like

        return Listing(list(keys_like(pattern)))
    found = Listing()
    _add_matching(f"{folder}/", steps[fixed:], found)
    return found


def _add_below(folder: str, found: Listing, is_first: bool = False) -> None:
    for name, entry in _entries(folder, found, is_first):
        if entry.is_folder:
            _add_below(join(folder, name), found)
        else:
            found.files.append(join(folder, name))


def _add_matching(folder: str, steps: list[str], found: Listing, is_first: bool = True) -> None:
    for name, entry in _entries(folder, found, is_first):
        if not fnmatchcase(name, steps[0]) or entry.is_folder != (len(steps) > 1):
            continue
        if entry.is_folder:
            _add_matching(join(folder, name), steps[1:], found, is_first=False)
        else:
            found.files.append(join(folder, name))


def _entries(folder: str, found: Listing, is_first: bool) -> Iterator[tuple[str, Entry]]:
    try:
        yield from sorted(list_folder(folder).items())
    except InputError as error:
        if is_first:
            raise
        found.errors.append(error)


def _fits(names: Sequence[str], steps: Sequence[str]) -> bool:
    if not steps or not names:
        return not steps and not names
    if steps[0] == _ANY_DEPTH:
        rest = steps[1:] or ["*"]
        return any(_fits(names[number:], rest) for number in range(len(names)))
    return fnmatchcase(names[0], steps[0]) and _fits(names[1:], steps[1:])
