"""How an option is declared, once; and the options that several commands have.

    class Cooking(Options):
        minutes: int = option("--minutes -m", "How long.", default=5, min=1)

`cli/command` makes click's parameters of it, `api/calls` the signatures of the API, and `table` the options of the jobs
and the Spark scripts. A field with `init=False` is an option of the command line alone.
"""

from __future__ import annotations

import os
import types
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import MISSING, Field, dataclass, fields
from dataclasses import field as make_field
from typing import (
    Any,
    ClassVar,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from cdxmill.errors import UsageError
from cdxmill.messages import Step

AnyPath = str | os.PathLike[str]
"""A path; also a file, http(s), s3 or hdfs URL."""
Paths = AnyPath | Iterable[AnyPath]


_Kind = TypeVar("_Kind", bound="Options")


class Needs:
    """Without one of these other fields, or `field=value`, the option would have no effect."""

    def __init__(self, *others: str) -> None:
        self.others = others


class Excludes(Needs):
    """With one of these, the option would have no effect."""


class ReadBy(NamedTuple):
    """What makes the value from text on the command line."""

    read: Callable[[str], object]


class Flag(NamedTuple):
    """One of several options without a value, which give the field a value each."""

    value: Any
    names: str
    help: str


class Option:
    """What a field says. Without names, it is a positional argument; with `...` at its metavar's end, it may be repeated."""

    min: int | None = None
    max: int | None = None
    choices: Sequence[str] = ()

    def __init__(self, words: str, help: str, said: Iterable[object] = (), **of_field: Any) -> None:
        self.names = tuple(word for word in words.split() if word.startswith("-"))
        self.metavar = words.removeprefix(" ".join(self.names)).strip()
        self.help = help
        self.rules = [one for one in said if isinstance(one, Needs)]
        self.read = next((one.read for one in said if isinstance(one, ReadBy)), None)
        self.flags: Sequence[Flag] = ()
        self.of_field = of_field


def option(
    words: str,
    help: str,
    *said: Needs | ReadBy,
    default: Any = MISSING,
    init: bool = True,
    min: int | None = None,
    max: int | None = None,
    choices: Sequence[str] = (),
) -> Any:
    """An option. `words` are its names and its metavar, such as `--output -o FILE`."""
    made = Option(words, help, said, default=default, init=init)
    made.min, made.max, made.choices = min, max, choices
    return made


def argument(
    metavar: str, help: str, *, default: Any = MISSING, init: bool = True, kw_only: bool = True
) -> Any:
    """A positional argument of the command line."""
    return Option(metavar, help, default=default, init=init, kw_only=kw_only)


def flags(*flags: Flag, default: Any) -> Any:
    """Options without a value, of which one gives the field its value."""
    made = Option("", "", default=default)
    made.flags, made.choices = flags, (default, *(flag.value for flag in flags))
    return made


@dataclass_transform(
    kw_only_default=True, eq_default=False, field_specifiers=(option, argument, flags, make_field)
)
class Options:
    """The base of all dataclasses of options. It makes them.

    They have no repr and no comparison, and are not frozen: `cdxmill --help` makes 60, and each method costs it 0.1 ms. Their
    constructors cost most. Each is compiled with its first object: a command makes objects of one or two.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    def __init__(self, *given: Any, **named: Any) -> None:
        constructor: Any = with_constructor(type(self))
        constructor.__init__(self, *given, **named)

    def __init_subclass__(cls, compiled: bool = False) -> None:
        for name, value in list(vars(cls).items()):
            if isinstance(value, Option):
                setattr(cls, name, make_field(**value.of_field, metadata={"option": value}))
        dataclass(kw_only=True, init=compiled, repr=False, eq=False)(cls)
        if not compiled:
            type.__setattr__(cls, "__init__", Options.__init__)  # else it may have that of the class above it


def with_constructor(kind: Callable[..., _Kind]) -> type[_Kind]:
    """The dataclass, with its constructor compiled: its first object needs it, and `inspect.signature`."""
    made = cast("type[_Kind]", kind)
    if vars(made)["__init__"] is Options.__init__:
        heir: Any = type(made.__name__, (made,), {"__doc__": made.__doc__}, compiled=True)
        type.__setattr__(made, "__init__", heir.__init__)
    return made


class Declared(NamedTuple):
    """A field that is an option or argument. `kind` is its type without `| None`."""

    name: str
    kind: Any
    default: Any
    init: bool
    option: Option

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING

    @property
    def is_repeated(self) -> bool:
        """Whether the command line takes it several times."""
        is_argument = not self.option.names
        return self.option.metavar.endswith("...") if is_argument else self.kind is list

    def spelled(self, value: str = "") -> str:
        """Its name on the command line, with a value."""
        for flag in self.option.flags:
            if flag.value == value:
                return flag.names.split()[0]
        name = self.option.names[0] if self.option.names else self.option.metavar.removesuffix("...")
        return f"{name} {value}".rstrip()


Spelled = Callable[[Declared, str], str]
"""How messages name a field with a value, or with "" the field alone."""


_DECLARED: dict[type[Options], tuple[Declared, ...]] = {}


def declared(kind: type[Options]) -> tuple[Declared, ...]:
    """The fields of a dataclass that are options or arguments."""
    if kind not in _DECLARED:
        hints = get_type_hints(kind)
        _DECLARED[kind] = tuple(
            Declared(one.name, _kind(hints[one.name]), one.default, one.init, one.metadata["option"])
            for one in fields(kind)
            if "option" in one.metadata
        )
    return _DECLARED[kind]


def _kind(hint: Any) -> Any:
    """How the command line reads a type: `list` for what may be repeated, str for what may be several things."""
    if get_origin(hint) not in (Union, types.UnionType):
        return get_origin(hint) if get_origin(hint) in (list, Iterable) else hint
    kinds = [kind for kind in get_args(hint) if kind is not type(None)]
    if any(get_origin(kind) in (list, Iterable) for kind in kinds):
        return list
    return kinds[0] if len(kinds) == 1 else str


def check(asked: Options, fields: Sequence[Declared], given: Collection[str], spelled: Spelled) -> None:
    """Raise UsageError for a value out of its limits, or a `given` field that another of `fields` makes useless."""
    for field in fields:
        value = getattr(asked, field.name)
        if value == "" and field.default != "":
            raise UsageError(f"{spelled(field, '')} is empty; give a value (is a variable unset?)")
        _check_value(value, field.option, spelled(field, ""))
        if field.name in given:
            for rule in field.option.rules:
                states = dict(_states(rule, asked, fields, given, spelled))
                _check_rule(rule, spelled(field, ""), states)


def _check_value(value: Any, option: Option, name: str) -> None:
    if value is None:
        return
    if option.choices and value not in option.choices:
        raise UsageError(f"invalid {name} {value!r}: expected one of {', '.join(option.choices)}")
    if option.min is not None and value < option.min:
        raise UsageError(f"invalid {name} {value}: expected at least {option.min}")
    if option.max is not None and value > option.max:
        raise UsageError(f"invalid {name} {value}: expected at most {option.max}")


def _check_rule(rule: Needs, name: str, states: dict[str, bool]) -> None:
    holding = [other for other, holds in states.items() if holds]
    if isinstance(rule, Excludes) and holding:
        raise UsageError(f"{name} and {holding[0]} cannot be used together")
    if not isinstance(rule, Excludes) and states and not holding:
        raise UsageError(f"{name} needs {' or '.join(states)}")


def _states(
    rule: Needs, asked: Options, fields: Sequence[Declared], given: Collection[str], spelled: Spelled
) -> Iterator[tuple[str, bool]]:
    """The fields that the rule names, and whether each was given, or has its value."""
    for other in rule.others:
        name, _, value = other.partition("=")
        for field in fields:
            if field.name == name:
                holds = str(getattr(asked, name)) == value if value else name in given
                yield spelled(field, value), holds


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


def check_no_pipe(inputs: Paths, reason: str) -> None:
    """Raise UsageError if one of the inputs is standard input."""
    if "-" in path_list(inputs):
        raise UsageError(reason)


def optional_path(path: AnyPath | None) -> str | None:
    """A path as a string, None for None."""
    return None if path is None else os.fspath(path)


def text_list(texts: str | Iterable[str]) -> tuple[str, ...]:
    """One text or several, as a tuple."""
    return (texts,) if isinstance(texts, str) else tuple(texts)


REPLACE: Any = option("--replace", "Replace an existing output.", Excludes("output=-"), default=False)
DICTIONARY: Any = option(
    "--dictionary FILE",
    "zstd dictionary, path or URL, for archives that do not contain theirs. It is used for those whose first frame names its id.",
    default=None,
)
SEED: Any = option(
    "--seed",
    "Seed of the random sample. The same seed gives the same split points.",
    Excludes("splits"),
    default=0,
)


class Quiet(Options):
    """A function of the API shows no progress and prints no summary. It calls `progress` about twice a second."""

    progress: Callable[[Step], object] | None = make_field(default=None)

    quiet: bool = option(
        "--quiet -q",
        "Hide the progress and the summary. Failures are still reported.",
        default=True,
        init=False,
    )


class Running(Quiet):
    """How a command runs."""

    processes: int = option("--processes -p", "Number of processes. 0: one per core.", default=0, min=0)


class EngineOptions(Running):
    """Where the tasks of a command run. Functions of the API run them on this machine."""

    engine: str = option(
        "--engine",
        "local: processes of this machine. spark: Apache Spark; the output may then be an s3 or hdfs URL.",
        default="local",
        choices=("local", "spark"),
        init=False,
    )
    master: str | None = option(
        "--master URL",
        "Master of Spark, such as yarn or spark://HOST:7077. Default: that of spark-submit, or else this machine.",
        Needs("engine=spark"),
        default=None,
        init=False,
    )


class Existing(Options):
    """What happens to outputs of archives that exist. `outputs.existing.rule_of` makes a rule of it."""

    update: bool = option(
        "--update",
        "Write only what is missing, whose archive has changed, or had failures. Keep all other outputs,"
        " whatever options they were written with.",
        Excludes("replace", "output=-"),
        default=False,
    )
    replace: bool = REPLACE
