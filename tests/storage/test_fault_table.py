"""Each fault of a web server under each command: the right output and status, or an error. Never wrong bytes.

python -m pytest tests/storage/test_fault_table.py --fault-requests 99      each fault at every request
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from cdxmill.cli.main import main
from cdxmill.storage import patience

from .fault_server import BODIES, FAULTS, WHOLE, FaultServer, failing

ONCE_RIGHT = {
    *("503", "500", "429", "429-date", "429-garbage", "429-huge", "416", "416-star", "redirect-host"),
    *("range-shorter", "range-star", "one-byte", "206-empty", *WHOLE, *BODIES),
    *("reset-before", "stall-before", "not-http", "headers-huge"),
}
"""Faults that one more request mends."""
ALWAYS_RIGHT = {"drip", "long-body", "range-shorter", "range-star"}
"""Faults with which all bytes arrive."""


class Outcome(NamedTuple):
    status: int
    stdout: bytes
    stderr: str
    files: dict[str, bytes]


Run = Callable[[str], Outcome]


@pytest.fixture(scope="module")
def material(tmp_path_factory: pytest.TempPathFactory, pywb_warcs: Path) -> Path:
    """An archive, CDX lines and two clusters; each file takes several requests."""
    directory = tmp_path_factory.mktemp("web")
    plain = gzip.decompress((pywb_warcs / "iana.warc.gz").read_bytes())
    (directory / "big.warc").write_bytes(plain * 2)
    (directory / "iana.warc.gz").write_bytes((pywb_warcs / "iana.warc.gz").read_bytes())
    (directory / "lines.cdxj").write_bytes(
        b"".join(
            b'com,host%03d)/%05d 2020%010d {"url": "http://h", "digest": "%0800x"}\n' % (n // 25, n, n, n * n)
            for n in range(5000)
        )
    )
    for command, name, source in (("zipnum", "c", "lines.cdxj"), ("build", "real", "iana.warc.gz")):
        options = [
            "-q",
            "-p",
            "1",
            "-s",
            "2",
            "--numlines",
            "9",
            "--location",
            ".",
            "-o",
            str(directory / name),
        ]
        assert main([command, *options, str(directory / source)]) == 0
    return directory


@pytest.fixture(scope="module")
def served(material: Path) -> dict[str, bytes]:
    """The files by their paths on the server."""
    files = (path for path in material.rglob("*") if path.is_file())
    return {f"/{path.relative_to(material)}": path.read_bytes() for path in files}


@pytest.fixture
def server(served: dict[str, bytes], monkeypatch: pytest.MonkeyPatch) -> Iterator[FaultServer]:
    monkeypatch.setattr(patience, "FIRST_WAIT", 0.001)
    monkeypatch.setattr(patience, "LONGEST_WAIT", 0.01)
    monkeypatch.setattr(patience, "READ_SECONDS", 0.3)
    with failing() as running:
        running.files.update(served)
        yield running


COMMANDS = {
    "index": "index -q -p 1 -o - URL/big.warc",
    "zipnum": "zipnum -q -p 1 -s 2 --location . -o OUT/c URL/lines.cdxj",
    "lookup": "lookup URL/c host150.com/ --match-type prefix",
    "copy": "copy -q -p 1 -o OUT/copy URL/real *.iana.org --archives URL",
    "get": "get URL/real http://www.iana.org/domains/root --archives URL",
}


@pytest.fixture
def run(
    server: FaultServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> Run:
    """Runs a command. Each run has its own output folder; the cache is shared."""
    monkeypatch.setenv("CDXMILL_CACHE", str(tmp_path / "cache"))

    def call(command: str) -> Outcome:
        out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
        out.mkdir()
        words = command.replace("URL", server.url).replace("OUT", str(out)).split()
        capfdbinary.readouterr()
        status = main(words)
        stdout, stderr = capfdbinary.readouterr()
        files = {path.name: path.read_bytes() for path in out.rglob("cdx-*.gz")}
        for path in out.rglob("*.cdxj"):  # the first record of a copy has the port of this server
            files[path.name] = re.sub(rb'"offset": "\d+"', b"", path.read_bytes())
        return Outcome(status, stdout, stderr.decode(), files)

    return call


def judge(found: Outcome, right: Outcome) -> str:
    """`right` or `error`; else the test fails."""
    assert "Traceback" not in found.stderr
    assert "fault of cdxmill" not in found.stderr
    if found.status == right.status:
        assert found[1] == right[1], "wrong bytes with the right status"
        assert found.files == right.files, "wrong files with the right status"
        return "right"
    assert found.status in (1, 2, 3), found.stderr
    assert "http://127.0.0.1" in found.stderr, "the error names the URL"
    assert set(found.stdout.splitlines()) <= set(right.stdout.splitlines()), "wrong bytes"
    return "error"


@pytest.fixture(scope="module")
def undisturbed() -> dict[str, Outcome]:
    """The right outcome of each command, when it has been run once."""
    return {}


@pytest.mark.parametrize("once", [True, False], ids=["once", "always"])
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("fault", FAULTS)
def test_faults(
    fault: str, command: str, once: bool, server: FaultServer, run: Run, undisturbed: dict[str, Outcome]
) -> None:
    if command not in undisturbed:
        undisturbed[command] = run(COMMANDS[command])
    right = undisturbed[command]
    assert right.status == 0, right.stderr
    assert right.stdout or right.files
    server.plan(fault, 3, once=once)
    found = run(COMMANDS[command])
    if fault.endswith("-content"):  # read after the change, it is another file
        server.plan(fault, 1, once=False)
        right = right if found != run(COMMANDS[command]) else found
    outcome = judge(found, right)
    if fault in ALWAYS_RIGHT or (once and fault in ONCE_RIGHT):
        assert outcome == "right", found.stderr
    if command == "lookup":
        server.plan("", 0, once=True)
        assert run(COMMANDS[command])[:2] == undisturbed[command][:2], "the cache has wrong bytes"
