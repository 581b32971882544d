"""Every command that writes, with a small world to run it in: the calls of the tests that all such commands must pass."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from bench.warc_corpus import WarcRecipe, make_records
from cdxmill.cli.main import main

# What each command does in a copy of the directory `start`. The output is always below `w`.
CALLS = {
    "index": "index -o w/o 0.warc.gz bad.warc.gz",
    "index, one file": "index -o w/o.cdxj.gz 0.warc.gz",
    "index, again": "index --replace -o w/indexed 0.warc.gz",
    "recompress": "recompress --to gz --index --offsets --level 1 -o w/o 0.warc.gz bad.warc.gz",
    "recompress, again": "recompress --to gz --replace --level 9 -o w/packed 0.warc.gz",
    "reindex": "reindex -o w/o --offsets w/packed/0.warc.gz.offsets.gz 0.cdxj",
    "scan": "scan -o w/o --where status=200 0.warc.gz bad.warc.gz",
    "scan, records": "scan --to warc.gz -o w/o --where status=200 0.warc.gz",
    "scan, a sample": "scan --sample 3 -o w/o --where status=200 0.warc.gz bad.warc.gz",
    "count": "count tags -o w/o.tsv 0.warc.gz",
    "cat": "cat 0.warc.gz --table w/t.tsv",
    "sample": "sample -s 2 -o w/s.txt 0.cdxj",
    "split-points": "split-points -s 2 --from-cluster w/c -o w/s.txt",
    "zipnum": "zipnum -s 2 -o w/o 0.cdxj",
    "zipnum, another": "zipnum -s 2 --replace -o w/c 0.cdxj",
    "build": "build -s 2 -o w/o 0.warc.gz bad.warc.gz",
    "add": "add --keep-old 0 w/c 1.warc.gz",
    "remove": "remove --keep-old 0 --from 1990 w/c",
    "compact": "compact --keep-old 0 w/changed",
    "merge": "merge -s 1 -o w/o c w/other",
    "publish": "publish c w/o",
    "publish, here": "publish w/c w/c --title x",
    "publish, another": "publish --replace c w/other",
    "copy": "copy -o w/o --archives . c *.com",
    "copy, related": "copy --related --originals -o w/o --archives . c *.com",
    "copy, with failures": "copy -o w/o --archives mine c *.com",
    "export": "export c --to parquet -o w/o",
    "export, lines": "export c --to csv -o w/o.csv",
    "export, wacz": "export c *.com --to wacz -p 1 --archives . -o w/o.wacz",
    "train-dictionary": "train-dictionary --size 8 --level 1 -o w/d 0.warc.gz",
    "prefix-index": "prefix-index build -o w/t 0.cdxj",
    "report": "report --html w/r.html --json w/r.json c",
    "serve": "serve --config-only w/p --archives . c",
}
NO_PROCESSES = {"cat", "export", "serve", "split-points", "prefix-index"}
READ_ONLY = {"lookup", "get", "crawls", "verify", "cdx-server"}


def make_world(world: Path) -> None:
    """The directory that each call starts in: inputs, outputs of other runs in `w`, and `mine/file` of somebody else."""
    (world / "w").mkdir(parents=True)
    (world / "mine").mkdir()
    (world / "mine/file").write_text("precious")
    members = list(make_records(WarcRecipe(1, 12, 2000), "0.warc.gz"))
    (world / "0.warc.gz").write_bytes(b"".join(members))
    (world / "bad.warc.gz").write_bytes(b"".join(members[:3])[:-20])
    (world / "1.warc.gz").write_bytes(b"".join(make_records(WarcRecipe(2, 3, 500), "1.warc.gz")))
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(world)
        for call in (
            "index -o 0.cdxj 0.warc.gz",
            "index -o w/indexed 0.warc.gz",
            "recompress --to gz --index --offsets --level 1 -o w/packed 0.warc.gz",
            "zipnum -s 1 -o c 0.cdxj",
            "zipnum -s 1 -o w/c 0.cdxj",
            "zipnum -s 2 -o w/other 0.cdxj",
            "zipnum -s 1 -o w/changed 0.cdxj",
            "add --keep-old 0 w/changed 1.warc.gz",
        ):
            assert run(call) == 0


def run(call: str | list[str]) -> int:
    """Run a call in this process, with one worker. The exit status."""
    words = call.split() if isinstance(call, str) else list(call)
    words += [] if words[0] in ("cat", "serve", "split-points") else ["-q"]
    return main(words if words[0] in NO_PROCESSES else [*words, "-p", "1"])


def delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def files_in(name: str) -> dict[str, bytes]:
    """The files below a directory, with their bytes."""
    return {
        path.relative_to(name).as_posix(): path.read_bytes()
        for path in Path(name).rglob("*")
        if path.is_file()
    }
