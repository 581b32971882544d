"""Archives to a ZipNum cluster: `cdxmill build`, and a shell pipeline of common tools.

cdxj-indexer -s, two at a time  ->  LC_ALL=C sort -m -u  ->  the classic job, mrjob -r local
"""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
JOB = Path(__file__).with_name("classic_zipnum_job.py")
SHARDS, PROCESSES = 6, 2


def contenders(directory: Path, files: list[Path]) -> list[tuple[str, list[str]]]:
    """Name and command of each tool, cdxmill first. Each writes a cluster of `files` to the empty `directory`."""
    return [
        ("cdxmill build", cdxmill_build(directory, files)),
        ("cdxj-indexer, sort -m, classic job", shell_pipeline(directory, files)),
    ]


def cdxmill_build(directory: Path, files: list[Path]) -> list[str]:
    options = ["-s", str(SHARDS), "-p", str(PROCESSES), "-o", str(directory / "c")]
    return [str(BIN / "cdxmill"), "build", *options, *map(str, files)]


def shell_pipeline(directory: Path, files: list[Path]) -> list[str]:
    """One index per file, then `sort -m` into one file, which mrjob divides between its two mappers."""
    out = shlex.quote(str(directory))
    indexer = f'{shlex.quote(str(BIN / "cdxj-indexer"))} -s -o {out}/"${{1##*/}}".cdxj "$1"'
    job = [str(JOB), "-r", "local", "--num-cores", str(PROCESSES), "--no-conf", "--no-bootstrap-mrjob", "-q"]
    steps = [
        f"printf '%s\\0' {shlex.join(map(str, files))} | xargs -0 -n 1 -P {PROCESSES} sh -c {shlex.quote(indexer)} sh",
        f"LC_ALL=C sort -m -u -o {out}/all.cdxj {out}/*.warc.gz.cdxj",
        f"{shlex.join([sys.executable, *job])} --cluster {out} --output-dir {out}/parts {out}/all.cdxj",
    ]
    return ["bash", "-c", " && ".join(steps)]
