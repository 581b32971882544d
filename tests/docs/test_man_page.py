"""The man page is current, and man shows it without a warning."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from cdxmill.cli.main import COMMANDS
from tests.docs.man_page import PAGE, escaped, man_page


def test_the_man_page_is_current() -> None:
    assert PAGE.read_text() == man_page(), "run .venv/bin/python tests/docs/man_page.py"


def test_no_text_is_a_command_of_roff() -> None:
    assert escaped(".so x") == r"\&.so x"
    assert escaped(r"a\b --c 'd'") == r"a\eb \-\-c \(aqd\(aq"


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_the_man_page_is_formatted_without_a_warning() -> None:
    words = ["groff", "-man", "-ww", "-Tascii", "-P-cbou", "-rLL=78n", str(PAGE)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert done.stderr == ""
    for name in COMMANDS:
        assert f"cdxmill {name}" in done.stdout
    assert "cdxmill lookup cluster 'http://example.com/*'" in done.stdout
