"""An option is declared once; an option that another one makes useless is wrong usage, by one rule for all faces."""

from __future__ import annotations

import inspect
from argparse import ArgumentParser
from collections.abc import Iterable
from dataclasses import field
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import cdxmill
from cdxmill import UsageError
from cdxmill.api.calls import takes
from cdxmill.cli.main import main
from cdxmill.options import records
from cdxmill.options.clusters import ClusterOptions
from cdxmill.options.option import (
    Excludes,
    Flag,
    Needs,
    Options,
    Paths,
    argument,
    check_no_pipe,
    declared,
    flags,
    option,
    optional_path,
    path_list,
    required_paths,
    text_list,
)
from cdxmill.options.table import add_options, read_options

PACKAGE = Path(cdxmill.__file__).parent
ROOMS = ("options", "cli")


class Cooking(Options):
    """Options of all kinds."""

    dishes: Paths = argument("DISH...", "What is cooked.", default=(), kw_only=False)
    minutes: int = option("--minutes", "How long.", Excludes("heat=none"), default=5, min=1, max=90)
    heat: str = option("--heat", "How hot.", default="high", choices=("none", "low", "high"))
    dish: str = flags(Flag("plate", "--plate", "On a plate."), default="bowl")
    lid: bool = option(
        "--lid", "With a lid.", Needs("pot", "pan", "gas"), Excludes("dish=plate"), default=False
    )
    pot: str | None = option("--pot", "In a pot.", default=None)
    gas: bool = option("--gas", "On gas: for the command line alone.", default=False, init=False)
    hidden: int = field(default=7, init=False)


class JobOptions(ClusterOptions):
    """A job with an old name for an option."""

    splits: str = option("--splitfile", "Split points.")
    processes: int = field(default=1, init=False)


@takes(Cooking)
def cook(asked: Cooking) -> list[str]:
    """Cook."""
    return path_list(asked.dishes)


def test_a_function_of_the_api_has_the_parameters_of_its_dataclass() -> None:
    assert str(inspect.signature(cook)) == (
        "(dishes: str | os.PathLike[str] | collections.abc.Iterable[str | os.PathLike[str]] = (), *,"
        " minutes: int = 5, heat: str = 'high', dish: str = 'bowl', lid: bool = False, pot: str | None = None) -> list[str]"
    )
    assert (cook.__name__, cook.__doc__) == ("cook", "Cook.")
    assert cook(Path("a"), pot="b", lid=True) == ["a"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'hidden'"):
        cook(hidden=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "given",
    [
        {"minutes": 1},
        {"minutes": 90, "heat": "low"},
        {"heat": "none"},
        {"minutes": 5, "heat": "none"},  # as if it was not given
        {"dish": "plate"},
        {"dish": "plate", "lid": False},
        {"lid": True, "pot": "a"},
    ],
    ids=lambda given: "+".join(f"{name}={value}" for name, value in given.items()),
)
def test_values_at_their_limits_are_taken(given: dict[str, object]) -> None:
    assert cook(["a", Path("b")], **given) == ["a", "b"]  # type: ignore[arg-type]
    assert cook(iter("ab"), **given) == ["a", "b"]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"minutes": 0}, "invalid minutes 0: expected at least 1"),
        ({"minutes": 91}, "invalid minutes 91: expected at most 90"),
        ({"pot": ""}, "pot is empty; give a value (is a variable unset?)"),
        ({"heat": "some"}, "invalid heat 'some': expected one of none, low, high"),
        ({"minutes": 9, "heat": "none"}, "minutes and heat none cannot be used together"),
        ({"lid": True}, "lid needs pot"),
        ({"dish": "cup"}, "invalid dish 'cup': expected one of bowl, plate"),
        ({"dish": "plate", "lid": True, "pot": "a"}, "lid and dish plate cannot be used together"),
    ],
)
def test_wrong_arguments_are_reported_with_their_names(given: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError) as raised:
        cook(**given)  # type: ignore[arg-type]
    assert str(raised.value) == text


def test_a_table_of_argparse_has_the_same_options() -> None:
    parser = ArgumentParser()
    add_options(JobOptions, parser.add_argument)
    assert "--numlines NUMLINES Lines per block. Default: 3000." in " ".join(parser.format_help().split())
    read = read_options(JobOptions, parser.parse_args(["--splitfile", "s", "--level", "3"]))
    assert (read.splits, read.level, read.numlines, read.replace) == ("s", 3, 3000, False)
    with pytest.raises(UsageError, match="--splitfile is missing"):
        read_options(JobOptions, parser.parse_args([]))
    with pytest.raises(UsageError, match="invalid --numlines 0: expected at least 1"):
        read_options(JobOptions, parser.parse_args(["--splitfile", "s", "--numlines", "0"]))


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("serve C --bind=", "--bind is empty; give a value (is a variable unset?)"),
        ("lookup C http://a.com/ --page-size 5", "--page-size needs --page or --show-num-pages"),
        ("lookup C http://a.com/ --count --fl url", "--fl and --count cannot be used together"),
        ("lookup C http://a.com/ --show-num-pages --from 2014", "--from and --show-num-pages cannot be"),
        ("lookup C http://a.com/ --closest 2014 --sort reverse", "--closest and --sort reverse cannot be"),
        ("copy C.cdxj -o out --match-type prefix", "--match-type needs QUERY or --input"),
        ("copy C x -o out --json", "--json needs --dry-run"),
        ("index -o - --replace x", "--replace and --output - cannot be used together"),
        ("index -o - --update x", "--update and --output - cannot be used together"),
        ("count tags -o - --replace x", "--replace and --output - cannot be used together"),
        ("zipnum -o C --splits s.txt --seed 3 x", "--seed and --splits cannot be used together"),
        ("cat x --offset 3 --replace", "--replace needs --table"),
        ("get C http://a.com/ --headers --decode", "--decode needs --payload"),
        ("get C http://a.com/ --headers --payload", "--headers and --payload cannot be used together"),
        ("scan -o out --to warc.gz --extract url x", "--extract and --to warc.gz cannot be used together"),
        (
            "lookup C http://a.com/ --match-type foo",
            "invalid --match-type 'foo': expected one of exact, prefix",
        ),
    ],
)
def test_an_option_without_an_effect_is_wrong_usage(
    call: str, text: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(call.split()) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"cdxmill: {text}")
    assert not list(tmp_path.iterdir())


def test_the_rules_name_fields_that_exist() -> None:
    names = (
        f"cdxmill.{room}.{module.name}" for room in ROOMS for module in iter_modules([str(PACKAGE / room)])
    )
    found = [kind for name in names for kind in vars(import_module(name)).values()]
    kinds = {kind for kind in found if isinstance(kind, type) and issubclass(kind, Options)} - {Options}
    fields = [field for kind in kinds for field in declared(kind)]
    rules = [rule for field in fields for rule in field.option.rules]
    named = {other.partition("=")[0] for rule in rules for other in rule.others}
    assert len(named) > 10
    assert named <= {field.name for field in fields}


def test_type_checkers_see_the_parameters() -> None:
    """mypy checks this file: it would report a comment that ignores nothing."""
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'output'"):
        cdxmill.copy("C", "u")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        cdxmill.sample(["a"], shards="3", output=Path("x"))  # type: ignore[arg-type]


def test_each_dataclass_has_its_own_constructor() -> None:
    class Plain(Options):
        """The one above."""

        minutes: int = option("--minutes", "How long.", default=5)

    class Salted(Plain):
        """The one below."""

        salt: int = option("--salt", "How much.")

    assert (Plain().minutes, Salted(salt=1).minutes, Plain(minutes=7).minutes) == (5, 5, 7)
    with pytest.raises(TypeError, match=r"Plain.__init__\(\) got an unexpected keyword argument 'salt'"):
        Plain(salt=1)  # type: ignore[call-arg]
    with pytest.raises(
        TypeError, match=r"Salted.__init__\(\) missing 1 required keyword-only argument: 'salt'"
    ):
        Salted()  # type: ignore[call-arg]


class Kinds(Options):
    """Fields of all types."""

    one: str = argument("ONE", "One.")
    rest: Paths = argument("REST...", "More.", default=())
    number: int | None = option("--number", "A number.", default=None)
    place: Path | str | None = option("--place", "A place.", default=None)
    many: list[str] = option("--many", "Many.", default=())
    some: Paths | None = option("--some", "Some.", default=None)
    each: Iterable[str] = option("--each", "Each.", default=())
    fixed: tuple[str, ...] = option("--fixed", "Fixed.", default=())


def test_a_type_says_how_often_an_option_may_be_given() -> None:
    found = {field.name: (field.kind, field.is_repeated, field.is_required) for field in declared(Kinds)}
    assert found == {
        "one": (str, False, True),
        "rest": (list, True, False),
        "number": (int, False, False),
        "place": (str, False, False),
        "many": (list, True, False),
        "some": (list, True, False),
        "each": (Iterable, False, False),
        "fixed": (tuple[str, ...], False, False),
    }
    assert declared(Kinds) is declared(Kinds)


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("minutes", "", "--minutes"),
        ("heat", "low", "--heat low"),
        ("dishes", "", "DISH"),
        ("dishes", "a", "DISH a"),
        ("dish", "plate", "--plate"),
    ],
)
def test_a_field_is_named_as_on_the_command_line(name: str, value: str, text: str) -> None:
    (found,) = (field for field in declared(Cooking) if field.name == name)
    assert found.spelled(value) == text


class Rules(Options):
    """Options that depend on others."""

    text: str = option("--text", "May be empty.", default="")
    none: str | None = option("--none", "May not.", default=None)
    a: bool = option("--a", "Any.", default=False)
    b: bool = option("--b", "Any.", default=False)
    c: bool = option("--c", "Not with these.", Excludes("a", "b"), default=False)
    d: bool = option("--d", "With one of these.", Needs("a", "b"), default=False)
    e: bool = option("--e", "With what is elsewhere.", Needs("elsewhere"), default=False)


@takes(Rules)
def follow(asked: Rules) -> bool:
    """Follow the rules."""
    return True


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"text": ""}, None),
        ({"none": ""}, "none is empty; give a value (is a variable unset?)"),
        ({"a": True, "b": True}, None),
        ({"c": True, "b": True}, "c and b cannot be used together"),
        ({"c": True, "a": True, "b": True}, "c and a cannot be used together"),
        ({"d": True}, "d needs a or b"),
        ({"d": True, "b": True}, None),
        ({"e": True}, None),  # this face has no such option
    ],
    ids=str,
)
def test_rules_name_the_first_option_that_is_in_the_way(given: dict[str, Any], told: str | None) -> None:
    if told is None:
        assert follow(**given)
    else:
        with pytest.raises(UsageError) as error:
            follow(**given)
        assert str(error.value) == told


def test_one_path_or_text_is_a_list_of_one() -> None:
    for paths in ("a", Path("a"), ["a"], [Path("a")], iter(["a"])):
        assert required_paths(paths) == ["a"]
    with pytest.raises(UsageError, match="no input; give files, directories or URLs"):
        required_paths([])
    assert (text_list("ab"), text_list(["a", "b"]), text_list([])) == (("ab",), ("a", "b"), ())
    assert (optional_path(None), optional_path(Path("a")), optional_path("")) == (None, "a", "")
    check_no_pipe(["a", "-b"], "no pipe here")
    for inputs in ("-", ["a", "-"]):
        with pytest.raises(UsageError, match=r"^no pipe here$"):
            check_no_pipe(inputs, "no pipe here")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("64K", 1 << 16),
        ("63K", None),
        ("65536", 1 << 16),
        ("65535", None),
        ("1m", 1 << 20),
        (" 2GiB ", 2 << 30),
        ("1TB", 1 << 40),
        ("1P", None),
        ("", None),
        ("-1G", None),
        ("1234567890123", None),
    ],
)
def test_a_size_has_a_unit_and_a_limit(text: str, size: int | None) -> None:
    if size is not None:
        assert records._size(text) == size
    else:
        with pytest.raises(UsageError, match=r"expected a size of at least 64K, such as 500M or 1G"):
            records._size(text)
