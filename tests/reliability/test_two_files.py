"""Outputs of two files: a run is killed before each of its steps that names or deletes a file, and readers see no mix.

A rerun ends with the bytes of a run without a fault. docs/design.md has the rule.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bench.warc_corpus import WarcRecipe, make_records
from cdxmill.cli.main import main
from cdxmill.errors import InputError

from ..material.trees import found_in

STEPS = ("replace", "rename", "unlink", "rmdir")
MOST = 60
"""More steps than a command has."""
KILLED = 99

Files = dict[str, bytes]


class Pair(NamedTuple):
    """A command that writes several files, and what replaces them; which state readers of these files see."""

    name: str
    old: Sequence[str]
    new: Sequence[str]
    read: Callable[[Files, Files, Files], str]


def by_bytes(*names: str) -> Callable[[Files, Files, Files], str]:
    """A reader of files that belong together: each is of the same run, or missing."""

    def read(found: Files, old: Files, new: Files) -> str:
        seen = {name: found[name] for name in names if name in found and old[name] != new[name]}
        states = {
            "old" if seen[name] == old[name] else "new" if seen[name] == new[name] else "mix" for name in seen
        }
        return "mix" if len(states) > 1 else next(iter(states), "none")

    return read


def by_checksum(found: Files, old: Files, new: Files) -> str:
    """A reader of a dictionary: statistics with another checksum are not of it."""
    assert found["d"] in (old["d"], new["d"])
    about = json.loads(found.get("d.json", b"{}"))
    is_of_it = about.get("sha256") == hashlib.sha256(found["d"]).hexdigest()
    state = "old" if found["d"] == old["d"] else "new"
    assert not is_of_it or found["d.json"] == {"old": old, "new": new}[state]["d.json"]
    return state


def by_list(found: Files, old: Files, new: Files) -> str:
    """A reader of a copy: each archive has its index and its list, and those of earlier runs stay."""
    archives = [name for name in found if name.endswith(".warc.gz")]
    beside = {f"{name.removesuffix('.warc.gz')}{ending}" for name in archives for ending in (".cdxj", ".tsv")}
    assert beside <= found.keys()
    is_whole = all(found[name] == new[name] for name in (*archives, *beside)) and old.keys() <= found.keys()
    return "mix" if not is_whole else "new" if found.keys() == new.keys() else "old"


def by_search(found: Files, old: Files, new: Files) -> str:
    """A reader of a prefix B-tree, which is one file: its answer, or an error."""
    try:
        lines = found_in("out/t", "*.com")
    except InputError:
        return "error"
    (archive,) = {line.rpartition(b'"w')[2] for line in lines}
    return "old" if archive.startswith(b"1") else "new"


PAIRS = [
    Pair(
        "recompress",
        ["recompress", "--to", "gz", "--index", "--offsets", "--level", "1", "-o", "out", "0.warc.gz"],
        ["recompress", "--to", "gz", "--replace", "--level", "9", "-o", "out", "0.warc.gz"],
        by_bytes("0.warc.gz", "0.cdx.gz", "0.warc.gz.offsets.gz"),
    ),
    Pair(
        "copy",
        ["copy", "--archives", ".", "--limit", "5", "-o", "out", "all.cdxj", "*"],
        ["copy", "--archives", ".", "--size", "64K", "-o", "out", "all.cdxj", "*"],
        by_list,
    ),
    Pair(
        "sample",
        ["sample", "-s", "5", "--seed", "1", "-o", "out/s.txt", "0.cdxj"],
        ["sample", "-s", "3", "--replace", "-o", "out/s.txt", "0.cdxj"],
        by_bytes("s.txt", "s.seq"),
    ),
    Pair(
        "dictionary",
        ["train-dictionary", "--size", "8", "--level", "1", "-o", "out/d", "0.warc.gz"],
        ["train-dictionary", "--size", "4", "--level", "1", "--replace", "-o", "out/d", "0.warc.gz"],
        by_checksum,
    ),
    Pair(
        "tree",
        ["prefix-index", "build", "-o", "out/t", "1.cdxj"],
        ["prefix-index", "build", "--replace", "-o", "out/t", "2.cdxj"],
        by_search,
    ),
]


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an archive and CDXJ files. Two of these have the same captures in other archives."""
    directory = tmp_path_factory.mktemp("inputs")
    (directory / "0.warc.gz").write_bytes(b"".join(make_records(WarcRecipe(1, 30, 2000), "0.warc.gz")))
    assert main(["index", "-q", "-o", str(directory / "all.cdxj"), str(directory / "0.warc.gz")]) == 0
    keys = [f"com,a{number:03d})/" for number in range(100)]
    (directory / "0.cdxj").write_text("".join(f"{key} 2020 {{}}\n" for key in keys))
    for name in "12":
        fields = f'"status": "200", "length": "9", "offset": "1", "filename": "w{name}.gz"'
        (directory / f"{name}.cdxj").write_text(
            "".join(f"{key} 20200101000000 {{{fields}}}\n" for key in keys)
        )
    return directory


def files() -> Files:
    """The files of the output that a reader may open, gzip files by their content: their heads may have a time."""
    found = {path.name: path.read_bytes() for path in Path("out").iterdir() if not path.name.startswith(".")}
    return {name: gzip.decompress(data) if name.endswith("cdx.gz") else data for name, data in found.items()}


def run(call: Sequence[str], step: int) -> bool:
    """Run a command in a process that ends before this step. Whether it had as many."""
    process = os.fork()
    if not process:
        left = step

        def counted(do: Callable[..., Any]) -> Callable[..., Any]:
            def operation(*words: Any, **options: Any) -> Any:
                nonlocal left
                if "out" in Path(os.fsdecode(words[0])).parts:
                    left -= 1
                    if left < 0:
                        os._exit(KILLED)
                return do(*words, **options)

            return operation

        for name in STEPS:
            setattr(os, name, counted(getattr(os, name)))
        os._exit(main([*call, "-q"]))
    status = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
    assert status in (0, KILLED)
    return status == KILLED


@pytest.mark.parametrize("pair", PAIRS, ids=[pair.name for pair in PAIRS])
def test_a_kill_at_any_step_leaves_the_old_or_the_new_state_or_an_error(
    pair: Pair, inputs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(inputs, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1600000000")
    states = []
    for call in (pair.old, pair.new):
        run(call, MOST)
        states.append(files())
        shutil.copytree("out", f"state{len(states)}")
    old, new = states
    seen = []
    for step in range(MOST):
        shutil.rmtree("out")
        shutil.copytree("state1", "out")
        is_killed = run(pair.new, step)
        seen.append(pair.read(files(), old, new))
        assert seen[-1] != "mix", step
        run(pair.new, MOST)
        assert files() == new, step
        if not is_killed:
            break
    assert (seen[0], seen[-1], len(seen) < MOST) == ("old", "new", True)
