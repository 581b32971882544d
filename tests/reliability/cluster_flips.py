"""Damaged clusters: `verify` finds the damage, and lookups give the right lines or an error.

usage: python tests/reliability/cluster_flips.py [--seed N] [--count N]

One file of a small cluster is changed. Exit status 1 and a line for each finding:

MISSED      `verify` with cluster.json finds nothing
HIDDEN      `verify` without cluster.json finds nothing, and a lookup of all URLs gives other lines
WRONG       a lookup of all URLs gives other lines without an error
CRASH       another exception than CdxmillError

Not a finding, but counted: a lookup is wrong, because a changed key of the index hides a block. `verify` finds it.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path

from cdxmill.api.searches import Cluster
from cdxmill.commands.clusters.verify import verify
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import CdxmillError
from cdxmill.options.clusters import Verifying
from cdxmill.running.failures import Failures

ALL = "*.com"
LINE = b'com,host%03d)/page/%06d 20200101%06d {"url": "http://host%03d.com/page/%06d", "status": "200"}'
MAY_BE_ABSENT = ("cluster.json",)


def damaged(data: bytes, rng: random.Random) -> tuple[str, bytes | None]:
    """A damage in words, and the damaged bytes; None if the file is deleted."""
    at, size = rng.randrange(len(data)), rng.choice((1, 4, 50, 600))
    kind = rng.choice(("flip", "flip", "flip", "cut", "zero", "out", "again", "gone"))
    return f"{kind}@{at}+{size}", {
        "flip": data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :],
        "cut": data[:at],
        "zero": data[:at] + bytes(len(data[at : at + size])) + data[at + size :],
        "out": data[:at] + data[at + size :],
        "again": data[: at + size] + data[at:],
        "gone": None,
    }[kind]


class Rig:
    """A cluster in `folder`, the answers that are right, and the verdicts so far."""

    def __init__(self, directory: Path, seed: int) -> None:
        self.rng = random.Random(seed)
        self.directory, self.seen = directory, Counter[str]()
        lines = [LINE % (n % 7, n, n, n % 7, n) for n in range(300)]
        (directory.parent / "a.cdxj").write_bytes(b"".join(line + b"\n" for line in lines))
        options = ZipnumOptions(shards=2, block_lines=8, quiet=True)
        build_cluster([str(directory.parent / "a.cdxj")], directory, options, Failures(printed=False))
        self.urls = [line.split(b'"')[3].decode() for line in lines]
        self.right: dict[str, list[bytes] | None] = {}

    def lines(self, url: str) -> list[bytes] | None:
        """The lines of a lookup; None if it gives an error."""
        try:
            with Cluster(self.directory) as cluster:
                return [line for lines in cluster.lines(url) for line in lines]
        except CdxmillError:
            return None

    def finds_nothing(self) -> bool:
        """Whether `verify` finds no error."""
        failures = Failures(printed=False)
        try:
            verify(Verifying(self.directory, processes=1), failures)
        except CdxmillError:
            return False
        return not failures.count

    def try_one(self) -> None:
        """Damage a file, ask, and mend it."""
        path = self.rng.choice(sorted(path for path in self.directory.glob("[!.]*") if path.is_file()))
        data = path.read_bytes()
        what, changed = damaged(data, self.rng)
        questions = (ALL, "host001.com/page/*", self.rng.choice(self.urls))
        for url in questions:
            self.right.setdefault(url, self.lines(url))
        if (
            changed is not None and changed.replace(b"//", b"/") == data
        ):  # a location with // is the same file
            return
        try:
            if changed is None:
                path.unlink()
            else:
                path.write_bytes(changed)
            for verdict in self._verdicts(path.name, what, questions):
                self.seen[verdict] += 1
                if verdict.isupper():
                    print(f"{verdict} {path.name} {what}")
        finally:
            path.write_bytes(data)

    def _verdicts(self, name: str, what: str, questions: tuple[str, ...]) -> list[str]:
        manifest = self.directory / "cluster.json"
        verdicts = ["trials"]
        try:
            wrong = [self.lines(url) not in (None, self.right[url]) for url in questions]
            hides_block = name == "cluster.idx" and what.startswith("flip")
            if wrong[0] and not hides_block:
                verdicts.append("WRONG")
            elif any(wrong):
                verdicts.append("a lookup is wrong")
            if self.finds_nothing() and not (what.startswith("gone") and name in MAY_BE_ABSENT):
                verdicts.append("MISSED")
            if wrong[0] and manifest.exists():
                kept = manifest.read_bytes()
                manifest.unlink()
                if self.finds_nothing():
                    verdicts.append("HIDDEN")
                manifest.write_bytes(kept)
            elif name != manifest.name:
                kept = manifest.read_bytes()
                manifest.unlink()
                found = self.lines(ALL)
                if found not in (None, self.right[ALL]):
                    verdicts.append("wrong without cluster.json")
                    if self.finds_nothing():
                        verdicts.append("HIDDEN")
                manifest.write_bytes(kept)
        except Exception as error:
            print(repr(error))
            verdicts.append("CRASH")
        return verdicts


def run(seed: int, count: int, work: Path) -> Counter[str]:
    """Damage `count` files; findings are printed. The number of each verdict."""
    os.environ["CDXMILL_CACHE"] = "off"
    rig = Rig(work / "C", seed)
    for _ in range(count):
        rig.try_one()
    return rig.seen


def findings(seen: Counter[str]) -> int:
    """The number of verdicts that are findings."""
    return sum(number for verdict, number in seen.items() if verdict.isupper())


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=3_000)
    options = parser.parse_args()
    work = Path(tempfile.mkdtemp(prefix="cluster-flips-"))
    try:
        seen = run(options.seed, options.count, work)
    finally:
        shutil.rmtree(work)
    print(dict(seen))
    return 1 if findings(seen) else 0


if __name__ == "__main__":
    sys.exit(main())
