"""What a scan is asked for, compiled: conditions, fields and functions of the user."""

from __future__ import annotations

import hashlib
import importlib
from codecs import BOM_UTF8
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import ClassVar, NamedTuple

from cdxmill.commands.own_module import imported
from cdxmill.commands.per_archive.task import OutputOptions
from cdxmill.commands.scanning.rows import check_format
from cdxmill.errors import InputError, UsageError, of_named_file
from cdxmill.inputs.named import Input
from cdxmill.regex import regex
from cdxmill.stages.pages.detectors import PY3LANGID, detecting
from cdxmill.stages.scan.columns import columns_of, returned, type_named, type_of
from cdxmill.stages.scan.conditions import ReadLines
from cdxmill.stages.scan.fields import DEFAULT, Extractor, Level, UserStep
from cdxmill.stages.scan.plan import Plan
from cdxmill.stages.scan.sampling import SAMPLE, parse_sample, sample_field
from cdxmill.storage.location import Location, locate
from cdxmill.version import __version__, install_extra

CALL = regex(
    r"(?:(?P<column>[^:]+):(?=[^:]*\.[^:]*))?"  # NAME: before MODULE.FUNCTION
    r"(?P<module>[^:]+)(?(column)\.|:)(?P<function>[^.:]+)(?(column)(?::(?P<type>[^:]+))?)"
)
"""A function of the user, as `--call` names it."""


@dataclass(frozen=True, kw_only=True)
class ScanOptions(OutputOptions):
    """What is searched, what is written of each match, and how the scan runs.

    `limit` is the largest number in a sample of N records, when it is known.
    """

    where: tuple[str, ...] = ()
    extract: str = DEFAULT
    finds: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()
    page_calls: tuple[str, ...] = ()
    to: str = "jsonl.gz"
    detector: str = "fast"
    sample: str | None = None
    seed: int = 0
    limit: float | None = None
    seconds: float = 60.0
    memory: int = 2 << 30

    def settings(self, captures: str) -> ScanSettings:
        """What decides how an output looks, with the content of the files that the options name.

        `captures` is a hash of the index lines of the captures, "" for all records.
        """
        asked = {**asdict(self), "captures": captures}
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

    def is_proven(self, output: Location, archive: Input) -> bool:
        """Nothing proves it."""
        return False

    def fits(self, output: Location, archive: Input) -> bool:
        """Rows do not show what they were made from."""
        return True


class Program(NamedTuple):
    """The options of a scan, compiled, and the content of the files that they name."""

    plan: Plan
    extractor: Extractor
    files: list[bytes]


def needs_watch(options: ScanOptions) -> bool:
    """Whether a record may take so much time or memory that its process has to be watched."""
    program = compiled(options)
    is_lines = options.to.partition(".")[0] == "jsonl"
    return not is_lines or program.plan.needs_watch or program.extractor.needs_watch


class ListPlace:
    """Where the lists of conditions are. On another machine, `base` is the directory in which the command was started."""

    base: ClassVar[str] = ""

    @classmethod
    def of(cls, path: str) -> Location:
        """The file of a list."""
        place = locate(path)
        return place if place.is_remote or not cls.base else locate(f"{Path(cls.base, place.local)}")


@lru_cache(maxsize=1)
def compiled(options: ScanOptions) -> Program:
    """The filters and extractors of a process: they are made once. Raises UsageError, StoppedError."""
    files: list[bytes] = []

    def read_lines(path: str) -> list[bytes]:
        try:
            files.append(ListPlace.of(path).read_bytes())
        except InputError as error:
            raise of_named_file(error, "--where: ") from None
        return [line.rstrip(b"\r") for line in files[-1].removeprefix(BOM_UTF8).split(b"\n")]

    check_format(options.to)
    try:
        with detecting(options.detector):
            return _program(options, read_lines, files)
    except ValueError as error:
        raise UsageError(str(error)) from None
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        how = install_extra("languages" if name == PY3LANGID else "scan")
        raise UsageError(f"{name} is not installed; {how}") from None


def _program(options: ScanOptions, read_lines: ReadLines, files: list[bytes]) -> Program:
    """The program; `files` gets the content of the files that are read. Raises ValueError, ModuleNotFoundError."""
    fields = {SAMPLE: sample_field(options.seed)}
    plan = Plan(_conditions(options), read_lines, fields)
    is_table = options.to == "parquet"
    steps = [_user_step(name, False, files, is_table) for name in options.calls]
    steps += [_user_step(name, True, files, is_table) for name in options.page_calls]
    extractor = Extractor(options.extract, options.finds, steps, {**fields, **plan.matched()})
    if is_table and not extractor.columns:
        raise ValueError("a Parquet file has at least one column; give --extract")
    if max(plan.level, extractor.level) >= Level.PAGE:
        needed = (options.detector,) if options.detector == PY3LANGID else ()
        for name in ("selectolax.lexbor", "resiliparse.parse.lang", "ada_url", *needed):
            importlib.import_module(name)
    return Program(plan, extractor, files)


def _conditions(options: ScanOptions) -> tuple[str, ...]:
    """Those of the user, and that of the sample. Raises ValueError."""
    limits = [] if options.limit is None else [f"{SAMPLE}<={options.limit!r}"]
    share, _ = parse_sample(options.sample)
    return (*options.where, *limits, *([f"{SAMPLE}<{share!r}"] if share < 1 else []))


def _user_step(name: str, of_page: bool, files: list[bytes], is_table: bool) -> UserStep:
    """The function MODULE:FUNCTION, or that of a column, NAME:MODULE.FUNCTION, with or without :TYPE.

    Modules in the working directory are found after all others. Raises UsageError, ValueError.
    """
    given = CALL.fullmatch(name)
    if given is None:
        raise UsageError(
            f"invalid --call {name!r}; expected MODULE:FUNCTION, or NAME:MODULE.FUNCTION:TYPE for a column"
        )
    column, module_name, function_name = given["column"], given["module"], given["function"]
    try:
        module = imported(module_name)
    except Exception as error:  # whatever the user's module raises
        raise UsageError(f"--call {name}: cannot be imported ({type(error).__name__}: {error})") from None
    function = getattr(module, function_name, None)
    if not callable(function):
        raise UsageError(f"--call {name}: {module_name} has no function {function_name}")
    if file := getattr(module, "__file__", None):  # built-in modules have none
        files.append(Path(file).read_bytes())
    if column:
        kind = type_named(given["type"]) if given["type"] else type_of(returned(function))
        return UserStep(name, function, of_page, {column: kind}, is_value=True)
    columns = columns_of(function)
    return UserStep(
        name, function, of_page, columns, column=function_name if is_table and not columns else ""
    )
