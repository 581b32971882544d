"""A WACZ at a URL has the bytes of a local one; what could not be copied is listed beside it, and nothing else is left."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from cdxmill.cli.main import main
from cdxmill.storage.location import locate
from cdxmill.storage.walk import files_below

WARC = "iana.warc.gz"


@pytest.fixture
def command(tmp_path: Path, pywb_warcs: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """An export from the working directory, without its output. Outputs have a fixed time."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    Path("tmp").mkdir()
    shutil.copyfile(pywb_warcs / WARC, WARC)
    assert main(["index", "-q", "-o", "i.cdxj", WARC]) == 0
    return ["export", "-q", "-p", "1", "i.cdxj", "*.iana.org", "--archives", ".", "--to", "wacz", "-o"]


def left(place: str) -> list[str]:
    return sorted(path.removeprefix(f"{place}/") for path in files_below(place).files)


def test_bytes_are_those_of_a_local_wacz(
    command: list[str], elsewhere: str, capsys: pytest.CaptureFixture[str]
) -> None:
    place = f"{elsewhere}/s.wacz"
    assert main([*command, "s.wacz"]) == main([*command, place]) == 0
    assert locate(place).read_bytes() == Path("s.wacz").read_bytes()
    assert (left(elsewhere), list(Path("tmp").iterdir())) == (["s.wacz"], [])
    assert main([*command, place]) == 2
    assert f"{place}: already exists; use --replace" in capsys.readouterr().err


def test_damage_is_listed_at_the_url_until_it_is_mended(command: list[str], elsewhere: str) -> None:
    place, sound = f"{elsewhere}/s.wacz", Path(WARC).read_bytes()
    Path(WARC).write_bytes(sound[:1334] + bytes([sound[1334] ^ 255]) + sound[1335:])
    assert main([*command, place]) == 1
    assert left(elsewhere) == ["_s.wacz.failures", "s.wacz"]
    assert b"http://www.iana.org/ 20140126200624" in (locate(elsewhere) / "_s.wacz.failures").read_bytes()
    Path(WARC).write_bytes(sound)
    assert main([*command, place, "--replace"]) == 0
    assert left(elsewhere) == ["s.wacz"]


def test_a_wacz_that_is_not_complete_is_not_there(command: list[str], elsewhere: str) -> None:
    """Nothing is left of a run that finds nothing, or that stops while it writes to the URL."""
    place = f"{elsewhere}/s.wacz"
    assert main([*command, place, "--filter", "status:999"]) == 1
    assert main([*command, place, "--sign-command", "false"]) == 3
    assert (left(elsewhere), list(Path("tmp").iterdir())) == ([], [])


def test_a_wacz_of_another_run_stays(command: list[str], elsewhere: str) -> None:
    """It appears while this run writes, here with its signature."""
    place = f"{elsewhere}/s.wacz"
    Path("sign.py").write_text(
        "from cdxmill.storage.location import locate\n"
        f"with locate({place!r}).write_atomic() as file:\n"
        "    file.write(b'precious')\n"
        """print('{"signature": "x"}')\n"""
    )
    assert main([*command, place, "--sign-command", f"{sys.executable} sign.py"]) == 2
    assert locate(place).read_bytes() == b"precious"
    assert main([*command, place, "--replace"]) == 0
    assert locate(place).read_bytes()[:2] == b"PK"
