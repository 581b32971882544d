"""Prove that two versions of cdxmill write the same bytes.

    .venv/bin/python -m bench.same_bytes CDXMILL OUTDIR [--compare OTHER_MANIFEST]

Runs the commands of same_bytes_steps.txt with the program CDXMILL, in the new or empty directory OUTDIR, over copies of all
samples. OUTDIR/manifest.tsv gets a row (label, sha256, size) for each output file, stdout, stderr and exit status. stdout
and the normalised stderr are kept in OUTDIR/log, the commands in OUTDIR/commands.tsv.

--compare prints the rows that differ: outputs first, then exit statuses, then stderr, each with a short diff. The exit
status is 1 if an output or an exit status differs; a difference in stderr alone is only printed.

What has to differ between two runs of one program, and what is done about it:

- Absolute paths. The samples are copied once to a directory of fixed name for temporary files, with a fixed modification time,
  because `build` and .outputs.tsv hash the paths of archives. The path of OUTDIR is replaced in all outputs.
- Modification times of outputs that are inputs of later commands: set to a fixed time before each command.
- With -p 2, messages come in the order in which processes end. So the lines of stderr are sorted if a command has -p 2, and
  notes with an offset are dropped there: only the first ten of a kind are printed. Commands with -p 1 keep both. The rows of
  .outputs.tsv, failures.tsv and copy-failures.tsv and the lists in .finished.json are always sorted.
- Hashes of absolute paths in OUTDIR, in .finished.json and .outputs.tsv of HASHED_PATHS: masked there. UNCOMPARED has file
  names with such hashes; the shards of that cluster have the same lines.
- scan --to warc.gz and warc.zst of earlier versions writes the time, whatever SOURCE_DATE_EPOCH is. In TIMED, time and
  id of that record are masked (Zstandard: the record is left out), and the sizes and checksums in .outputs.tsv.
- `publish` of a damaged cluster with -p 2 leaves the shards that were copied before it stopped: done with -p 1.
- Times and rates in summaries and `scan --explain`, progress, and names of temporary files: masked in stderr.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import hashlib
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

STEPS = Path(__file__).resolve().with_name("same_bytes_steps.txt")
INPUTS = Path(tempfile.gettempdir()) / "cdxmill-same-bytes"
_SAMPLES = os.environ.get("CDXMILL_SAMPLES") or STEPS.parents[1] / "../shared/samples"
SOURCES = {"samples": Path(_SAMPLES).resolve(), "pywb": Path(sys.prefix) / "sample_archive/warcs"}
INPUT_TIME, OUTPUT_TIME = 1_600_000_000, 1_700_000_000  # seconds since 1970
HASHED_PATHS = ("zip", "zst-cluster/", "moved")
TIMED = ("scan-warc/", "scan-zst/", "scan-captures-stdin/")
UNCOMPARED = ("zst-cluster/cdx/", "manifest.tsv", "commands.tsv", "log/", "tmp/")
HASH = re.compile(rb'(?<=[\t"-])(?:[0-9a-f]{64}|[0-9a-f]{16})(?=[\t".])')
SEARCHED = (
    "small",
    "cluster11",
    "pywb.cdxj",
    "pywb.cdxj.gz",
    "pywb9.cdx",
    "unsorted.cdxj",
    "pywb.tree",
    "damaged",
)
ARCHIVE = re.compile(r"\.w?arc(\.(gz|zst))?$|\.(wat|wet)(\.gz)?$", re.I)
MASKS = (
    (re.compile(rb"done in [^\n]*"), b"done in TIME"),
    (re.compile(rb"[\d.]+ microseconds, "), b"TIME microseconds, "),
    (re.compile(rb"OUTDIR/tmp/[^\s:;,]+"), b"OUTDIR/tmp/NAME"),
    (
        re.compile(rb"^[a-z][a-z -]+: (\d+/\d+(,[^\n]*)?|at work: [^\n]*)\n", re.M),
        b"",
    ),  # progress, every 30 seconds
)


class Step(NamedTuple):
    """A command. `stdin` is a file in OUTDIR, or empty."""

    label: str
    arguments: list[str]
    stdin: str = ""


Row = tuple[str, str, int]  # of the manifest: label, sha256 (or exit status), size


def stage_inputs() -> None:
    """Copy all samples to a fixed place, with fixed modification times."""
    if INPUTS.exists():
        return
    new = INPUTS.with_name(f".in-{os.getpid()}")
    for name, source in SOURCES.items():
        shutil.copytree(source, new / name, copy_function=shutil.copyfile)
    for path in new.rglob("*"):
        os.utime(path, (INPUT_TIME, INPUT_TIME))
    new.rename(INPUTS)


def read_steps(section: str) -> Iterator[Step]:
    """The steps of a section: `LABEL ARGUMENT... [< FILE]`. `IN/` is the copy of the samples."""
    text = STEPS.read_text().split(f"[{section}]\n")[1].split("\n[")[0]
    for line in text.splitlines():
        if line and not line.startswith("#"):
            command, _, stdin = line.partition(" < ")
            label, *arguments = shlex.split(command)
            yield Step(label, [re.sub(r"^IN/", f"{INPUTS}/", one) for one in arguments], stdin.strip())


def write_lists(out: Path) -> None:
    """Manifests of inputs that do not get the same output name, and small inputs."""
    sets: list[dict[str, str]] = []
    for path in sorted(str(one.relative_to(INPUTS)) for one in INPUTS.rglob("*") if one.is_file()):
        stem = re.sub(r"\.(gz|zst)$|\.w?arc(\.(gz|zst))?$", "", path)
        free = next((one for one in sets if stem not in one), None)
        if free is None:
            sets.append(free := {})
        free[stem] = path
    lists = {f"set{number}.txt": list(one.values()) for number, one in enumerate(sets[:3])}
    lists |= {f"archives{name[3:]}": list(filter(ARCHIVE.search, paths)) for name, paths in lists.items()}
    lists["few.txt"] = lists["archives0.txt"][::4]
    files = {name: "".join(f"{path}\n" for path in paths) for name, paths in lists.items()}
    files |= re.findall(r"^\[file (\S+)\]\n(.*?\n)(?=\n\[|\Z)", STEPS.read_text(), re.M | re.S)
    for name in files:
        (out / name).write_text(files[name])


def derive_inputs(out: Path) -> None:
    """Inputs for the second section, made from outputs of the first one."""
    six = ""
    for line in (out / "all.cdxj").read_text(errors="surrogateescape").splitlines():
        key, timestamp, text = line.split(" ", 2)
        fields = json.loads(text)
        values = [fields.get(name, "-") for name in ("url", "length", "offset", "filename")]
        if not any(" " in value for value in values):
            six += " ".join([key, timestamp, *values]) + "\n"
    (out / "six.cdx").write_text(six, errors="surrogateescape")
    lines = (out / "pywb.cdxj").read_bytes().splitlines(keepends=True)
    (out / "unsorted.cdxj").write_bytes(b"".join(reversed(lines)))
    (out / "some.cdxj").write_bytes(b"".join(lines[::3]))
    for name in "damaged", "damaged-idx", "bare":
        shutil.copytree(out / "small", out / name)
    (out / "bare/cluster.json").unlink()
    for changed, at in (out / "damaged/cdx-00001.gz", 700), (out / "damaged-idx/cluster.idx", 0):
        data = changed.read_bytes()
        changed.write_bytes(data[:at] + b"x" + data[at + 1 :])


def matrix(out: Path) -> Iterator[Step]:
    """Many lookups: options by sources; and a command for each sample."""
    for source in SEARCHED:
        for label, arguments, stdin in read_steps("lookup"):
            yield Step(f"lookup/{source}/{label}", ["lookup", source, *arguments], stdin)
    for label, arguments, stdin in read_steps("search"):
        yield Step(f"search/{label}", ["prefix-index", "search", "pywb.tree", *arguments], stdin)
    names = sorted(str(path.relative_to(INPUTS)) for path in INPUTS.rglob("*") if path.is_file())
    for number, name in enumerate(names):
        if ARCHIVE.search(name) and number % 2:
            yield Step(
                f"table/{number:03}", ["cat", "-q", str(INPUTS / name), "--table", f"tables/{number:03}.tsv"]
            )
        elif re.search(r"\.(cdxj?|cdx\.gz|cdxj\.gz|idx)$", name):
            options = (["*.com"], ["*.org", "--count"], ["http://example.com/", "--output", "json"])
            yield Step(f"lookup-sample/{name}", ["lookup", str(INPUTS / name), *options[number % 3]])
        if name.endswith(".idx"):
            yield Step(f"verify-sample/{name}", ["verify", "-q", "-p", "1", str(INPUTS / name)])
    for number, line in enumerate((out / "all.cdxj").read_text(errors="surrogateescape").splitlines()[::120]):
        fields = json.loads(line.split(" ", 2)[2])
        where = [str(INPUTS / fields["filename"]), "--offset", fields["offset"]]
        parts = ["--headers"], ["--payload"], ["--payload", "--decode"], ["--length", fields["length"]]
        yield Step(f"get-offset/{number}", ["get", *where, *parts[number % 4]])
        where[2] = str(int(fields["offset"]) + number % 3)
        yield Step(
            f"cat-offset/{number}", ["cat", *where, *(["--length", fields["length"]] if number % 2 else [])]
        )


def all_steps(out: Path) -> Iterator[Step]:
    """All commands, in order. Inputs of later ones are made of outputs of earlier ones."""
    yield from read_steps("first")
    derive_inputs(out)
    yield from read_steps("second")
    yield from matrix(out)


def settle(paths: list[str], out: Path) -> None:
    """Give files of OUTDIR that a command names, or that are below a directory that it names, the same modification time."""
    for named in {
        out / part for path in paths for part in path.split(",") if part and not part.startswith("/")
    }:
        for path in [named, *named.rglob("*")] if named.is_dir() else [named]:
            if path.is_file():
                os.utime(path, (OUTPUT_TIME, OUTPUT_TIME))


def run_step(step: Step, program: str, out: Path) -> Iterator[Row]:
    """Run a command and keep what it prints."""
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(out / "tmp"), "TMPDIR": str(out / "tmp"), "LANG": "C.UTF-8", "TZ": "UTC",
        "COLUMNS": "100", "SOURCE_DATE_EPOCH": str(OUTPUT_TIME), "CDXMILL_CACHE": "off", "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    stdin = (out / step.stdin).read_bytes() if step.stdin else b""
    command = ["timeout", "-k", "5", "300", program, *step.arguments]  # exit status 124: it took too long
    done = subprocess.run(command, input=stdin, capture_output=True, cwd=out, env=environment)
    for kind, data in ("stdout", done.stdout), ("stderr", done.stderr):
        data = data.replace(str(out).encode(), b"OUTDIR").replace(program.encode(), b"cdxmill")
        for pattern, replacement in MASKS if kind == "stderr" else ():
            data = pattern.sub(replacement, data)
        if kind == "stderr" and "-p 2" in shlex.join(step.arguments):
            data = b"".join(
                sorted(re.sub(rb"[^\n]*@\d+: note: [^\n]*\n", b"", data).splitlines(keepends=True))
            )
        path = out / "log" / f"{step.label}.{kind}"
        path.parent.mkdir(parents=True, exist_ok=True)
        if data:
            path.write_bytes(data)
            yield f"{kind}:{step.label}", hashlib.sha256(data).hexdigest(), len(data)
    yield f"exit:{step.label}", str(done.returncode), 0


def output_bytes(path: Path, out: Path) -> bytes:
    """The bytes of an output, without what has to differ."""
    data, name = path.read_bytes().replace(str(out).encode(), b"OUTDIR"), str(path.relative_to(out))
    if path.name in {".finished.json", ".outputs.tsv"} and name.startswith(HASHED_PATHS):
        data = HASH.sub(b"HASH", data)
    if path.name == ".finished.json":
        content = json.loads(data)
        content |= {key: sorted(content[key], key=str) for key in ("failures", "files")}
        data = json.dumps(content).encode()
    if path.name in {".outputs.tsv", "failures.tsv", "copy-failures.tsv"}:
        data = b"".join(sorted(data.splitlines(keepends=True)))
    if name.startswith(TIMED) and path.name == ".outputs.tsv":
        data = re.sub(rb"\t\d+-[0-9a-f]+\n", b"\tSIZE\n", data)
    elif name.startswith(TIMED) and path.suffix == ".gz":
        first = zlib.decompressobj(31)
        data = (
            re.sub(rb"(WARC-(?:Record-ID|Date)): [^\r]*", rb"\1: TIME", first.decompress(data))
            + first.unused_data
        )
    elif name.startswith(TIMED) and path.suffix == ".zst":
        data = b"".join(data.partition(data[:4])[2].partition(data[:4])[1:])
    return data


def hash_outputs(out: Path) -> Iterator[Row]:
    """A row for each file below OUTDIR."""
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if path.is_file() and not name.startswith(UNCOMPARED):
            data = output_bytes(path, out)
            yield f"out:{name}", hashlib.sha256(data).hexdigest(), len(data)


def run(program: str, out: Path) -> None:
    """Run all commands and write the manifest."""
    stage_inputs()
    for directory in "tmp", "log", "tables":
        (out / directory).mkdir(parents=True, exist_ok=True)
    write_lists(out)
    rows, commands = list[Row](), list[str]()
    for step in all_steps(out):
        started = time.monotonic()
        settle(step.arguments, out)
        rows += run_step(step, program, out)
        commands.append(f"{step.label}\t{time.monotonic() - started:.2f}\t{shlex.join(step.arguments)}\n")
    rows += hash_outputs(out)
    (out / "commands.tsv").write_text("".join(commands), errors="surrogateescape")
    manifest = "".join("\t".join(map(str, row)) + "\n" for row in rows)
    (out / "manifest.tsv").write_text(manifest, errors="surrogateescape")


def text_of(label: str, directory: Path) -> list[str]:
    """The lines of an output or of a stream, as text."""
    kind, name = label.split(":", 1)
    path = directory / name if kind == "out" else directory / "log" / f"{name}.{kind}"
    data = output_bytes(path, directory) if path.is_file() else b""
    with suppress(OSError, EOFError, zlib.error):
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    return data.decode("utf-8", "backslashreplace").splitlines() if b"\0" not in data else []


def read_table(path: Path) -> dict[str, list[str]]:
    """The rows of a table by their first field."""
    rows = (line.split("\t") for line in path.read_text(errors="surrogateescape").split("\n") if line)
    return {row[0]: row[1:] for row in rows}


def compare(mine: Path, other: Path) -> int:
    """Print the rows that differ. 1 if an output or an exit status does."""
    old, new, commands = read_table(other), read_table(mine), read_table(mine.parent / "commands.tsv")
    different = [label for label in {**old, **new} if old.get(label) != new.get(label)]
    order = {"out": 0, "stdout": 1, "exit": 2, "stderr": 3}
    for label in sorted(different, key=lambda one: order[one.split(":")[0]]):
        before, after = (" ".join(rows.get(label, ["absent"])) for rows in (old, new))
        print(f"{label}: {before} -> {after}", *commands.get(label.split(":", 1)[1], ["", ""])[1:])
        texts = text_of(label, other.parent), text_of(label, mine.parent)
        lines = list(difflib.unified_diff(*texts, n=0, lineterm=""))[2:]
        for line in lines[:10] + [f"... {len(lines) - 10} more lines"] * (len(lines) > 10):
            print(f"    {line[:300]}")
    serious = sum(not label.startswith("stderr:") for label in different)
    print(
        f"{len(new)} rows, {serious} outputs or exit statuses differ, {len(different) - serious} stderr differ"
    )
    return min(serious, 1)


def main() -> int:
    """Run and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("cdxmill", type=Path, help="program to run")
    parser.add_argument("outdir", type=Path, help="new or empty directory; working directory of all commands")
    parser.add_argument(
        "--compare", type=Path, metavar="OTHER_MANIFEST", help="manifest of another run, in its OUTDIR"
    )
    given = parser.parse_args()
    out = given.outdir.resolve()
    if out.exists() and any(out.iterdir()):
        parser.error(f"{out} is not empty")
    run(str(given.cdxmill.absolute()), out)
    return compare(out / "manifest.tsv", given.compare.resolve()) if given.compare else 0


if __name__ == "__main__":
    sys.exit(main())
