"""`bin/remote_copy`: how names are read, lists and files of them, wrong usage, and keys that nobody sees."""

from __future__ import annotations

import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ..material.cdx_files import write_plain
from ..material.trees import line
from .conftest import ROOT

SCRIPT = ROOT / "bin/remote_copy"
Call = Callable[..., tuple[int, list[list[str]], str]]


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Call:
    """Calls it with an index of a few hosts. The status, the table of `check` and what was said."""
    keys = ("com,example)/1", "com,example,blog)/2", "org,wikipedia,en)/3", "en,wikipedia,org)/4")
    index = write_plain(tmp_path / "all.cdxj", sorted(map(line, keys)))
    monkeypatch.chdir(tmp_path)
    main = runpy.run_path(str(SCRIPT))["main"]

    def run(*words: str | Path) -> tuple[int, list[list[str]], str]:
        status = main([*map(str, words), "--index", str(index)])
        out, err = capfd.readouterr()
        return status, [row.split()[:2] for row in out.splitlines()[1:-1]], err

    return run


def test_names_are_reversed_unless_it_is_said_otherwise(call: Call) -> None:
    status, rows, said = call("check", "org.wikipedia.en, com.example")
    assert (status, rows) == (0, [["*.en.wikipedia.org", "1"], ["*.example.com", "2"]])
    assert "remote_copy: org.wikipedia.en is read as *.en.wikipedia.org\n" in said
    assert said.endswith("if names are usual, such as www.ibm.com, use --names usual\n")
    status, rows, said = call("check", "org.wikipedia.en", "--names", "usual")
    assert (status, rows) == (0, [["*.org.wikipedia.en", "1"]])
    assert "remote_copy: org.wikipedia.en is read as *.org.wikipedia.en\n" in said
    assert call("check", "com.example/1")[1] == [["example.com/1*", "1"]]


def test_a_list_may_be_long_and_a_file_may_have_any_bytes(call: Call) -> None:
    hosts = [f"com.example-{number}" for number in range(500)]
    status, rows, said = call("check", ",".join(hosts))
    assert (status, len(rows), "495 more in the same way" in said) == (0, 500, True)
    Path("domains.txt").write_bytes(
        b"\xef\xbb\xbfcom.example\r\n\r\ncom.m\xfcnchen\norg.wikipedia.en,com.example"
    )
    status, rows, said = call("check", "domains.txt")
    assert (status, len(rows), rows[0]) == (0, 3, ["*.example.com", "2"])
    assert "the domains are those in the file domains.txt" in said


@pytest.mark.parametrize("words", [" , ", "empty", "http://www.ibm.com/", "com..ibm", "*.com.ibm", "com ibm"])
def test_what_is_no_domain_copies_nothing(call: Call, words: str) -> None:
    Path("empty").write_bytes(b"\n , \n")
    for command in (["check", words], ["copy", words, "--bucket", "b", "--key", "k"]):
        status, rows, said = call(*command)
        assert (status, rows) == (2, [])
        assert said.splitlines()[-1].startswith(f"remote_copy: {words!r}: ")


def test_a_key_of_the_command_line_is_in_no_list_of_processes() -> None:
    words = ["check", "com.example", "-i", "-", "-O", "someone", "--aws-secret=geheim", "--json"]
    with subprocess.Popen(
        [sys.executable, "-W", "ignore", SCRIPT, *words], stdin=-1, stdout=-1, stderr=-1
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == b"remote_copy: com.example is read as *.example.com\n"
        shown = Path(f"/proc/{process.pid}/cmdline").read_bytes()
        variables = Path(f"/proc/{process.pid}/environ").read_bytes().split(b"\0")
        assert (b"geheim" in shown, b"someone" in shown, b"\0-W\0ignore\0" in shown) == (False, False, True)
        assert {b"AWS_ACCESS_KEY_ID=someone", b"AWS_SECRET_ACCESS_KEY=geheim"} <= set(variables)
        out, _ = process.communicate(b"")
        assert b'"query": "*.example.com"' in out
    assert process.returncode == 0
