"""Every command and option has a help text."""

from __future__ import annotations

import click

from tests.docs.cli_reference import commands, options


def test_every_command_and_option_has_a_help_text() -> None:
    assert [name for name, command in commands().items() if not command.help] == []
    without = [
        f"{name} {parameter.opts}"
        for name, parameter in options()
        if isinstance(parameter, click.Option) and not parameter.help
    ]
    assert without == []


def test_the_help_of_a_command_mentions_its_arguments() -> None:
    missing = [
        f"{name} {parameter.metavar}"
        for name, parameter in options()
        if isinstance(parameter, click.Argument)
        and (parameter.metavar or "").rstrip(".") not in (commands()[name].help or "").split()
    ]
    assert missing == []


def test_the_short_help_of_a_command_is_not_truncated() -> None:
    short = [command.get_short_help_str(limit=66) for name, command in commands().items() if " " in name]
    assert [text for text in short if text.endswith("...")] == []


def test_required_options_come_first_and_quiet_comes_last() -> None:
    for name, command in commands().items():
        required = [parameter.required for parameter in command.params if isinstance(parameter, click.Option)]
        assert required == sorted(required, reverse=True), name
        names = [parameter.name for parameter in command.params]
        assert "quiet" not in names or names[-1] == "quiet", name
