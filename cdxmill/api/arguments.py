"""Arguments of the public API as the commands take them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import get_type_hints

from cdxmill.errors import UsageError
from cdxmill.formats.lines.surt import surt
from cdxmill.running.processes import processes_by_default

Path = str | os.PathLike[str]
"""A path; also a file, http(s), s3 or hdfs URL."""
Paths = Path | Iterable[Path]


def path_list(paths: Paths) -> list[str]:
    """One path or several, as a list of strings.

    >>> path_list("a.warc.gz"), path_list(["a.warc.gz", "b.warc.gz"])
    (['a.warc.gz'], ['a.warc.gz', 'b.warc.gz'])
    """
    return [os.fspath(paths)] if isinstance(paths, str | os.PathLike) else [os.fspath(path) for path in paths]


def text_list(texts: str | Iterable[str]) -> tuple[str, ...]:
    """One text or several, as a tuple."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


def optional_path(path: Path | None) -> str | None:
    """A path as a string, None for None."""
    return None if path is None else os.fspath(path)


def required_paths(paths: Paths) -> list[str]:
    """One path or several, as a list. Raises UsageError if there are none: an empty glob is a mistake."""
    found = path_list(paths)
    if not found:
        raise UsageError("no input; give files, directories or URLs")
    return found


def check_names(given: Mapping[str, object], known: type) -> None:
    """Raise TypeError, as Python does, for a keyword argument that the TypedDict `known` has not."""
    names = get_type_hints(known)
    for name in given:
        if name not in names:
            raise TypeError(f"unexpected keyword argument {name!r}; expected {', '.join(sorted(names))}")


def process_count(processes: int) -> int:
    """The number of processes to use; 0 means one per core. Raises UsageError for a negative number."""
    if processes < 0:
        raise UsageError(f"invalid number of processes {processes}: expected 0 or more")
    return processes or processes_by_default()


def urlkey(url: str, keep_www: bool = False) -> str:
    """The urlkey (SURT) of a URL, by which index lines are sorted. Raises UsageError if the URL is invalid.

    >>> urlkey("http://www.example.com/a?z=1&b=2")
    'com,example)/a?b=2&z=1'
    """
    try:
        return surt(url.encode("utf-8", "surrogateescape"), keep_www).decode()
    except ValueError as error:
        raise UsageError(f"{url}: invalid URL ({error})") from None
