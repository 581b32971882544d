"""Every command and option has a help text."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from cdxmill.cli.command import HelpCommand
from cdxmill.cli.main import main
from tests.conftest import RunCdxmill
from tests.docs.cli_reference import commands, options

COMMAND = Path(sys.executable).with_name("cdxmill")
PATHS = {
    "CLUSTER",
    "CLUSTER...",
    "SOURCE",
    "DEST",
    "FILE",
    "DIR",
    "LOCATION",
    "OUTPUT",
    "OTHER",
    "INPUT...",
    "CDX...",
    "CDX",
    "NEW...",
}
TEXTS = {
    "NAME",
    "NAMES",
    "TEXT",
    "TYPE",
    "TYPES",
    "FORMAT",
    "ORDER",
    "LAYOUT",
    "MODE",
    "SHELL",
    "WHAT",
    "ADDRESS",
    "BASE",
}
RULES = {"FILTER", "EXPRESSION", "FUNCTION", "COMMAND", "RULE", "MATCH REPLACE"}
METAVARS = PATHS | TEXTS | RULES | {"N", "F", "SIZE", "TIME", "TIMESTAMP", "URL", "QUERY", "QUERY...", "KEY"}


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


def test_the_same_kind_of_value_has_the_same_name_in_all_commands() -> None:
    unknown = [
        f"{name} {parameter.opts} {parameter.metavar}"
        for name, parameter in options()
        if not (isinstance(parameter, click.Option) and parameter.is_flag)
        and parameter.metavar not in METAVARS
    ]
    assert unknown == []


def run_example(run_cdxmill: RunCdxmill, line: str, directory: Path) -> subprocess.CompletedProcess[bytes]:
    """Run a line as a shell does; if it is a command alone, without a start of Python."""
    command, *words = shlex.split(line)
    if command == "cdxmill" and not set(line) & set("|<>&;$*?~"):
        return run_cdxmill(*words, cwd=directory)
    line = line.replace("cdxmill ", f"{COMMAND} ")
    return subprocess.run(["bash", "-c", line], cwd=directory, capture_output=True, check=False)


def test_the_examples_of_all_commands_run_in_their_order(
    tmp_path: Path, pywb_warcs: Path, monkeypatch: pytest.MonkeyPatch, run_cdxmill: RunCdxmill
) -> None:
    (tmp_path / "list.json").write_text('[{"id": "CC-MAIN-2024-22", "name": "May 2024"}]')
    monkeypatch.setenv("CDXMILL_COLLINFO", str(tmp_path / "list.json"))
    (tmp_path / "warcs").mkdir()
    for name in ("dupes.warc.gz", "iana.warc.gz"):
        (tmp_path / "warcs" / name).symlink_to(pywb_warcs / name)
    for name, command in commands().items():
        if isinstance(command, click.Group):
            continue
        assert isinstance(command, HelpCommand)
        assert command.examples, f"{name} has no example"
        for line in command.examples:
            assert len(line) < 79, line
            assert name in line
            does_not_end = line in ("cdxmill serve crawl", "cdxmill serve crawl --watch warcs/")
            if does_not_end or name == "cdxmill cdx-server":  # tests/serving, tests/server
                continue
            done = run_example(run_cdxmill, line, tmp_path)
            assert done.returncode in (0, 141), (line, done.stderr)
            assert b"lookup" not in name.encode() or done.stdout, line


@pytest.mark.parametrize(("typed", "meant"), [("lokup", "lookup"), ("idx", "index"), ("zip", "zipnum")])
def test_a_mistyped_command_gets_the_one_that_was_meant(
    typed: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([typed, "x"]) == 2
    assert f"did you mean {meant}?" in capsys.readouterr().err
    assert main(["xxxxxxxx"]) == 2
    assert "did you mean" not in capsys.readouterr().err
