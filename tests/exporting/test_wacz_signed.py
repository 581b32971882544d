"""A program signs a WACZ: what it is given, and what it answers."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from cdxmill.commands.exporting import wacz
from cdxmill.errors import StoppedError
from cdxmill.version import __version__

HASH, TIME = "sha256:ab", "2020-01-01T00:00:00Z"


class Answer:
    """Stands for a program that signs."""

    def __init__(self, status: int = 0, stdout: bytes = b"", stderr: bytes = b"") -> None:
        self.returncode, self.stdout, self.stderr = status, stdout, stderr
        self.called: list[Any] = []

    def __call__(self, words: list[str], **options: Any) -> Answer:
        self.called.append((words, options))
        return self


SIGNED = {"hash": HASH, "created": TIME, "software": f"cdxmill {__version__}", "signature": "x"}


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (b'{"signature": "x"}', SIGNED),
        (b'{"signature": "x", "software": "mine", "key": 1}', {**SIGNED, "software": "mine", "key": 1}),
        (b'{"signature": "x", "hash": "sha256:ab", "created": "2020-01-01T00:00:00Z"}', SIGNED),
        (b'{"signature": "x", "hash": "sha256:ac"}', "signed another hash or time"),
        (b'{"signature": "x", "created": "2020"}', "signed another hash or time"),
        (b'{"signature": 1}', "printed no JSON object with a signature"),
        (b'{"key": "x"}', "printed no JSON object with a signature"),
        (b'["signature"]', "printed no JSON object with a signature"),
        (b"{", "printed no JSON object with a signature"),
        (b"\xff", "printed no JSON object with a signature"),
        (b"[" * 100_000, "printed no JSON object with a signature"),
    ],
)
def test_what_a_program_answers_is_checked(
    answer: bytes, expected: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = Answer(0, answer)
    monkeypatch.setattr(subprocess, "run", program)
    if isinstance(expected, str):
        with pytest.raises(StoppedError, match=f"--sign-command sign -x: {expected}"):
            wacz._signed("sign -x", HASH, TIME)
    else:
        assert wacz._signed("sign -x", HASH, TIME) == expected
    ((words, options),) = program.called
    assert words == ["sign", "-x"]
    assert options["input"].endswith(b"}\n")
    assert json.loads(options.pop("input")) == {"hash": HASH, "created": TIME}
    assert options == {"capture_output": True, "check": False}


@pytest.mark.parametrize(
    ("stderr", "said"),
    [
        (b"", "without a message"),
        (b" \n", "without a message"),
        (b"two\n  lines\xff", "two lines\ufffd"),
        (b"<" + b"y" * 299, "<" + "y" * 299),
        (b"x" + b"y" * 300, "y" * 300),
    ],
)
def test_a_program_that_fails_is_quoted(stderr: bytes, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "run", Answer(3, b'{"signature": "x"}', stderr))
    with pytest.raises(StoppedError) as found:
        wacz._signed("sign", HASH, TIME)
    assert str(found.value) == f"--sign-command sign: ended with 3 ({said}); run it again"


def test_a_program_that_cannot_be_started_stops_the_export(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise OSError(8, "Exec format error")

    monkeypatch.setattr(subprocess, "run", fails)
    with pytest.raises(StoppedError, match="--sign-command sign: Exec format error; run it again"):
        wacz._signed("sign", HASH, TIME)
    assert wacz._signed(None, HASH, TIME) is None
