"""Crawls of Common Crawl by their names: CC-MAIN-2024-22, or CC-MAIN-2024-* for all that the published list has.

    <base>/cc-index/collections/<name>/indexes/    the index, a ZipNum cluster
    <base>/<file name of an index line>            the archives
    collinfo.json                                  the list of all crawls, newest first

CDXMILL_COMMONCRAWL sets another base, such as that of a mirror or s3://commoncrawl, and CDXMILL_COLLINFO the URL of
another list.
"""

from __future__ import annotations

import json
import os
import re
from fnmatch import fnmatchcase

from cdxmill.errors import InputError, UsageError
from cdxmill.storage.location import join

BASE = "https://data.commoncrawl.org"
COLLINFO = "https://index.commoncrawl.org/collinfo.json"
_BUCKET = "s3://commoncrawl"
_NAME = re.compile(r"CC-MAIN-[0-9*?\[\]-]+")
_KEPT = 86400.0
"""Seconds for which the list is kept: a new crawl is published once a month."""
_SHOWN = 3


def is_crawl(name: str) -> bool:
    """Whether it is the name of a crawl, or a pattern for such names.

    >>> [is_crawl(name) for name in ("CC-MAIN-2024-22", "CC-MAIN-2024-*", "CC-MAIN-2024-22/indexes")]
    [True, True, False]
    """
    return bool(_NAME.fullmatch(name))


def archives_of_crawls() -> str:
    """The URL that the file names of index lines start from."""
    return os.environ.get("CDXMILL_COMMONCRAWL", "").rstrip("/") or BASE


def index_of_crawl(name: str) -> str:
    """The URL of the index of a crawl."""
    return join(archives_of_crawls(), "cc-index", "collections", name, "indexes")


def no_crawl(index: str) -> UsageError | None:
    """The error for the URL of an index that does not exist; None if it is not that of a crawl."""
    name = index.rstrip("/").split("/")[-2:][0]
    if not is_crawl(name) or index != index_of_crawl(name):
        return None
    return UsageError(f"{name}: no such crawl ({index} does not exist); {list_url()} has all names")


def crawls_like(pattern: str) -> list[str]:
    """The names of the crawls that a name or a pattern stands for, in the order of the list.

    Raises UsageError if the list has none, InputError if it cannot be read and no earlier copy is kept.
    """
    if not re.search(r"[*?\[]", pattern):
        return [pattern]
    url = list_url()
    from cdxmill.storage.cache import read_recent  # slow to import, and most names are paths

    names = _names(url, read_recent(url, _KEPT))
    found = [name for name in names if fnmatchcase(name, pattern)]
    if not found:
        raise UsageError(f"{pattern}: no such crawl in {url}; the newest are {', '.join(names[:_SHOWN])}")
    return found


def list_url() -> str:
    """The URL of the list of all crawls."""
    base = archives_of_crawls()
    default = COLLINFO if base in (BASE, _BUCKET) else join(base, "collinfo.json")
    return os.environ.get("CDXMILL_COLLINFO") or default


def _names(url: str, data: bytes) -> list[str]:
    try:
        names = [str(one["id"]) for one in json.loads(data)]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise InputError(url, "is not a list of crawls", "check the URL, or name each crawl") from None
    return [name for name in names if is_crawl(name) and not re.search(r"[*?\[]", name)]
