"""The findings of `verify` for a cluster, and the cluster that the tests damage."""

from __future__ import annotations

from pathlib import Path

from cdxmill.commands.clusters.verify import verify
from cdxmill.commands.clusters.zipnum import build_cluster
from cdxmill.commands.clusters.zipnum_options import ZipnumOptions
from cdxmill.errors import CdxmillError
from cdxmill.formats.clusters.compressor import Compressor
from cdxmill.options.clusters import Verifying
from cdxmill.running.failures import Failures

from ..material.cdx_files import many_lines, write_gzip

SHARDS, NUMLINES = 4, 40


class Told(Failures):
    """Collects reported lines in a list."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def _print(self, text: str) -> None:
        self.lines.append(text)


def found(cluster: Path | str, **options: object) -> list[str]:
    """The lines that `verify` reports for a cluster."""
    failures = Told()
    try:
        verify(Verifying(cluster, **options), failures)  # type: ignore[arg-type]
    except CdxmillError as error:
        return [str(error)]
    assert bool(failures.count) == bool(failures.lines)
    return failures.lines


def shard_files(cluster: Path) -> list[Path]:
    return sorted(cluster.glob("cdx-*.gz"))


def swap(one: Path, other: Path) -> None:
    first, second = one.read_bytes(), other.read_bytes()
    one.write_bytes(second)
    other.write_bytes(first)


def make(directory: Path) -> Path:
    """Make inputs/ and the cluster C of their lines. Its cluster.loc has relative paths, so that it can be copied."""
    (directory / "inputs").mkdir()
    lines = many_lines(900)
    paths = [write_gzip(directory / f"inputs/{number}.cdxj.gz", lines[number::3], 2) for number in range(3)]
    build_cluster(
        list(map(str, paths)),
        directory / "C",
        ZipnumOptions(
            shards=SHARDS, block_lines=NUMLINES, compressor=Compressor("zlib-ng", 5, 10), quiet=True
        ),
        Failures(),
    )
    located = b"".join(
        b"%b\t%b\n" % (path.name.encode(), path.name.encode()) for path in shard_files(directory / "C")
    )
    (directory / "C/cluster.loc").write_bytes(located)
    (directory / "C/.finished.json").unlink()  # not a file of the cluster
    return directory
