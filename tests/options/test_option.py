"""An option is declared once; an option that another one makes useless is wrong usage, by one rule for all faces."""

from __future__ import annotations

import inspect
from argparse import ArgumentParser
from dataclasses import dataclass, field, is_dataclass
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Annotated

import pytest

import cdxmill
from cdxmill import UsageError
from cdxmill.api.calls import takes
from cdxmill.cli.main import main
from cdxmill.jobs.zipnum_job import ZipnumJobOptions
from cdxmill.options.option import Argument, Excludes, Flag, Needs, Option, Paths, declared, path_list
from cdxmill.options.table import add_options, read_options

PACKAGE = Path(cdxmill.__file__).parent
ROOMS = ("options", "cli")


@dataclass(frozen=True, kw_only=True)
class Cooking:
    """Options of all kinds."""

    dishes: Annotated[Paths, Argument("DISH...", "What is cooked.")] = field(default=(), kw_only=False)
    minutes: Annotated[int, Option(min=1, max=90, help="How long."), Excludes("heat=none")] = 5
    heat: Annotated[
        str, Option(choices=("none", "low", "high"), help="How hot."), Flag("low", "--simmer", help="Low.")
    ] = "high"
    lid: Annotated[bool, Option(help="With a lid."), Needs("pot", "pan")] = False
    pot: Annotated[str | None, Option(help="In a pot.")] = None
    hidden: int = field(default=7, init=False)


@takes(Cooking)
def cook(asked: Cooking) -> list[str]:
    """Cook."""
    return path_list(asked.dishes)


def test_a_function_of_the_api_has_the_parameters_of_its_dataclass() -> None:
    assert str(inspect.signature(cook)) == (
        "(dishes: str | os.PathLike[str] | collections.abc.Iterable[str | os.PathLike[str]] = (), *,"
        " minutes: int = 5, heat: str = 'high', lid: bool = False, pot: str | None = None) -> list[str]"
    )
    assert (cook.__name__, cook.__doc__) == ("cook", "Cook.")
    assert cook(Path("a"), pot="b", lid=True) == ["a"]
    with pytest.raises(TypeError, match="unexpected keyword argument 'hidden'"):
        cook(hidden=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"minutes": 0}, "invalid minutes 0: expected at least 1"),
        ({"minutes": 91}, "invalid minutes 91: expected at most 90"),
        ({"heat": "some"}, "invalid heat 'some': expected one of none, low, high"),
        ({"minutes": 9, "heat": "none"}, "minutes and heat none cannot be used together"),
        ({"lid": True}, "lid needs pot"),
    ],
)
def test_wrong_arguments_are_reported_with_their_names(given: dict[str, object], text: str) -> None:
    with pytest.raises(UsageError) as raised:
        cook(**given)  # type: ignore[arg-type]
    assert str(raised.value) == text


def test_a_table_of_argparse_has_the_same_options() -> None:
    parser = ArgumentParser()
    add_options(ZipnumJobOptions, parser.add_argument)
    assert "--numlines NUMLINES Lines per block. Default: 3000." in " ".join(parser.format_help().split())
    read = read_options(ZipnumJobOptions, parser.parse_args(["--splitfile", "s", "--level", "3"]))
    assert (read.splits, read.level, read.numlines, read.replace) == ("s", 3, 3000, False)
    with pytest.raises(UsageError, match="--splitfile is missing"):
        read_options(ZipnumJobOptions, parser.parse_args([]))
    with pytest.raises(UsageError, match="invalid --numlines 0: expected at least 1"):
        read_options(ZipnumJobOptions, parser.parse_args(["--splitfile", "s", "--numlines", "0"]))


@pytest.mark.parametrize(
    ("call", "text"),
    [
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
        ("recompress -o out --to gz --dictionary d x", "--dictionary needs --to zst"),
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
    kinds = {kind for name in names for kind in vars(import_module(name)).values() if is_dataclass(kind)}
    fields = [field for kind in kinds if isinstance(kind, type) for field in declared(kind)]
    named = {other.partition("=")[0] for field in fields for rule in field.rules for other in rule.others}
    assert len(named) > 10
    assert named <= {field.name for field in fields}


def test_type_checkers_see_the_parameters() -> None:
    """mypy checks this file: it would report a comment that ignores nothing."""
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'output'"):
        cdxmill.copy("C", "u")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        cdxmill.sample(["a"], shards="3", output=Path("x"))  # type: ignore[arg-type]
