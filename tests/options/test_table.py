"""The options of a dataclass in a table like argparse's: what is added, what the help says, and what is read."""

from __future__ import annotations

from argparse import ArgumentParser
from dataclasses import field

import pytest

from cdxmill.errors import UsageError
from cdxmill.options.option import Flag, Needs, Options, ReadBy, argument, flags, option
from cdxmill.options.table import add_options, read_options


class Cooking(Options):
    """Options of all kinds."""

    dish: str = argument("DISH", "What is cooked, 100% of it.")
    place: str | None = argument("PLACE", "Where.", default="kitchen")
    minutes: int = option("--minutes -m", "How long, 50% of an hour at most.", default=5, min=1)
    salt: float = option("--salt GRAMS", "How much.", default=0.5)
    words: str = option("--words TEXT", "What is said.", default="")
    pot: str | None = option("--pot", "In a pot.", default=None)
    lid: bool = option("--with-lid", "With a lid.", Needs("pot"), default=False)
    spices: tuple[str, ...] = option(
        "--spices LIST", "Spices.", ReadBy(lambda text: tuple(text.split("+"))), default=("pepper",)
    )
    heat: int = option("--heat-of-oven", "How hot.")
    bowl: str = flags(
        Flag("plate", "--plate -P", "On a plate, 7% wider."),
        Flag("cup", "--cup", "In a cup."),
        default="bowl",
    )
    gas: bool = option("--gas", "For the command line alone.", default=False, init=False)
    hidden: int = field(default=7, init=False)


class Added(dict[str, dict[str, object]]):
    """What was added: by names, how."""

    def add(self, *names: str, **how: object) -> None:
        """As that of a parser."""
        self[" ".join(names)] = how


def test_each_option_is_added_with_its_kind_its_default_and_its_help() -> None:
    added = Added()
    add_options(Cooking, added.add)
    assert added == {
        "dish": {"help": "What is cooked, 100%% of it.", "metavar": "DISH"},
        "place": {"help": "Where.", "metavar": "PLACE", "nargs": "?", "default": "kitchen"},
        "--minutes -m": {
            "help": "How long, 50%% of an hour at most. Default: 5.",
            "dest": "minutes",
            "metavar": "MINUTES",
            "type": int,
            "default": 5,
        },
        "--salt": {"help": "How much. Default: 0.5.", "dest": "salt", "metavar": "GRAMS", "type": float, "default": 0.5},
        "--words": {"help": "What is said.", "dest": "words", "metavar": "TEXT", "type": str, "default": ""},
        "--pot": {"help": "In a pot.", "dest": "pot", "metavar": "POT", "type": str, "default": None},
        "--with-lid": {"help": "With a lid.", "dest": "lid", "action": "store_true", "default": False},
        "--spices": {"help": "Spices.", "dest": "spices", "metavar": "LIST", "type": str, "default": None},
        "--heat-of-oven": {
            "help": "How hot. Required.",
            "dest": "heat",
            "metavar": "HEAT_OF_OVEN",
            "type": int,
            "default": None,
        },
        "--plate -P": {
            "help": "On a plate, 7%% wider.",
            "dest": "bowl",
            "action": "store_const",
            "const": "plate",
            "default": "bowl",
        },
        "--cup": {"help": "In a cup.", "dest": "bowl", "action": "store_const", "const": "cup", "default": "bowl"},
    }  # fmt: skip


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("soup --heat-of-oven 9", {}),
        ("soup yard --heat-of-oven 9", {"place": "yard"}),
        ("soup --heat-of-oven 9 -m 1 --salt 2", {"minutes": 1, "salt": 2.0}),
        ("soup --heat-of-oven 9 --spices a+b", {"spices": ("a", "b")}),
        ("soup --heat-of-oven 9 --pot x --with-lid -P", {"pot": "x", "lid": True, "bowl": "plate"}),
        ("soup --heat-of-oven 9 --words x --cup", {"words": "x", "bowl": "cup"}),
    ],
)
def test_what_is_not_given_has_its_default(call: str, given: dict[str, object]) -> None:
    parser = ArgumentParser()
    add_options(Cooking, parser.add_argument)
    read = read_options(Cooking, parser.parse_args(call.split()))
    known = {
        "dish": "soup", "place": "kitchen", "minutes": 5, "salt": 0.5, "words": "", "pot": None, "lid": False,
        "spices": ("pepper",), "heat": 9, "bowl": "bowl", "gas": False, "hidden": 7,
    }  # fmt: skip
    assert {name: getattr(read, name) for name in known} == known | given


@pytest.mark.parametrize(
    ("call", "told"),
    [
        ("soup", "--heat-of-oven is missing; see --help"),
        ("soup --heat-of-oven 9 -m 0", "invalid --minutes 0: expected at least 1"),
        ("soup --heat-of-oven 9 --with-lid", "--with-lid needs --pot"),
        ("soup --heat-of-oven 9 --pot=", "--pot is empty; give a value (is a variable unset?)"),
    ],
)
def test_wrong_options_are_named_as_they_are_given(call: str, told: str) -> None:
    parser = ArgumentParser()
    add_options(Cooking, parser.add_argument)
    with pytest.raises(UsageError) as error:
        read_options(Cooking, parser.parse_args(call.split()))
    assert str(error.value) == told
