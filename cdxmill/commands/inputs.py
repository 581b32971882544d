"""What a person names (files, folders, globs, a manifest) -> the list of archives."""

from __future__ import annotations

import glob
import gzip
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from cdxmill.errors import InputError, UsageError
from cdxmill.storage.choose import exists, is_listed, is_remote, join, read_bytes
from cdxmill.storage.walk import files_below, files_like, is_glob

_ARCHIVE = re.compile(r"\.w?arc(\.wat|\.wet)?(\.gz|\.zst)?$|\.(wat|wet)(\.gz|\.zst)?$", re.I)
_CDX = re.compile(r"\.cdxj?(\.gz)?$", re.I)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*://[^/]*/?", re.I)
_OUTPUT_NAMES = (
    (re.compile(r"\.warc\.(wat|wet)\.gz$"), r".\1.cdx.gz"),
    (re.compile(r"(\.w?arc)?\.gz$"), ".cdx.gz"),
    (re.compile(r"$"), ".cdx.gz"),
)


class Input(NamedTuple):
    """An archive: where it lies, its name in index lines, how messages name it, what its output is named after."""

    path: str
    filename: str
    label: str
    name: str = ""


def find_archives(
    named: list[str], manifest: str | None, root: str | None, dir_root: str | None
) -> list[Input]:
    """The archives that are named, in order.

    A folder gives every file below it whose name is that of an archive. File names in index
    lines are relative to `dir_root`; without it a named file has its base name, a file of a
    folder its path below the folder, a manifest's entry is taken as it is written there.
    Raises UsageError where the manifest cannot be read, InputError where a folder elsewhere cannot be listed.
    """
    found = list(_named(named, _ARCHIVE))
    if manifest is not None:
        found += _listed(manifest, root or "")
    if dir_root is not None:
        found = [
            entry
            if _SCHEME.match(entry.path)
            else entry._replace(filename=os.path.relpath(entry.path, dir_root))
            for entry in found
        ]
    return found


def find_cdx_files(named: list[str]) -> list[str]:
    """The CDX files that are named: files, globs, and folders with `*.cdx`, `*.cdxj`, also `.gz`.

    Also as s3 and hdfs URLs; an http URL is a file. Raises InputError where a folder of these cannot be listed.
    """
    return [entry.path for entry in _named(named, _CDX)]


def output_name(path: str) -> str:
    """The path, below the output folder, of the index of the archive at `path`.

    >>> output_name("/dir1/a.warc.gz"), output_name("s3://bucket/x/a.warc.wet.gz"), output_name("../a.warc")
    ('dir1/a.cdx.gz', 'x/a.wet.cdx.gz', 'a.warc.cdx.gz')
    """
    path = below(path)
    for pattern, ending in _OUTPUT_NAMES:
        if pattern.search(path):
            return pattern.sub(ending, path, count=1)
    raise AssertionError("the last pattern fits every path")


def below(path: str) -> str:
    """`path` or URL as a path below some folder.

    >>> below("/dir1/a.warc.gz"), below("../x/./a.warc"), below("s3://bucket/a.warc")
    ('dir1/a.warc.gz', 'x/a.warc', 'a.warc')
    >>> below("https://example.com/a.warc.gz?token=x")
    'a.warc.gz'
    """
    path = posixpath.normpath("/" + _key(path)).lstrip("/")
    while path.startswith("../"):
        path = path[3:]
    return path


def _key(path: str) -> str:
    """A URL without scheme and host, and without the query of a web address; a path as it is."""
    if path.lower().startswith(("http://", "https://")):
        path = path.partition("#")[0].partition("?")[0]
    return _SCHEME.sub("", path)


def _named(named: list[str], pattern: re.Pattern[str]) -> Iterator[Input]:
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
            yield Input(name, posixpath.basename(_key(name)), name)


def _elsewhere(name: str, pattern: re.Pattern[str]) -> Iterator[Input]:
    """What an s3 or hdfs URL names. A folder is looked for only where the name is none of a file."""
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
    """All files below; and folders that cannot be looked into, so that they are named as failures."""
    closed: list[str] = []
    for parent, _, names in os.walk(folder, onerror=lambda error: closed.append(str(error.filename))):
        yield from (os.path.join(parent, name) for name in names)  # noqa: PTH118
    yield from closed


def _listed(manifest: str, root: str) -> Iterator[Input]:
    for number, line in enumerate(_manifest_text(manifest).split("\n"), 1):
        entry = line.split("\t")[-1].strip()
        if not entry or line.startswith("#"):
            continue
        is_relative = not (entry.startswith("/") or _SCHEME.match(entry))
        path = posixpath.join(root, entry) if is_relative else entry
        filename = entry if is_relative else posixpath.basename(entry) if entry[0] == "/" else _key(entry)
        yield Input(path, filename, f"{manifest}:{number}: {path}", entry)


def _manifest_text(manifest: str) -> str:
    try:
        if manifest == "-":
            data = sys.stdin.buffer.read()
        else:
            data = read_bytes(manifest) if is_remote(manifest) else Path(manifest).read_bytes()
        if data[:2] == b"\x1f\x8b":
            data = gzip.decompress(data)
    except (OSError, EOFError, InputError) as error:
        raise UsageError(f"the manifest {manifest} cannot be read ({error})") from None
    return data.decode("utf-8", "surrogateescape")
