"""The captures that a `lookup` printed -> the byte ranges to scan of each archive."""

from __future__ import annotations

import gzip
import posixpath
import sys
from collections import defaultdict
from collections.abc import Iterable

from cdxmill.errors import UsageError
from cdxmill.formats.lines.capture_fields import parse_fields
from cdxmill.inputs.named import Input
from cdxmill.running.failures import Failures
from cdxmill.storage.location import locate

Ranges = tuple[tuple[int, int], ...]
"""(offset, length) of records in an archive, in their order."""


def read_captures(path: str) -> bytes:
    """The lines of a file, a URL, or, for -, standard input. They may be gzipped. Raises InputError, UsageError."""
    data = sys.stdin.buffer.read() if path == "-" else locate(path).read_bytes()
    if not data.startswith(b"\x1f\x8b"):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError) as error:
        raise UsageError(f"--captures {path}: cannot be decompressed ({error})") from None


def ranges_of(lines: bytes, archives: Iterable[Input], failures: Failures) -> dict[Input, Ranges]:
    """The ranges of each archive that the CDXJ or CDX `lines` name: by its name in index lines, or its base name.

    Lines that cannot be read, and archives of lines that are not among `archives`, are reported.
    """
    known: dict[str, Input] = {}
    for archive in archives:
        known.setdefault(posixpath.basename(archive.path), archive)
        known[archive.filename] = archive
    found: dict[Input, set[tuple[int, int]]] = defaultdict(set)
    missing: set[str] = set()
    for number, line in enumerate(lines.splitlines(), 1):
        if not line.strip() or line.startswith(b" "):
            continue
        try:
            fields = parse_fields(line)
            name, place = str(fields["filename"]), (int(str(fields["offset"])), int(str(fields["length"])))
        except (ValueError, KeyError):
            failures.add(
                f"--captures, line {number}", None, "is not an index line with filename, offset and length"
            )
            continue
        archive_of = known.get(name) or known.get(posixpath.basename(name))
        if archive_of is None:
            missing.add(name)
        else:
            found[archive_of].add(place)
    for name in sorted(missing):
        failures.add(
            name, None, "is the archive of a capture, but no INPUT", "name it, or a directory with it"
        )
    return {archive: tuple(sorted(places)) for archive, places in found.items()}
