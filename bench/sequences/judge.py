"""What must hold after each command of a sequence, whatever came before."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress

from bench.sequences.lab import KILLED, Files, call
from bench.sequences.steps import Run
from bench.sequences.trial import Captures, Ran, Trial, is_hidden

RULES = {
    "STATUS": "exit status 0, 1 or 2, or a kill, and no internal error",
    "TOUCHED": "with status 2, no file changes",
    "REFUSED": "no status 2 with --replace, unless the same command is refused where no output is yet",
    "THEIRS": "no file of the user changes, unless --replace is given, and it has the name of an output",
    "CODE": "the exit status is that of the same command where no output is yet",
    "STALE": "the outputs are those of the same command where no output is yet, or are kept by a rule of --update",
    "GONE": "no output of an earlier run vanishes without --replace or --update",
    "EXTRA": "no temporary file and no lock stays, and no output that no run has",
    "LIST": "failures.tsv has the failures of this run, and no others of its archives",
    "AGAIN": "the same command once more has the same exit status and the same files",
    "PARTIAL": "after a kill, each file is as it was before or as it is after the command",
    "BESIDE": "the index and the table of offsets beside a recompressed archive are of this archive",
    "COPIED": "a copy has the captures of all copies to it, each once",
}
"""What a finding begins with, and what holds otherwise."""
_LISTS = ("failures.tsv", "copy-failures.tsv")
_FILENAME = re.compile(rb'"filename": "[^"]*"')


def wrong(ran: Ran, trial: Trial) -> Iterator[str]:
    """What is wrong after a command."""
    yield from _wrong_end(ran, trial)
    yield from _wrong_files_of_the_user(ran, trial)
    if ran.run.kind == "recompress":
        yield from _wrong_beside(ran, trial)
    if ran.done.status == KILLED:
        yield from _wrong_after_kill(ran)
    if ran.done.status not in (0, 1):
        return
    yield from _wrong_again(ran, trial)
    yield from _wrong_names(ran, trial)
    if ran.run.rules.adds:
        yield from _wrong_copy(ran, trial)
    elif not ran.run.reads_its_output:
        yield from _wrong_content(ran, trial)
        yield from _wrong_lists(ran)


def _wrong_end(ran: Ran, trial: Trial) -> Iterator[str]:
    run, done, fresh, past = ran.run, ran.done, ran.fresh, trial.past
    said = done.stderr.strip()[-300:]
    if done.status not in (0, 1, 2, *([KILLED] * bool(run.kill))) or "internal error" in done.stderr:
        yield f"STATUS {done.status}: {said}"
    touched = {name for name in ran.touched - past.left.keys() if not name.endswith("/") or is_hidden(name)}
    if done.status == 2 and touched:
        yield f"TOUCHED {sorted(touched)}"
    if run.reads_its_output or done.status == KILLED:
        return
    is_free = (run.has("--replace") and not past.changed) or not past.own
    is_free = is_free and "is a directory" not in said and "that no export wrote" not in said
    if done.status == 2 and fresh.status != 2 and is_free:
        yield f"REFUSED {said}"
    elif run.kind == "publish" and "0 copied" in said:
        return  # the shards are there, so those of the source, which may be changed, are not read
    elif done.status not in (2, fresh.status) and not run.rules.adds:
        yield f"CODE {done.status}, and {fresh.status} where no output is yet: {said}"


def _wrong_files_of_the_user(ran: Ran, trial: Trial) -> Iterator[str]:
    run, past = ran.run, trial.past
    may_replace = run.has("--replace") or run.kind == "publish"  # a cluster's own files, which were changed
    spoiled = {
        name for name in ran.touched - past.own if ran.before.get(name)
    }  # an empty file has nothing to lose
    spoiled -= past.expected if may_replace else set()
    if spoiled:
        yield f"THEIRS {sorted(spoiled)}"


def _wrong_beside(ran: Ran, trial: Trial) -> Iterator[str]:
    past = trial.past
    own = ran.touched | {name for name in past.own if past.makers.get(name) == "recompress"} - past.changed
    files = {name: data for name, data in ran.done.files.items() if name in own}
    for name in ran.touched & ran.made & files.keys():
        table = files.get(f"{name}.offsets.gz")
        index = files.get(re.sub(r"(\.w?arc)?\.gz$", "", name) + ".cdx.gz")
        if not name.endswith((".zst", ".gz")) or name.endswith((".offsets.gz", ".cdx.gz")):
            continue
        if table is None and index is None:
            continue
        lines = _FILENAME.sub(b"", call(["index", "-q", "-o", "-", name])[1])
        if index is not None and _FILENAME.sub(b"", gzip.decompress(index)) != lines:
            yield f"BESIDE the index of {name}"
        places = set(re.findall(rb'"length": "(\d+)", "offset": "(\d+)"', lines))
        if any(isinstance(step, Run) and step.has("--group") for step in past.steps):
            continue  # nothing has the places of records that were compressed together
        if table is not None and not places <= _new_places(gzip.decompress(table)):
            yield f"BESIDE the table of {name}"


def _new_places(table: bytes) -> set[tuple[bytes, bytes]]:
    """The lengths and offsets in a new archive."""
    rows = [row.split(b"\t") for row in table.splitlines()[1:]]
    return {(row[-1], row[-2]) for row in rows}


def _wrong_after_kill(ran: Ran) -> Iterator[str]:
    if ran.run.rules.adds or ran.run.reads_its_output:
        return
    for name, data in ran.done.files.items():
        is_beside = ran.run.kind == "recompress" and name.endswith((".cdx.gz", ".offsets.gz"))
        if is_hidden(name) or _last(name) in ("", *_LISTS) or is_beside:
            continue
        if data not in (ran.before.get(name), ran.fresh.files.get(name)):
            yield f"PARTIAL {name}"


def _last(name: str) -> str:
    return name.rpartition("/")[2]


def _wrong_again(ran: Ran, trial: Trial) -> Iterator[str]:
    last, steps = trial.past.last, trial.past.steps
    if last is None or steps[-2] != ran.run or last.status not in (0, 1):
        return
    if ran.done.status != last.status or _visible(ran.before) != _visible(ran.done.files):
        yield f"AGAIN {ran.done.status}, before {last.status}: {sorted(ran.touched)}"


def _visible(files: Files) -> Files:
    return {name: data for name, data in files.items() if not is_hidden(name)}


def _wrong_names(ran: Ran, trial: Trial) -> Iterator[str]:
    run, past, before, after = ran.run, trial.past, ran.before, ran.done.files
    known = past.expected | past.changed
    this = (run.kind, run.output) if run.rules.keeps else None
    known |= {name for name, command in past.left.items() if command != this or name.endswith(".again")}
    known |= {
        name for name in past.left if "metadata.yaml" in name
    }  # above the output, in a directory of the user
    extra = {name for name in (past.own | (after.keys() - before.keys())) & after.keys() if name not in known}
    said = {
        name
        for name in extra
        if any(f"{part}:" in ran.done.stderr for part in (name, name.rpartition("/")[0]))
        or (name.endswith("/") and name in ran.done.stderr)
    }
    extra = {name for name in extra if not name.endswith("/") or is_hidden(name)}
    extra -= {
        name for name in extra if name.endswith("_cdxmill/.outputs.tsv")
    }  # beside the record of an export
    if (extra := extra - said) and (ran.done.status == 0 or ran.made):
        yield f"EXTRA {sorted(extra)}"
    gone = {name for name in before.keys() - after.keys() if not is_hidden(name)}
    gone = {name for name in gone if _last(name) not in _LISTS and not name.endswith("/")}
    if gone and not run.has("--replace", "--update"):
        yield f"GONE {sorted(gone)}"


def _wrong_content(ran: Ran, trial: Trial) -> Iterator[str]:
    run, done, fresh = ran.run, ran.done.files, ran.fresh.files
    names = {name for name in ran.made if not is_hidden(name) and _last(name) not in ("", *_LISTS)}
    stale = {name for name in names if done.get(name) != fresh[name]}
    stale -= {name for name in stale if _last(name) == "metadata.yaml"}  # an existing title stays
    if run.rules.is_cluster:
        stale -= {name for name in stale if _is_kept_in_cluster(ran, name, trial)}
    stale -= {name for name in stale if _is_kept_and_said(ran, name, trial)}
    if stale:
        yield f"STALE {sorted(stale)}"


def _is_kept_in_cluster(ran: Ran, name: str, trial: Trial) -> bool:
    """Whether the user changed a file in a way that only `verify` finds: its size is the same, or it is in CLUSTER/cdx."""
    old = ran.before.get(name, b"")
    is_kept = name in trial.past.changed and ran.done.files.get(name, b"") == old
    return is_kept and ("/cdx/" in name or len(old) == len(ran.fresh.files[name]))


def _is_kept_and_said(ran: Ran, name: str, trial: Trial) -> bool:
    """Whether a note says that a file is kept: the user changed it, or --update keeps it.

    `reindex` says it of a table of offsets. --update keeps what the user changed without a note.
    """
    is_changed, is_update = name in trial.past.changed, ran.run.has("--update")
    name = name.removesuffix(".proof.json")  # of what is kept, none is written
    is_kept = name in ran.before and ran.done.files.get(name) == ran.before[name]
    if not is_kept or not (is_changed or is_update):
        return False
    is_unseen = bool(ran.run.kill)  # its messages are not read, also if it ended before it was to be killed
    is_said = is_unseen or "note: kept" in ran.done.stderr or name.endswith(".offsets.gz")
    return is_said or (is_changed and is_update)


def _wrong_lists(ran: Ran) -> Iterator[str]:
    if ran.run.rules.is_cluster:
        return
    for name in {name for name in {*ran.done.files, *ran.fresh.files} if _last(name) == _LISTS[0]}:
        every = (ran.done.files, ran.fresh.files, ran.before)
        rows, wanted, old = ({*files.get(name, b"").splitlines()} for files in every)
        archives = {row.split(b"\t")[0] for row in wanted}
        others = rows - wanted
        if wanted - rows or others - old or archives & {row.split(b"\t")[0] for row in others}:
            yield f"LIST {name}: {sorted(rows)}, not {sorted(wanted)}"


def _wrong_copy(ran: Ran, trial: Trial) -> Iterator[str]:
    root, past = ran.run.root, trial.past
    copied = past.copied[root] = captures_in(root, ran.fresh.files) | past.copied.get(root, Counter())
    found = captures_in(root, ran.done.files)
    if found != copied and not past.changed:
        yield f"COPIED without {sorted((copied - found).elements())}, with {sorted((found - copied).elements())}"


def captures_in(root: str, files: Files) -> Captures:
    """The captures of the index files of a copy in the directory `root`: key, time, URL, digest."""
    found: Captures = Counter()
    for name, data in files.items():
        if name.startswith(f"{root}/{root}-") and name.endswith(".cdxj"):
            for line in data.splitlines():
                with suppress(ValueError, KeyError, TypeError):  # the user has changed it
                    key, time, rest = line.decode().split(" ", 2)
                    fields = json.loads(rest)
                    found[key, time, fields["url"], fields.get("digest", "")] += 1
    return found
