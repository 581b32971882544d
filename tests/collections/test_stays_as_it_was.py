"""What a change meets: a corrupt block, another run, somebody's files under its names. The cluster stays as it was."""

from __future__ import annotations

import gzip
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cdxmill import lookup
from tests.conftest import RunCdxmill

LINES = [f'com,example)/{number:03d} 2020 {{"n": "{number}"}}' for number in range(200)]
HOLDER = """
import sys, time
from pathlib import Path
from cdxmill.running.lock import hold
with hold(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(600)
"""
COMMANDS = {
    "add": ("add", "-q", "C", "--cdx", "new.cdxj"),
    "remove": ("remove", "-q", "C", "--keep-old", "0", "example.com/1*"),
    "compact": ("compact", "-q", "C"),
}
every_command = pytest.mark.parametrize("name", COMMANDS)


@pytest.fixture
def cluster(tmp_path: Path, run_cdxmill: RunCdxmill, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cluster of three shards, of which one was changed."""
    monkeypatch.chdir(tmp_path)
    Path("a.cdxj").write_text("".join(f"{line}\n" for line in LINES))
    Path("points").write_text("com,example)/070\ncom,example)/140\n")
    Path("old.cdxj").write_text("".join(f"{line}\n" for line in LINES[::9]))
    Path("new.cdxj").write_text(
        "com,example)/005 2021 {}\ncom,example)/105 2021 {}\ncom,example)/150 2021 {}\n"
    )
    words = ["-q", "--splits", "points", "--numlines", "9", "-o", "C", "a.cdxj"]
    assert run_cdxmill("zipnum", *words).returncode == 0
    assert run_cdxmill("remove", "-q", "C", "--keep-old", "0", "example.com/10*").returncode == 0
    assert not Path("C/.change").exists()
    return tmp_path / "C"


def content(directory: Path) -> dict[str, bytes | None]:
    """All files below a directory. A symbolic link has no bytes."""
    return {
        str(path.relative_to(directory)): None if path.is_symlink() else path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_symlink() or path.is_file()
    }


def answers(cluster: Path) -> int:
    return len(list(lookup(cluster, "example.com/*")))


@pytest.mark.parametrize("name", [*COMMANDS, "overlay", "cluster"])
@pytest.mark.parametrize("first", [0, 1])
def test_a_corrupt_block_stops_a_change(
    name: str, first: int, cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    """Also one in the middle of a shard, after others were written."""
    for shard, part in ((path, path.name.replace("cdx-", "part-")[:-3]) for path in cluster.glob("cdx-*.gz")):
        rows = [row.split(b"\t") for row in (cluster / part).read_bytes().splitlines()]
        data = bytearray(shard.read_bytes())
        for _, _, offset, length in rows[first:]:
            data[int(offset) + int(length) // 2] ^= 0xFF
        shard.write_bytes(data)
    words = COMMANDS.get(name, COMMANDS["add"])
    if name == "overlay":
        words = (*words, "--mode", "overlay", "old.cdxj")
    elif name == "cluster":
        assert run_cdxmill("zipnum", "-q", "--numlines", "9", "-o", "N", "new.cdxj").returncode == 0
        words = (*words[:-1], "N")
    before = content(cluster)
    done = run_cdxmill(*words)
    assert done.returncode == 1
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert re.search(rb"C: cdx-0000\d(-\d)?\.gz@\d+: the block is corrupt", done.stderr), done.stderr
    assert content(cluster) == before


@every_command
def test_a_corrupt_index_of_a_shard_stops_a_change(name: str, cluster: Path, run_cdxmill: RunCdxmill) -> None:
    """Of the same size, so that it is noticed only when its lines are read."""
    for part in cluster.glob("part-*"):
        part.write_bytes(part.read_bytes().replace(b"\t", b" "))
    before = content(cluster)
    done = run_cdxmill(*COMMANDS[name])
    assert (done.returncode, done.stderr.count(b"\n")) == (1, 1), done.stderr
    assert re.search(rb"C/part-0000\d(-\d)?: .*cdxmill verify", done.stderr), done.stderr
    assert content(cluster) == before


@pytest.fixture
def held(cluster: Path) -> Iterator[Path]:
    """The cluster, while another run holds it."""
    with subprocess.Popen([sys.executable, "-c", HOLDER, cluster], stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        yield cluster
        holder.kill()


@every_command
def test_the_second_run_is_refused(name: str, held: Path, run_cdxmill: RunCdxmill) -> None:
    before = content(held)
    done = run_cdxmill(*COMMANDS[name])
    assert (done.returncode, done.stdout) == (2, b"")
    assert f"{held}: another run writes to this directory (process ".encode() in done.stderr
    assert content(held) == before


@every_command
@pytest.mark.parametrize("kind", ["file", "link", "directory", "plan"])
def test_what_somebody_has_as_change_stays(
    name: str, kind: str, cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    mine, planted = cluster.parent / "mine", cluster / ".change"
    mine.mkdir()
    (mine / "precious").write_bytes(b"mine")
    if kind == "file":
        planted.write_bytes(b"mine")
    elif kind == "link":
        planted.symlink_to(mine)
    else:
        planted.mkdir()
        (planted / ("plan.json" if kind == "plan" else "precious")).write_bytes(b"mine")
    before, outside = content(cluster), content(mine)
    done = run_cdxmill(*COMMANDS[name])
    assert done.returncode in (2, 3), done.stderr
    assert done.stderr.count(b"\n") == 1, done.stderr
    assert b"move it away" in done.stderr
    assert content(mine) == outside
    assert content(cluster) == before


@every_command
@pytest.mark.parametrize("kept", [".kept.json", "changes.jsonl", "archives.tsv", "exclude.txt"])
def test_a_link_to_a_file_of_somebody_is_not_written_through(
    name: str, kept: str, cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    mine = cluster.parent / "mine"
    mine.write_bytes(b"org,example/\n")
    (cluster / kept).unlink(missing_ok=True)
    (cluster / kept).symlink_to(mine)
    run_cdxmill(*COMMANDS[name])
    assert mine.read_bytes() == b"org,example/\n"
    assert answers(cluster) >= 80


def test_kept_names_of_somebody_are_not_deleted(cluster: Path, run_cdxmill: RunCdxmill) -> None:
    """Only shards and their parts can be named there."""
    (cluster / "notes.txt").write_bytes(b"mine")
    (cluster.parent / "outside").write_bytes(b"mine")
    kept = dict.fromkeys(["notes.txt", "../outside", "cdx-00000.gz"], 1.0)
    (cluster / ".kept.json").write_text(json.dumps(kept))
    before = answers(cluster)
    assert run_cdxmill(*COMMANDS["add"], "--keep-old", "0").returncode == 0
    assert (cluster / "notes.txt").exists()
    assert (cluster.parent / "outside").exists()
    assert answers(cluster) == before + 3


@pytest.mark.parametrize("command", ["zipnum", "publish"])
def test_a_changed_cluster_is_replaced_with_its_kept_shards(
    command: str, cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    assert run_cdxmill(*COMMANDS["add"]).returncode == 0
    assert (cluster / ".kept.json").exists()
    (cluster / "notes.txt").write_bytes(b"mine")
    if command == "publish":
        assert run_cdxmill("zipnum", "-q", "-s", "1", "-o", "other", "a.cdxj").returncode == 0
        done = run_cdxmill("publish", "-q", "--replace", "other", "C")
    else:
        done = run_cdxmill("zipnum", "-q", "-s", "1", "--replace", "-o", "C", "a.cdxj")
    assert done.returncode == 0, done.stderr
    names = {path.name for path in cluster.iterdir()}
    assert {name for name in names if name.startswith(("cdx-", "part-"))} == {"cdx-00000.gz", "part-00000"}
    assert ".kept.json" not in names
    assert ".change" not in names
    assert (cluster / "notes.txt").read_bytes() == b"mine"
    assert answers(cluster) == len(LINES)


def test_a_run_is_refused_while_a_change_that_was_killed_is_half_done(
    cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    """A replacement finishes or takes back the change first, or is refused: it does not lose a file."""
    change = cluster / ".change"
    change.mkdir()
    (change / "plan.json").write_text('{"change": 9}')
    (cluster / "cdx-00001-9.gz").write_bytes(gzip.compress(b"half"))
    before = answers(cluster)
    assert run_cdxmill("compact", "-q", "C").returncode == 0
    assert not change.exists()
    assert not (cluster / "cdx-00001-9.gz").exists()
    assert answers(cluster) == before


def test_a_change_that_was_killed_after_its_switch_is_not_taken_back(
    cluster: Path, run_cdxmill: RunCdxmill
) -> None:
    """Of such a change, the plan alone may be left."""
    (cluster / ".change").mkdir()
    number = json.loads((cluster / "cluster.json").read_bytes())["change"]
    assert list(cluster.glob(f"cdx-*-{number}.gz"))
    (cluster / ".change/plan.json").write_text(json.dumps({"change": number}))
    before = answers(cluster)
    assert run_cdxmill("add", "-q", "C", "--cdx", "old.cdxj").returncode == 0
    assert not (cluster / ".change").exists()
    assert answers(cluster) == before + len([line for line in LINES[::9] if ")/10" in line])
