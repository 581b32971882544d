"""List the objects below a folder of S3, or that match a glob, with as few requests as possible.

A key may have empty steps (`crawl//a.warc.gz`), and an object may have the name of a folder. So this goes by keys.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from fnmatch import fnmatchcase
from typing import Any

from cdxmill.storage.s3.objects import list_pages, prefix_of

_MAGIC = re.compile(r"[*?\[]")


def keys_below(url: str) -> Iterator[str]:
    """Yield the URLs of all objects below the folder `url`. Raises InputError."""
    for page in list_pages(url, prefix_of(url)):
        yield from (_url(url, key) for key in _keys(page))


def keys_like(url: str) -> Iterator[str]:
    """Yield the URLs of the objects that match the glob `url`; `*` does not match a slash. Raises InputError."""
    pattern = url.partition("://")[2].partition("/")[2]
    yield from (_url(url, key) for key in _matching(url, "", pattern.split("/")))


def _matching(url: str, prefix: str, steps: list[str]) -> Iterator[str]:
    """The keys that start with `prefix` and continue with a match of `steps`."""
    step, rest = steps[0], steps[1:]
    fixed = _MAGIC.split(step, maxsplit=1)[0]
    if rest and fixed == step:
        yield from _matching(url, f"{prefix}{step}/", rest)
        return
    for page in list_pages(url, prefix + fixed, "/"):
        if rest:
            folders = [folder["Prefix"] for folder in page.get("CommonPrefixes", ())]
            for folder in folders:
                if fnmatchcase(folder[len(prefix) : -1], step):
                    yield from _matching(url, folder, rest)
        else:
            yield from (key for key in _keys(page) if fnmatchcase(key[len(prefix) :], step))


def _keys(page: dict[str, Any]) -> Iterator[str]:
    """The keys of a page, without the empty objects that some tools create for folders."""
    for item in page.get("Contents", ()):
        if item["Size"] or not item["Key"].endswith("/"):
            yield item["Key"]


def _url(url: str, key: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/{key}"
