"""What a scan is asked for, compiled: conditions, fields, functions of the user, and the records that index lines name."""

from __future__ import annotations

import gzip
import hashlib
import importlib
import posixpath
import sys
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from cdxmill.commands.per_archive.task import OutputOptions
from cdxmill.commands.scanning.rows import check_format
from cdxmill.errors import InputError, UsageError
from cdxmill.formats.lines.capture_fields import parse_fields
from cdxmill.inputs.named import Input
from cdxmill.outputs.existing import Seen
from cdxmill.running.failures import Failures
from cdxmill.stages.scan.fields import DEFAULT, Extractor, Level, UserStep
from cdxmill.stages.scan.plan import Plan
from cdxmill.storage.location import Location, locate
from cdxmill.version import __version__, install_extra

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


@dataclass(frozen=True, kw_only=True)
class ScanOptions(OutputOptions):
    """What is searched, what is written of each match, and how the scan runs. `captures` is a hash of the captures."""

    where: tuple[str, ...] = ()
    extract: str = DEFAULT
    finds: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    page_calls: tuple[str, ...] = ()
    to: str = "jsonl.gz"
    seconds: float = 60.0
    memory: int = 2 << 30
    captures: str = ""

    def settings(self) -> ScanSettings:
        """What decides how an output looks, with the content of the files that the options name."""
        asked = asdict(self)
        for name in ("seconds", "memory", "processes", "existing", "quiet"):
            del asked[name]
        lines = hashlib.sha256()
        program = compiled(self)
        for data in program.files:
            lines.update(hashlib.sha256(data).digest())
        return ScanSettings(repr((__version__, sorted(asked.items()), lines.hexdigest())))


class ScanSettings(NamedTuple):
    """The settings of a scan, as text. The start of an output does not show them."""

    text: str

    def digest(self, filename: str) -> str:
        """A hash of the settings and the name of the archive in rows."""
        return hashlib.sha256(repr((self.text, filename)).encode("utf-8", "surrogateescape")).hexdigest()

    def look(self, output: Location, archive: Input) -> Seen:
        """An output without a record may have been made with any settings."""
        return Seen(True, False)


class Program(NamedTuple):
    """The options of a scan, compiled, and the content of the files that they name."""

    plan: Plan
    extractor: Extractor
    files: list[bytes]


@lru_cache(maxsize=1)
def compiled(options: ScanOptions) -> Program:
    """The filters and extractors of a process: they are made once. Raises UsageError."""
    files: list[bytes] = []

    def read_lines(path: str) -> list[bytes]:
        try:
            files.append(locate(path).read_bytes())
        except InputError as error:
            raise UsageError(f"--where: {error}") from None
        return [line.rstrip(b"\r") for line in files[-1].split(b"\n")]

    check_format(options.to)
    try:
        plan = Plan(options.where, read_lines)
        steps = [_user_step(name, False, files) for name in options.calls]
        steps += [_user_step(name, True, files) for name in options.page_calls]
        extractor = Extractor(options.extract, options.finds, steps)
        if max(plan.level, extractor.level) >= Level.PAGE:
            for name in ("selectolax.lexbor", "resiliparse.parse.lang"):
                importlib.import_module(name)
        return Program(plan, extractor, files)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        raise UsageError(f"{name} is not installed; {install_extra('scan')}") from None


def _user_step(name: str, of_page: bool, files: list[bytes]) -> UserStep:
    """The function MODULE:FUNCTION. Modules in the working directory are found after all others. Raises UsageError."""
    module_name, colon, function_name = name.partition(":")
    if not (colon and module_name and function_name):
        raise UsageError(f"invalid --call {name!r}; expected MODULE:FUNCTION")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)  # never before the libraries: a directory may hold a file named like one
    try:
        module = importlib.import_module(module_name)
    except Exception as error:  # whatever the user's module raises
        raise UsageError(f"--call {name}: cannot be imported ({type(error).__name__}: {error})") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UsageError(f"--call {name}: {module_name} has no function {function_name}")
    if module.__file__:
        files.append(Path(module.__file__).read_bytes())
    return UserStep(name, function, of_page)
