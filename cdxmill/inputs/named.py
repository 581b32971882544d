"""The inputs that the user named (files, folders, globs, URLs) -> files."""

from __future__ import annotations

import glob
import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cdxmill.storage.choose import exists, is_listed, join
from cdxmill.storage.walk import files_below, files_like, is_glob

SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*/?", re.I)


class Input(NamedTuple):
    """An archive: its path or URL, its name in index lines, its name in messages, and the path that its output is named after."""

    path: str
    filename: str
    label: str
    name: str = ""


def without_host(path: str) -> str:
    """A URL without scheme and host, an http URL also without its query; a path unchanged."""
    if path.lower().startswith(("http://", "https://")):
        path = path.partition("#")[0].partition("?")[0]
    return SCHEME.sub("", path)


def find_named(named: list[str], pattern: re.Pattern[str]) -> Iterator[Input]:
    """The files that `named` stands for. Of a folder, the files whose names match `pattern`."""
    for name in named:
        if is_listed(name):
            yield from _elsewhere(name, pattern)
        elif _is_folder(name):
            for path in sorted(_walk(name)):
                if pattern.search(path) or _is_folder(path):
                    yield Input(path, os.path.relpath(path, name), path)
        elif glob.has_magic(name) and not Path(name).exists():
            matches = sorted(glob.glob(name, recursive=True))  # noqa: PTH207 - absolute patterns too
            files = [match for match in matches if not Path(match).is_dir()]
            yield from (Input(path, posixpath.basename(path), path) for path in files or [name])
        else:
            yield Input(name, posixpath.basename(without_host(name)), name)


def _elsewhere(name: str, pattern: re.Pattern[str]) -> Iterator[Input]:
    """The files that an s3 or hdfs URL stands for. If its name matches `pattern`, it is taken for a file."""
    if is_glob(name) and not exists(name):
        yield from (Input(url, posixpath.basename(url), url) for url in list(files_like(name)) or [name])
        return
    found = [] if pattern.search(name) else list(files_below(name))
    if not found:
        yield Input(name, posixpath.basename(name), name)
    start = len(join(name, ""))
    yield from (Input(url, url[start:], url) for url in found if pattern.search(url))


def _is_folder(path: str) -> bool:
    try:
        return Path(path).is_dir()
    except OSError:
        return False


def _walk(folder: str) -> Iterator[str]:
    """All files below, and the folders that cannot be read, so that they are reported as failures."""
    closed: list[str] = []
    for parent, _, names in os.walk(folder, onerror=lambda error: closed.append(str(error.filename))):
        yield from (os.path.join(parent, name) for name in names)  # noqa: PTH118
    yield from closed
