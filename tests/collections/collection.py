"""A cluster that is changed by drawn commands, and the set of lines that it should have."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from random import Random
from typing import Any

from cdxmill.api.searches import Cluster
from cdxmill.cluster.split_files import SPLITS, stored_splits
from cdxmill.cluster.write import kept_shards, read_manifest
from cdxmill.commands.clusters.publish import publish
from cdxmill.commands.clusters.verify import verify
from cdxmill.commands.clusters.zipnum import ClusterSummary, build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.commands.collections.add import add
from cdxmill.commands.collections.compact import compact
from cdxmill.commands.collections.merge import merge
from cdxmill.commands.collections.remove import remove
from cdxmill.formats.clusters.zipnum import MANIFEST, files_of_shard, key_of
from cdxmill.options.clusters import Publishing, Verifying
from cdxmill.options.collections import Adding, Compacting, Merging, Removing
from cdxmill.running.failures import Failures
from cdxmill.storage.location import Location, locate

HOSTS = (b"com,example", b"com,example,shop", b"com,example2", b"net,a", b"org,example", b"org,example,b,c")
ARCHIVES = tuple(f"{name}.warc.gz" for name in "abcde")
TIMES = ("2013", "20140101000000", "20140615120000", "20141231235959", "2015", "2016")
BESIDE = {
    "cluster.idx",
    "cluster.summary",
    "cluster.loc",
    MANIFEST,
    "splits.txt",
    "splits.seq",
    ".finished.json",
}
NUMLINES = 4
Files = dict[str, bytes]


def text_of(lines: set[bytes] | list[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in sorted(lines))


def first_of(time: str) -> str:
    """The first moment that begins with these digits."""
    return time + "20140101000000"[len(time) :]


def draw_line(rng: Random) -> bytes:
    """A made-up line. Offsets tell lines of equal keys apart; many of them have the same key and timestamp."""
    host, page = rng.choice(HOSTS), rng.choice([0, 0, 0, rng.randrange(9), rng.randrange(99)])
    time = first_of(rng.choice(TIMES)) if rng.random() < 0.8 else f"2014{rng.randrange(10**10):010d}"
    name, offset = rng.choice(ARCHIVES), rng.randrange(9) if rng.random() < 0.3 else rng.randrange(10**6)
    block = {
        "url": "http://x/",
        "digest": f"D{offset}",
        "length": "7",
        "offset": str(offset),
        "filename": name,
    }
    return b"%b)/%b %b %b" % (
        host,
        str(page).encode() if page else b"",
        time.encode(),
        json.dumps(block).encode(),
    )


def draw_lines(rng: Random, real: list[bytes], most: int) -> set[bytes]:
    made = {draw_line(rng) for _ in range(rng.randrange(most + 1))}
    start = rng.randrange(len(real))
    return made | set(real[start : start + rng.choice([0, 0, 5, 40])])


def host_url(host: bytes) -> str:
    return ".".join(reversed(host.decode().split(",")))


class Asked:
    """What a drawn `remove` is given, and which lines are meant by it."""

    def __init__(self, rng: Random, scratch: Path, lines: list[bytes]) -> None:
        self.options: dict[str, Any] = {}
        self._tests: list[Callable[[bytes], bool]] = []
        self._conditions: list[Callable[[bytes], bool]] = []
        self.queries = [self._query(rng) for _ in range(rng.choice([0, 1, 1, 1, 3]))]
        if rng.random() < 0.3:
            self._keys(rng, scratch, lines)
        if rng.random() < 0.3:
            self._archives(rng, scratch)
        if rng.random() < 0.3 or not (self.queries or self.options):
            self._times(rng)
        if self.queries and not self.options and rng.random() < 0.2:
            self.options["exclude"] = True

    def wants(self, line: bytes) -> bool:
        """Whether a line is to be removed."""
        in_range = any(test(line) for test in self._tests) or not self._tests
        return in_range and all(test(line) for test in self._conditions)

    def _query(self, rng: Random) -> str:
        host = rng.choice(HOSTS)
        kind, page = rng.choice(["exact", "prefix", "host", "domain"]), rng.randrange(9)
        found: tuple[str, Callable[[bytes], bool]] = {
            "exact": (f"{host_url(host)}/{page}", lambda line: line.startswith(b"%b)/%d " % (host, page))),
            "prefix": (f"{host_url(host)}/{page}*", lambda line: line.startswith(b"%b)/%d" % (host, page))),
            "host": (f"{host_url(host)}/*", lambda line: line.startswith(host + b")/")),
            "domain": (f"*.{host_url(host)}", lambda line: line.startswith((host + b")/", host + b","))),
        }[kind]
        self._tests.append(found[1])
        return found[0]

    def _keys(self, rng: Random, scratch: Path, lines: list[bytes]) -> None:
        some = rng.sample(lines, min(len(lines), rng.choice([1, 5, 50])))
        wanted = {b" ".join(line.split(b" ")[: rng.choice([1, 2])]) for line in some} | {b"zz,absent)/"}
        listed = [*wanted, *list(wanted)[:2]]
        rng.shuffle(listed)
        (scratch / "keys").write_bytes(b"\n".join(listed) + rng.choice([b"", b"\n", b"\n\n"]))
        self.options["keys"] = scratch / "keys"
        self._tests.append(lambda line: bool({line.split(b" ")[0], b" ".join(line.split(b" ")[:2])} & wanted))

    def _archives(self, rng: Random, scratch: Path) -> None:
        names = rng.sample(ARCHIVES, rng.choice([1, 2]))
        (scratch / "archives").write_text("".join(f"{name}\n" for name in names))
        self.options["archives"] = scratch / "archives"
        self._conditions.append(lambda line: json.loads(line.split(b" ", 2)[2])["filename"] in names)

    def _times(self, rng: Random) -> None:
        first, last = sorted(rng.sample(TIMES, 2))
        low, high = first_of(first), last + "20151231235959999"[len(last) :]
        if rng.random() < 0.5:
            self.options["from_ts"] = first
            self._conditions.append(lambda line: line.split(b" ")[1].decode() >= low)
        if rng.random() < 0.5 or "from_ts" not in self.options:
            self.options["to"] = last
            self._conditions.append(lambda line: line.split(b" ")[1].decode() <= high)


class Collection:
    """The cluster at `place`, and a directory for the inputs of commands. `check` raises AssertionError."""

    def __init__(
        self, place: Location, scratch: Path, real: list[bytes], rng: Random, processes: int = 1
    ) -> None:
        self.place, self.scratch, self.real, self.rng = place, scratch, real, rng
        self.processes = processes
        self.location: str | None = None
        self.lines: set[bytes] = set()
        self.excluded: list[Callable[[bytes], bool]] = []
        self.done: list[str] = []
        self._made = 0

    def build(self, points: list[bytes]) -> None:
        """Build the cluster of some lines. With few of them, shards are empty."""
        self.lines = draw_lines(self.rng, self.real, 60) | {draw_line(self.rng)}
        self.points = points
        if self.place.is_remote:
            built = self.scratch / "C"
            self.zipnum(locate(str(built)), self.lines)
            publish(Publishing(built, self.place_text, processes=1))
        else:
            self.zipnum(self.place, self.lines)
        with (self.place / "notes.txt").write_atomic() as file:
            file.write(b"mine")

    def zipnum(self, place: Location, lines: set[bytes]) -> ClusterSummary:
        """Build a cluster of lines with the split points."""
        source = self.scratch / "all.cdxj"
        source.write_bytes(text_of(lines) or b"\n")
        options = ZipnumOptions(
            shards=len(self.points) + 1,
            points=tuple(self.points),
            block_lines=NUMLINES,
            location=self.location,
            quiet=True,
        )
        return build_cluster([str(source)], str(place), options, Failures(printed=False))

    def step(self) -> None:
        """Run a drawn command, and check what it leaves."""
        name = self.rng.choice(["add"] * 4 + ["remove"] * 3 + ["compact", "merge"])
        self.done.append(name)
        getattr(self, name)()
        self.check()

    def add(self) -> None:
        """Add drawn lines, some of which may be there."""
        new = draw_lines(self.rng, self.real, self.rng.choice([0, 1, 5, 60, 200]))
        there = set(self.rng.sample(sorted(self.lines), min(len(self.lines), self.rng.choice([0, 0, 3]))))
        files, given = [], set[bytes]()
        for number in range(self.rng.choice([1, 1, 3])):
            path = self.scratch / f"new-{number}.cdxj{self.rng.choice(['', '.gz'])}"
            some = sorted(line for line in new | there if self.rng.random() < 0.7)
            if self.rng.random() < 0.5:
                self.rng.shuffle(some)
            given.update(some)
            data = b"".join(line + b"\n" for line in some)
            path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
            files.append(path)
        failures = Failures(printed=False)
        keep, mode = self.rng.choice([0, 60]), self.rng.choice(["overlay", "rewrite"])
        asked = Adding(
            self.place_text,
            files,
            cdx=True,
            again=True,
            mode=mode,
            keep_old=keep,
            processes=self.processes,
        )
        summary = add(asked, failures)
        assert not failures.count, failures.items
        meant = {line for line in given if not any(test(line) for test in self.excluded)}
        assert len(meant - self.lines) <= summary.counts.added <= len(meant)
        self.lines |= meant
        if self.rng.random() < 0.2:  # nothing that is there is added again, in either way
            before = (self.place / MANIFEST).read_bytes()
            asked.mode = self.rng.choice(["overlay", "rewrite"])
            assert add(asked, failures).counts.added == 0
            assert (self.place / MANIFEST).read_bytes() == before

    @property
    def place_text(self) -> str:
        """The path or URL of the cluster."""
        return str(self.place)

    def remove(self) -> None:
        """Remove drawn lines; before it, a dry run prints them and changes nothing."""
        asked = Asked(self.rng, self.scratch, sorted(self.lines))
        gone = set(filter(asked.wants, self.lines))
        common: dict[str, Any] = {"keep_old": 0, "processes": self.processes}
        options: dict[str, Any] = {name: value for name, value in asked.options.items() if name != "exclude"}
        if self.rng.random() < 0.3:
            before, printed = self.files(), list[bytes]()
            dry = Removing(self.place_text, asked.queries, **options, dry_run=True, **common)
            summary = remove(dry, Failures(printed=False), printed.append)
            assert sorted(b"".join(printed).splitlines()) == sorted(gone), (asked.queries, asked.options)
            assert b"".join(printed) == text_of(gone)
            assert summary.counts.removed == len(gone)
            assert self.files() == before
        real = Removing(self.place_text, asked.queries, **asked.options, **common)
        summary = remove(real, Failures(printed=False))
        assert summary.counts.removed == len(gone), (asked.queries, asked.options)
        self.lines -= gone
        if asked.options.get("exclude"):
            self.excluded.append(asked.wants)
        if gone:
            assert not kept_shards(self.place)

    def compact(self) -> None:
        """Compact the cluster: it has the shards of a new one."""
        compact(Compacting(self.place_text, processes=self.processes), Failures(printed=False))
        self.is_as_built(self.place)

    def is_as_built(self, place: Location) -> None:
        """Fail unless the shards have the bytes of those that `zipnum` makes of the lines."""
        self._made += 1
        built = locate(str(self.scratch / f"built-{self._made}"))
        self.zipnum(built, self.lines)
        assert not read_manifest(place / MANIFEST).overlays
        pairs = zip(
            read_manifest(place / MANIFEST).shards, read_manifest(built / MANIFEST).shards, strict=True
        )
        for one, other in pairs:
            assert one._replace(name="") == other._replace(name="")
            assert (place / one.name).read_bytes() == (built / other.name).read_bytes()

    def merge(self) -> None:
        """Merge the cluster with another one to a new cluster, which has the place of it from now on."""
        self._made += 1
        other, new = (locate(str(self.scratch / f"{name}-{self._made}")) for name in ("other", "merged"))
        more = draw_lines(self.rng, self.real, 30) | {draw_line(self.rng)}
        points = self.points
        if self.rng.random() < 0.5:
            self.points = sorted({key_of(line) for line in self.rng.sample(sorted(more), min(3, len(more)))})
        self.zipnum(other, more)
        asked = Merging([self.place_text, str(other)], output=str(new), numlines=NUMLINES, processes=1)
        merge(asked, Failures(printed=False))
        self.points = stored_splits(new / SPLITS[0]) or []
        self.check_merged(new, more)
        self.points = points
        add_all = Adding(self.place_text, [new.absolute()], cdx=True, again=True, processes=self.processes)
        add(add_all, Failures(printed=False))
        self.lines |= {line for line in more if not any(test(line) for test in self.excluded)}

    def check_merged(self, new: Location, more: set[bytes]) -> None:
        """Fail unless `new` has the lines of this cluster and `more`, and after `compact` the shards of a new one."""
        verified = verify(Verifying(str(new), processes=1), Failures(printed=False))
        assert verified.lines == len(self.lines | more)
        compact(Compacting(str(new), keep_old=0, processes=1), Failures(printed=False))
        kept, self.lines = self.lines, self.lines | more
        self.is_as_built(new)
        self.lines = kept

    def files(self) -> Files:
        """The files of the cluster."""
        found = self.place.entries()
        return {name: (self.place / name).read_bytes() for name, one in found.items() if not one.is_directory}

    def check(self) -> None:
        """Fail unless the cluster has the lines, without a fault, and nothing else is in its directory."""
        manifest = read_manifest(self.place / MANIFEST)
        texts = [gzip.decompress((self.place / shard.name).read_bytes()) for shard in manifest.files]
        parts = [text.splitlines() for text in texts]
        assert set(chain.from_iterable(parts)) == self.lines
        assert all(lines == sorted(set(lines)) for lines in parts)
        assert b"".join(texts[: len(manifest.shards)]) == text_of(
            list(chain.from_iterable(parts[: len(manifest.shards)]))
        )
        self.ask()
        listed = [*(shard.name for shard in manifest.files), *kept_shards(self.place)]
        allowed = {
            *chain.from_iterable(map(files_of_shard, listed)),
            *BESIDE,
            "notes.txt",
            "metadata.yaml",
            "changes.jsonl",
            "exclude.txt",
            ".kept.json",
        }
        assert self.place.entries().keys() - allowed == set()
        failures = Failures(printed=False)
        verified = verify(Verifying(self.place_text, processes=1), failures)
        assert (failures.items, verified.faults, verified.lines) == ([], 0, sum(map(len, parts)))

    def ask(self) -> None:
        """Fail unless questions are answered from shards and overlays as from one cluster."""
        wanted = sorted(self.lines)
        with Cluster(self.place_text) as opened:
            assert [line for lines in opened.lines("*") for line in lines] == wanted
            assert [line for lines in opened.lines("*", sort="reverse") for line in lines] == wanted[::-1]
            host = self.rng.choice(HOSTS)
            for query, low, high in (
                (f"{host_url(host)}/*", host + b")/", host + b")0"),
                (f"{host_url(host)}/3", host + b")/3 ", host + b")/3!"),
                (f"*.{host_url(host)}", host + b")", host + b"-"),
            ):
                found = [line for lines in opened.lines(query) for line in lines]
                inside = [line for line in wanted if low <= line < high]
                if query.startswith("*."):
                    inside = [line for line in inside if line.startswith((host + b")/", host + b","))]
                assert found == inside, query
                assert opened.count(query) == len(found)
