"""List the objects below a directory of S3, or that match a glob, with as few requests as possible.

A key may have empty steps (`crawl//a.warc.gz`), and an object may have the name of a directory. So this goes by keys.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from typing import Any

from cdxmill.storage.interface import ANY_DEPTH, fixed_start
from cdxmill.storage.s3.objects import list_pages, prefix_of


def keys_below(url: str) -> Iterator[str]:
    """Yield the URLs of all objects below the directory `url`. Raises InputError."""
    for page in list_pages(url, prefix_of(url)):
        yield from (_url(url, key) for key in _keys(page))


def keys_like(url: str) -> Iterator[str]:
    """Yield the URLs of the objects that match the glob `url`. Raises InputError.

    `*` does not match a slash, `**` matches any number of directories.
    """
    steps = url.partition("://")[2].split("/")[1:]
    yield from (_url(url, key) for key in _matching(url, "", steps))


def _matching(url: str, prefix: str, steps: list[str]) -> Iterator[str]:
    """The keys that start with `prefix` and continue with a match of `steps`."""
    step, rest = steps[0], steps[1:]
    if step == ANY_DEPTH:
        keys = (key for page in list_pages(url, prefix) for key in _keys(page))
        yield from (key for key in keys if _fits(key[len(prefix) :].split("/"), steps))
        return
    fixed = fixed_start(step)
    if rest and fixed == step:
        yield from _matching(url, f"{prefix}{step}/", rest)
        return
    for page in list_pages(url, prefix + fixed, "/"):
        if rest:
            directories = [found["Prefix"] for found in page.get("CommonPrefixes", ())]
            for directory in directories:
                if fnmatchcase(directory[len(prefix) : -1], step):
                    yield from _matching(url, directory, rest)
        else:
            yield from (key for key in _keys(page) if fnmatchcase(key[len(prefix) :], step))


def _keys(page: dict[str, Any]) -> Iterator[str]:
    """The keys of a page, without the empty objects that some tools create for directories."""
    for item in page.get("Contents", ()):
        if item["Size"] or not item["Key"].endswith("/"):
            yield item["Key"]


def _url(url: str, key: str) -> str:
    scheme, _, rest = url.partition("://")
    return f"{scheme}://{rest.partition('/')[0]}/{key}"


def _fits(names: Sequence[str], steps: Sequence[str]) -> bool:
    if not steps or not names:
        return not steps and not names
    if steps[0] == ANY_DEPTH:
        rest = steps[1:] or ["*"]
        return any(_fits(names[number:], rest) for number in range(len(names)))
    return fnmatchcase(names[0], steps[0]) and _fits(names[1:], steps[1:])
