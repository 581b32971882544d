"""The inputs that the user named (files, folders, globs, a manifest) -> the list of archives."""

from __future__ import annotations

import gzip
import os
import posixpath
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from cdxmill.errors import InputError, UsageError
from cdxmill.inputs.named import SCHEME, Input, find_named, without_host
from cdxmill.storage.choose import is_remote, read_bytes

_ARCHIVE = re.compile(r"\.w?arc(\.wat|\.wet)?(\.gz|\.zst)?$|\.(wat|wet)(\.gz|\.zst)?$", re.I)


def find_archives(
    named: list[str], manifest: str | None, root: str | None, dir_root: str | None
) -> list[Input]:
    """The archives that the user named, in order.

    A folder stands for all files below it that have the name of an archive. File names in index lines
    are relative to `dir_root`. Without it, a file that was named has its base name, a file of a folder
    its path below the folder, and an entry of the manifest is used as written.
    Raises UsageError if the manifest cannot be read, InputError if a remote folder cannot be listed.
    """
    found = list(find_named(named, _ARCHIVE))
    if manifest is not None:
        found += _listed(manifest, root or "")
    if dir_root is not None:
        found = [
            entry
            if SCHEME.match(entry.path)
            else entry._replace(filename=os.path.relpath(entry.path, dir_root))
            for entry in found
        ]
    return found


def _listed(manifest: str, root: str) -> Iterator[Input]:
    for number, line in enumerate(_manifest_text(manifest).split("\n"), 1):
        entry = line.split("\t")[-1].strip()
        if not entry or line.startswith("#"):
            continue
        is_relative = not (entry.startswith("/") or SCHEME.match(entry))
        path = posixpath.join(root, entry) if is_relative else entry
        filename = (
            entry if is_relative else posixpath.basename(entry) if entry[0] == "/" else without_host(entry)
        )
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
