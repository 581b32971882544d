"""What a field of a dataclass says about its option, and the options that several commands have.

The dataclass is the one declaration of an option. `cli/command` makes click's parameters of it, `api/calls` the
signatures of the API, and `table` the options of the jobs and the Spark scripts. These dataclasses have no repr and no
comparison, and are not frozen: `cdxmill --help` makes 60 of them, and each method costs it 0.1 ms.
"""

from __future__ import annotations

import dataclasses
import os
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import MISSING, dataclass, fields
from functools import cache
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from cdxmill.errors import UsageError

AnyPath = str | os.PathLike[str]
"""A path; also a file, http(s), s3 or hdfs URL."""
Paths = AnyPath | Iterable[AnyPath]


class Argument(NamedTuple):
    """A positional argument. With `...` at the end of its metavar, it may be repeated."""

    metavar: str
    help: str


class Option:
    """An option. Without `names`, its name is that of the field. `parser` makes the value from text."""

    def __init__(
        self,
        *names: str,
        help: str,
        metavar: str | None = None,
        min: int | None = None,
        max: int | None = None,
        choices: Sequence[str] = (),
        parser: Callable[[str], object] | None = None,
    ) -> None:
        self.names = names
        self.help = help
        self.metavar = metavar
        self.min, self.max = min, max
        self.choices = choices
        self.parser = parser


class Flag(Option):
    """One of several options without a value, which give the field a value each."""

    def __init__(self, value: str, *names: str, help: str) -> None:
        super().__init__(*names, help=help)
        self.value = value


class Needs:
    """Without one of these other fields, or `field=value`, the option would have no effect."""

    def __init__(self, *others: str) -> None:
        self.others = others


class Excludes(Needs):
    """With one of these, the option would have no effect."""


class Declared(NamedTuple):
    """A field with what it says: `kind` is its type without `| None`; a field of the API alone has no `options`."""

    name: str
    kind: Any
    default: Any
    options: tuple[Option | Argument, ...]
    rules: tuple[Needs, ...]

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    @property
    def is_repeated(self) -> bool:
        """Whether the command line takes it several times."""
        first = self.options[0]
        return first.metavar.endswith("...") if isinstance(first, Argument) else self.kind is list

    @property
    def values(self) -> tuple[str, ...]:
        """The values that its flags give it."""
        return tuple(option.value for option in self.options if isinstance(option, Flag))

    @property
    def flags(self) -> tuple[str, ...]:
        """The names of its flags as parameters."""
        return tuple(f"{self.name}_{value}" for value in self.values)

    def spelled(self, number: int | None = None) -> str:
        """Its name on the command line, or with `number` that of a flag."""
        option = self.options[number or 0]
        if isinstance(option, Argument):
            return option.metavar.removesuffix("...")
        return option.names[0] if option.names else f"--{self.name.replace('_', '-')}"


Spelled = Callable[..., str]
"""How messages name a field, or with a number one of its flags."""


@cache
def declared(kind: Any) -> tuple[Declared, ...]:
    """The fields of a dataclass that its constructor takes."""
    hints = get_type_hints(kind, include_extras=True)
    return tuple(
        _declared(field.name, hints[field.name], field.default) for field in fields(kind) if field.init
    )


def _declared(name: str, hint: Any, default: Any) -> Declared:
    plain, *said = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    options = tuple(one for one in said if isinstance(one, Option | Argument))
    return Declared(
        name, _kind(plain), default, options, tuple(one for one in said if isinstance(one, Needs))
    )


def _kind(hint: Any) -> Any:
    """How the command line reads a type: `list` for what may be repeated, str for what may be several things."""
    if get_origin(hint) not in (Union, types.UnionType):
        return get_origin(hint) if get_origin(hint) in (list, Iterable) else hint
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    if any(get_origin(kind) in (list, Iterable) for kind in kinds):
        return list
    return kinds[0] if len(kinds) == 1 else str


def check(options: object, given: Collection[str], spelled: Spelled) -> None:
    """Raise UsageError for a value out of its limits, or a `given` field that another one makes useless."""
    kind: Any = type(options)
    known = {field.name: field for field in declared(kind)}
    others = _Others(options, given, known, spelled)
    for field in known.values():
        value = getattr(options, field.name)
        for option in field.options:
            if isinstance(option, Option) and value is not None:
                _check_value(value, option, spelled(field))
        if field.values and value not in (field.default, *field.values):
            allowed = ", ".join((field.default, *field.values))
            raise UsageError(f"invalid {spelled(field)} {value!r}: expected one of {allowed}")
        if field.name in given:
            others.check(field)


def _check_value(value: object, option: Option, name: str) -> None:
    if option.choices and value not in option.choices:
        raise UsageError(f"invalid {name} {value!r}: expected one of {', '.join(option.choices)}")
    if isinstance(value, int) and option.min is not None and value < option.min:
        raise UsageError(f"invalid {name} {value}: expected at least {option.min}")
    if isinstance(value, int) and option.max is not None and value > option.max:
        raise UsageError(f"invalid {name} {value}: expected at most {option.max}")


class _Others(NamedTuple):
    """The fields of a dataclass, as rules name them."""

    options: object
    given: Collection[str]
    known: dict[str, Declared]
    spelled: Spelled

    def check(self, field: Declared) -> None:
        """Raise UsageError if the field has no effect."""
        for rule in field.rules:
            found = list(self._found(rule.others))
            if not isinstance(rule, Excludes):
                if found and not any(is_so for _, is_so in found):
                    names = " or ".join(name for name, _ in found)
                    raise UsageError(f"{self.spelled(field)} needs {names}")
                continue
            for name, is_so in found:
                if is_so:
                    raise UsageError(f"{self.spelled(field)} and {name} cannot be used together")

    def _found(self, rules: Sequence[str]) -> Iterator[tuple[str, bool]]:
        """The names of those that exist here, and whether each is so."""
        for rule in rules:
            name, has_value, value = rule.partition("=")
            if name in self.known:
                is_so = str(getattr(self.options, name)) == value if has_value else name in self.given
                yield self._spelled(self.known[name], value), is_so

    def _spelled(self, field: Declared, value: str) -> str:
        if value in field.values:
            return self.spelled(field, field.values.index(value))
        return f"{self.spelled(field)} {value}".rstrip()


def path_list(paths: Paths) -> list[str]:
    """One path or several, as a list of strings.

    >>> path_list("a.warc.gz"), path_list(["a.warc.gz", "b.warc.gz"])
    (['a.warc.gz'], ['a.warc.gz', 'b.warc.gz'])
    """
    return [os.fspath(paths)] if isinstance(paths, str | os.PathLike) else [os.fspath(path) for path in paths]


def required_paths(paths: Paths) -> list[str]:
    """One path or several, as a list. Raises UsageError if there are none: an empty glob is a mistake."""
    found = path_list(paths)
    if not found:
        raise UsageError("no input; give files, directories or URLs")
    return found


def optional_path(path: AnyPath | None) -> str | None:
    """A path as a string, None for None."""
    return None if path is None else os.fspath(path)


def text_list(texts: str | Iterable[str]) -> tuple[str, ...]:
    """One text or several, as a tuple."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


Quiet = Annotated[
    bool, Option("--quiet", "-q", help="Hide the progress and the summary. Failures are still reported.")
]
Replace = Annotated[bool, Option("--replace", help="Replace an existing output."), Excludes("output=-")]
Seed = Annotated[
    int,
    Option(help="Seed of the random sample. The same seed gives the same split points."),
    Excludes("splits"),
]
ShardRule = Annotated[
    tuple[str, str] | None,
    Option(
        "--shard-index-loc",
        metavar="MATCH REPLACE",
        help="Location of the shards: the directory of the index, with the regular expression MATCH replaced by"
        " REPLACE. The same as shard_index_loc in pywb.",
    ),
]


@dataclass(kw_only=True, repr=False, eq=False)
class Running:
    """How a command runs. Without a `quiet` of the command line, it shows no progress."""

    processes: Annotated[
        int, Option("--processes", "-p", min=0, help="Number of processes. 0: one per core.")
    ] = 0
    quiet: bool = dataclasses.field(default=True, init=False)


@dataclass(kw_only=True, repr=False, eq=False)
class Existing:
    """What happens to outputs of archives that exist. `outputs.existing.rule_of` makes a rule of it."""

    update: Annotated[
        bool,
        Option(
            help="Write only what is missing, is older than its archive, or had failures. Keep all other outputs,"
            " whatever options they were written with."
        ),
        Excludes("replace", "output=-"),
    ] = False
    replace: Replace = False
