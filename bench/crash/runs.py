"""Commands under faults of the file system: what they are given, how they are run, what they leave."""

from __future__ import annotations

import gzip
import os
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Self

from bench.command_server import CommandServer

SHIM = Path(__file__).with_name("faultshim.c")
WRITES = "open,write,close,rename,unlink,mkdir,rmdir,fsync,truncate"
READS = "read,stat,list"
TIMEOUT = 60
_SMALL = ("example.warc.gz", "post-test.warc.gz", "example.arc", "httpbin-resource.warc.gz")


class Done(NamedTuple):
    """How a run ended. `fired` is the number of faults; `operation` is the first of them."""

    status: int
    stderr: str
    stdout: bytes
    operations: int = 0
    fired: int = 0
    operation: str = ""


def build_shim(directory: Path) -> Path:
    """Compile the library that makes system calls fail."""
    library = directory / "faultshim.so"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, SHIM, "-ldl"], check=True)
    return library


class CrashBench:
    """The directories of all runs: `base` has inputs, `out` has outputs, `tmp` is TMPDIR."""

    def __init__(self, archives: Path, work: Path) -> None:
        self._work = work
        self.base, self.out, self._tmp = work / "base", work / "out", work / "tmp"
        for directory in (self.base, self._tmp):
            directory.mkdir(parents=True)
        self._shim = {"LD_PRELOAD": str(build_shim(work))}
        self._server = CommandServer(**self._shim)
        self._counter, self._log = work / "counter", work / "log"
        self._make_inputs(archives)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._server.__exit__(*error)

    def _make_inputs(self, archives: Path) -> None:
        for name in _SMALL:
            (self.base / "in").mkdir(exist_ok=True)
            shutil.copy(archives / name, self.base / "in" / name)
        whole = (archives / "example2.warc.gz").read_bytes()
        (self.base / "in/cut.warc.gz").write_bytes(whole[: len(whole) * 2 // 3])
        (self.base / "odd").mkdir()
        records = gzip.decompress((archives / "iana.warc.gz").read_bytes())
        (self.base / "odd/one-piece.warc.gz").write_bytes(gzip.compress(records))
        sources = [str(archives / name) for name in ("iana.warc.gz", "dupes.warc.gz", *_SMALL)]
        cdx = self.base / "cdx"
        self.plain("index", "-q", "-p", "1", "-o", str(cdx), *sources)
        text = gzip.decompress(next(cdx.rglob("iana.*gz")).read_bytes())
        (cdx / "unsorted.cdx").write_bytes(b"".join(reversed(text.splitlines(keepends=True))))
        damaged = next(cdx.rglob("dupes.*gz"))
        damaged.with_name("damaged.cdx.gz").write_bytes(damaged.read_bytes()[:-20])
        lines = [
            b'com,old)/%05d 20200101000000 {"url": "http://old.com/"}\n' % number for number in range(500)
        ]
        (self.base / "old.cdx").write_bytes(b"".join(lines))
        for name, source, shards in (("cluster", cdx, "3"), ("old-cluster", self.base / "old.cdx", "5")):
            self.plain(
                *("zipnum", "-q", "-p", "1", "-s", shards, "--numlines", "20"),
                *("-o", str(self.base / name), str(source)),
            )
        full = ["-o", str(self.base / "full-blocks"), str(self.base / "old.cdx")]
        self.plain("zipnum", "-q", "-p", "1", "-s", "2", *full)
        self.plain("build", "-q", "-p", "1", "-s", "1", "-o", str(self.base / "real"), *sources)
        shutil.copytree(self.base / "real", self.base / "changed")
        self.plain("remove", "-q", str(self.base / "changed"), "--keep-old", "0", "*.archive.org")
        self.plain("remove", "-q", str(self.base / "changed"), "--keep-old", "0", "example.com/*")
        shutil.copytree(self.base / "changed", self.base / "overlay")
        more = ["--cdx", str(cdx), "--mode", "overlay"]
        self.plain("add", "-q", "-p", "1", "--keep-old", "0", str(self.base / "overlay"), *more)
        self.plain("recompress", "-q", "-p", "1", "--offsets", "-o", str(self.base / "moved"), *sources)
        self._make_damaged(archives)

    def _make_damaged(self, archives: Path) -> None:
        """`hurt`: a cluster of an archive of which one record is damaged later. `torn`: one of whose blocks is corrupt."""
        (self.base / "hurt").mkdir()
        archive = self.base / "hurt/iana.warc.gz"
        shutil.copy(archives / "iana.warc.gz", archive)
        self.plain("build", "-q", "-p", "1", "-s", "1", "-o", str(self.base / "hurt/c"), str(archive))
        shutil.copytree(self.base / "cluster", self.base / "torn")
        (self.base / "torn/cluster.loc").unlink()  # it has the shards of the cluster that is whole
        for file in (archive, next((self.base / "torn").glob("cdx-*.gz"))):
            data = bytearray(file.read_bytes())
            middle = len(data) // 2
            data[middle : middle + 16] = bytes(16)
            file.write_bytes(data)

    def plain(self, *arguments: str) -> None:
        """Run a command without a fault."""
        self._server.run(*arguments, cwd=self._work)

    def reset(self, prepare: Callable[[], None]) -> dict[str, bytes]:
        """Empty the directories, and prepare what exists before a command."""
        for directory in (self.out, self._tmp):
            shutil.rmtree(directory, ignore_errors=True)
            directory.mkdir()
        prepare()
        return self.tree()

    def tree(self) -> dict[str, bytes]:
        """The files of the output directory."""
        paths = sorted(path for path in self.out.rglob("*") if path.is_file())
        return {str(path.relative_to(self.out)): path.read_bytes() for path in paths}

    def temporary(self) -> list[str]:
        """The hidden directories and files of the output directory."""
        return sorted(str(path.relative_to(self.out)) for path in self.out.rglob(".*"))

    def run(self, command: list[str], **fault: str) -> Done:
        """Run a command; with settings of faultshim.c, under a fault. -999 is the status of a run that hangs."""
        environment = {**os.environ, "TMPDIR": str(self._tmp), "PYTHONDONTWRITEBYTECODE": "1"}
        environment["SOURCE_DATE_EPOCH"] = "1700000000"
        if fault:
            self._counter.unlink(missing_ok=True)
            self._log.unlink(missing_ok=True)
            roots = f"{self.out}:{self.base}:{self._tmp}"
            environment |= {**self._shim, "FAULT_ROOTS": roots, **fault}
            environment |= {"FAULT_COUNTER": str(self._counter), "FAULT_LOG": str(self._log)}
        ended = self._server.run(*command, cwd=self._work, env=environment, seconds=TIMEOUT)
        if ended.returncode == -signal.SIGALRM:
            return Done(-999, "", b"")
        done = Done(ended.returncode, ended.stderr.decode("utf-8", "replace"), ended.stdout)
        return self._with_counts(done, fault) if fault else done

    def _with_counts(self, done: Done, fault: dict[str, str]) -> Done:
        counts = self._counter.read_bytes() if self._counter.exists() else bytes(16)
        logged = self._log.read_text("utf-8", "replace") if self._log.exists() else ""
        at = [line for line in logged.splitlines() if line.startswith(f"{fault['FAULT_N']} ")]
        operation = at[0].split(" ", 2)[2].replace(str(self._work), "") if at else ""
        operations, fired = (int.from_bytes(counts[start : start + 8], "little") for start in (0, 8))
        return done._replace(operations=operations, fired=fired, operation=operation)
