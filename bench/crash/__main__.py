"""The Nth operation of a command on files fails, or the command is killed there. What is left, and what a rerun makes of it.

    python -m bench.crash ARCHIVES WORK [--count N] [--seed N] [--only SCENARIO,...] [--kills]

ARCHIVES has pywb's sample archives. For each scenario of scenarios.py, N points are drawn from all operations and faults, with
--kills from the kills alone. A kill at 200 moments of each command that changes a collection:

    python -m bench.crash ... --kills --count 200 --only add,add-archives,remove,compact,merge

What is reported:

    EXIT     exit status 0 with other outputs than a run without faults, or a status other than 0, 1 and 3
    MESSAGE  no line on stderr, a traceback or an internal error
    PARTIAL  a file that is neither the new nor the old one; a cluster.json beside files of another cluster
    RERUN    the same command again has another exit status or other files
    LEFT     temporary files after the rerun
    HANG     more than a minute
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.crash.runs import READS, WRITES, CrashBench, Done
from bench.crash.scenarios import Scenario, all_scenarios

KILLS = ("kill", "killafter", "shortkill", "group")
_WRITE_FAULTS = (*KILLS, "short", "ENOSPC", "ENOSPC+", "EIO", "EIO+", "EDQUOT+", "EACCES")
_READ_FAULTS = ("EIO", "EIO", "ESTALE", "short")
_TOLD = ("Input/output error", "Stale", "No space", "Permission", "quota", "cannot be", "changed while")


class Point(NamedTuple):
    """A fault, and the operation at which it happens. + after an error: later writes fail, too."""

    kinds: str
    fault: str
    number: int

    def settings(self) -> dict[str, str]:
        """The settings of faultshim.c."""
        found = {"FAULT_KINDS": self.kinds, "FAULT_N": str(self.number), "FAULT_MODE": self.fault.rstrip("+")}
        if self.fault == "group":
            found |= {"FAULT_MODE": "kill", "FAULT_GROUP": "1"}
        return found | ({"FAULT_STICKY": "1"} if self.fault.endswith("+") else {})

    def __str__(self) -> str:
        return f"{self.fault} at {'write' if self.kinds == WRITES else 'read'} {self.number}"


class Wanted(NamedTuple):
    """A run without faults."""

    done: Done
    files: dict[str, bytes]


def shown(tree: dict[str, bytes]) -> dict[str, bytes]:
    """The files that are not hidden. Rows of a table may be in any order."""
    files = {name: data for name, data in tree.items() if not any(p.startswith(".") for p in name.split("/"))}
    return {
        name: b"".join(sorted(data.splitlines(keepends=True))) if name.endswith(".tsv") else data
        for name, data in files.items()
    }


def without_fault(bench: CrashBench, scenario: Scenario) -> Wanted:
    """Run a scenario as it should be."""
    bench.reset(scenario.prepare)
    return Wanted(bench.run(scenario.command), shown(bench.tree()))


def all_points(bench: CrashBench, scenario: Scenario) -> list[Point]:
    """All faults at all operations of a scenario."""
    found = []
    for kinds, faults in ((WRITES, _WRITE_FAULTS), (READS, _READ_FAULTS)):
        bench.reset(scenario.prepare)
        count = bench.run(scenario.command, FAULT_KINDS=kinds, FAULT_N="0").operations
        found += [Point(kinds, fault, number + 1) for fault in faults for number in range(count)]
    return found


def findings(bench: CrashBench, scenario: Scenario, point: Point, wanted: Wanted) -> Iterator[str]:
    """What is wrong after a fault."""
    old = shown(bench.reset(scenario.prepare))
    done = bench.run(scenario.command, **point.settings())
    if not done.fired:
        return
    left = shown(bench.tree())
    where = f"{scenario.name} {point} [{done.operation}] status {done.status}"
    last = done.stderr.strip()[-300:]
    for what in (
        *_wrong_end(scenario, point, done, left, wanted),
        *(_mixed if scenario.is_change else _wrong_files)(left, wanted.files, old, done.status),
    ):
        yield f"{what} {where}: {last}"
    for command in scenario.reruns or [scenario.command]:
        if done.status == 1 and command[0] == "copy":
            continue  # a capture that could not be read is copied to a new file
        is_built_without = done.status == 1 and command[0] in (
            "build",
            "zipnum",
        )  # an input could not be read
        again = bench.run([*command, "--replace"] if is_built_without else command)
        files = shown(bench.tree())
        is_same = files == wanted.files and (not scenario.has_stdout or again.stdout == wanted.done.stdout)
        if again.status != wanted.done.status or not is_same:
            others = sorted(
                name for name in {*files, *wanted.files} if files.get(name) != wanted.files.get(name)
            )
            yield (
                f"RERUN {where}: status {again.status}, not {wanted.done.status}; other files {others[:5]}:"
                f" {again.stderr.strip()[-200:]}"
            )
    # these write two files of a few lines beside others, without a lock
    has_lock = scenario.command[0] not in ("sample", "split-points")
    endings = (".tmp", ".lock", ".work")
    names = [name for name in bench.temporary() if name.endswith(endings) or ".scratch-" in name]
    if has_lock and names:
        yield f"LEFT {where}: {names[:3]}"


def _wrong_end(
    scenario: Scenario, point: Point, done: Done, left: dict[str, bytes], wanted: Wanted
) -> Iterator[str]:
    if done.status == -999:
        yield "HANG"
        return
    if "Traceback" in done.stderr or "internal error" in done.stderr:
        yield "MESSAGE"
    is_same = left == wanted.files and (not scenario.has_stdout or done.stdout == wanted.done.stdout)
    is_told = any(text in done.stderr for text in _TOLD)
    if point.fault in KILLS:
        if done.status == 0 and not is_same:
            yield "EXIT"
    elif (
        done.status not in (0, 1, 3)
        or (done.status == wanted.done.status and not is_same and (done.status == 0 or not is_told))
        or (done.status == 0 and wanted.done.status == 1)
    ):
        yield "EXIT"
    elif done.status in (1, 3) and not done.stderr.strip():
        yield "MESSAGE"


def _wrong_files(
    left: dict[str, bytes], new: dict[str, bytes], old: dict[str, bytes], status: int
) -> Iterator[str]:
    if status == 1:  # an input could not be read: files without its lines
        return
    for name, data in left.items():
        if not name.endswith(".tsv") and data not in (new.get(name), old.get(name)):
            yield f"PARTIAL {name} ({len(data)} bytes)"
    for name in left:
        directory, _, last = name.rpartition("/")
        if last == "cluster.json" and new.get(name) != old.get(name):
            which = new if left[name] == new.get(name) else old
            missing = [
                file
                for file, data in which.items()
                if file.startswith(f"{directory}/") and "/cdx/" not in file and left.get(file) != data
            ]
            if missing:
                yield f"PARTIAL {name} beside another {missing[0]}"


def _mixed(
    left: dict[str, bytes], new: dict[str, bytes], old: dict[str, bytes], status: int
) -> Iterator[str]:
    """Readers of the index find the shards of the old cluster, or those of the new one."""
    if status == 1:  # an input could not be read: a cluster without its lines
        return
    (index,) = (name for name in left if name.endswith("/cluster.idx"))
    if left[index] not in (new[index], old[index]):
        yield f"PARTIAL {index}"
        return
    which = new if left[index] == new[index] else old
    directory = index.removesuffix("cluster.idx")
    located = {row.split(b"\t")[0] for row in left[f"{directory}cluster.loc"].splitlines()}
    for shard in {row.split(b"\t")[1] for row in left[index].splitlines()}:
        name = f"{directory}{shard.decode()}"
        if shard not in located or left.get(name) != which[name]:
            yield f"PARTIAL {name}"
    for overlay in json.loads(left[f"{directory}cluster.json"]).get("overlays", ()):
        for ending in (".gz", ".idx", ".keys"):
            name = f"{directory}{overlay['name'].removesuffix('.gz')}{ending}"
            if name not in left or left[name] != new.get(name, old.get(name)):
                yield f"PARTIAL {name}"


def main() -> int:
    """Run the rig; status 1 if anything was found."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("archives", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--count", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="")
    parser.add_argument("--kills", action="store_true")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    rng = random.Random(options.seed)
    told: Counter[str] = Counter()
    tried = 0
    with CrashBench(options.archives.resolve(), options.work.resolve()) as bench:
        for scenario in all_scenarios(bench):
            if options.only and scenario.name not in options.only.split(","):
                continue
            wanted = without_fault(bench, scenario)
            points = [one for one in all_points(bench, scenario) if one.fault in KILLS or not options.kills]
            drawn = rng.sample(points, min(options.count, len(points)))
            for point in drawn:
                for text in findings(bench, scenario, point, wanted):
                    told[text.split()[0]] += 1
                    print(text, flush=True)
            tried += len(drawn)
            print(f"{scenario.name}: {len(drawn)} of {len(points)} points", flush=True)
    print(f"{tried} points; findings: {dict(told)}")
    return 1 if told else 0


if __name__ == "__main__":
    sys.exit(main())
