"""The commands that write, as sequences use them: their inputs, their options, and where they write."""

from __future__ import annotations

from typing import NamedTuple

EXISTING = ("", "", "--replace", "--update")
"""What happens to outputs that exist."""
_REPLACE = ("", "", "--replace")


class Kind(NamedTuple):
    """A command.

    `line` has places for options, inputs and the output. One of each group of `options` is drawn; "" is none. Of all
    commands, those with a larger `weight` are drawn more often.

    `keeps`: a second run finds that all is done, and a run after a kill removes what the kill left. `adds`: it adds to what
    is there. `is_cluster`: a second run compares the names and sizes of files, and not their bytes.
    """

    line: str
    inputs: tuple[str, ...]
    options: tuple[tuple[str, ...], ...]
    outputs: tuple[str, ...]
    weight: int = 4
    keeps: bool = False
    adds: bool = False
    is_cluster: bool = False


_ARCHIVES = (
    *("in", "in", "more in", "in/one.warc.gz", "in/two.warc.gz in/old.arc.gz", "in/one.warc.gz more/one.warc.gz"),
    "out2",
)  # fmt: skip
_LINES = ("cdx", "cdx", "cdx/a.cdxj", "cdx/a.cdxj cdx/b.cdxj.gz", "out2")
_DIRECTORIES = ("out", "out", "out", "out2", "in")
_CLUSTER = (_REPLACE, ("", "", "-s 2"), ("", "", "--numlines 2", "--level 1"))

_PER_ARCHIVE = {
    "index": Kind(
        "index -p 1 {options} -o {output} {inputs}",
        _ARCHIVES,
        (EXISTING, ("", "", "-11", "--minimal", "--records all"), ("", "", "-d .")),
        _DIRECTORIES,
        weight=10,
        keeps=True,
    ),
    "recompress": Kind(
        "recompress -p 1 {options} -o {output} {inputs}",
        _ARCHIVES,
        (
            EXISTING,
            ("", "", "--to gz"),
            ("", "", "--level 1", "--level 9", "--group", "--dictionary dict"),
            ("", "--index"),
            ("", "--offsets"),
        ),
        _DIRECTORIES,
        weight=14,
        keeps=True,
    ),
    "scan": Kind(
        "scan -p 1 {options} -o {output} {inputs}",
        _ARCHIVES,
        (
            EXISTING,
            ("", "--where status=200", "--extract url,mime", "--captures cdx/a.cdxj"),
            ("", "", "--to jsonl.zst", "--to warc.gz"),
        ),
        _DIRECTORIES,
        weight=3,
        keeps=True,
    ),
    "reindex": Kind(
        "reindex -p 1 {options} -o {output} {inputs}",
        _LINES,
        (_REPLACE, ("--offsets moved", "--offsets moved", "--offsets moved/one.warc.zst.offsets.gz")),
        ("out", "out", "cdx", "out2"),
        keeps=True,
    ),
}
_CLUSTERS = {
    "zipnum": Kind(
        "zipnum -p 1 {options} -o {output} {inputs}",
        _LINES,
        _CLUSTER,
        ("out/c", "out", "cl"),
        weight=8,
        keeps=True,
        is_cluster=True,
    ),
    "build": Kind(
        "build -p 1 {options} -o {output} {inputs}",
        (*_ARCHIVES, "in/one.warc.gz in/two.warc.gz"),
        (*_CLUSTER, ("", "", "-11", "-d .")),
        ("out/c", "out", "out", "cl", "in"),
        weight=8,
        keeps=True,
        is_cluster=True,
    ),
    "publish": Kind(
        "publish -p 1 {options} {inputs} {output}",
        ("cl", "cl", "cl2", "out"),
        (_REPLACE, ("", "", "--title T", "--index-only"), ("", "--location /a")),
        ("out/indexes", "out/indexes", "out2", "cl"),
        weight=6,
        keeps=True,
        is_cluster=True,
    ),
}
_ONE_FILE = {
    "index FILE": Kind(
        "index -p 1 {options} -o {output} {inputs}",
        (*_ARCHIVES, "cdx"),
        (_REPLACE, ("", "", "-11", "--minimal"), ("", "-d .")),
        ("out/all.cdxj", "out/all.cdxj.gz", "cdx/a.cdxj"),
    ),
    "split-points": Kind(
        "split-points {options} --from-cluster {inputs} -o {output}",
        ("cl", "cl2", "out"),
        (_REPLACE, ("-s 2", "-s 3")),
        ("out/s.txt",),
        weight=2,
    ),
    "sample": Kind(
        "sample -p 1 {options} -o {output} {inputs}",
        _LINES,
        (_REPLACE, ("-s 2", "-s 3"), ("", "--seed 2")),
        ("out/s.txt", "out/s.txt", "cdx/a.cdxj"),
    ),
    "prefix-index": Kind(
        "prefix-index build {options} -o {output} {inputs}",
        (*_LINES, "cl"),
        (
            _REPLACE,
            ("", "--block-size 4096"),
            ("", "", "--layout classic", "--layout capture", "--layout a:u32,b:u64"),
        ),
        ("out/x.tree", "out/x.tree", "cdx/a.cdxj"),
    ),
    "train-dictionary": Kind(
        "train-dictionary -p 1 {options} -o {output} {inputs}",
        ("spare/dupes.warc.gz spare/c.warc.gz", "spare", "in"),
        (_REPLACE, ("", "--seed 2", "--level 1")),
        ("out/d", "out/d", "in/one.warc.gz"),
        weight=2,
    ),
    "count": Kind(
        "count servers -p 1 {options} -o {output} {inputs}",
        _ARCHIVES,
        (_REPLACE,),
        ("out/t.tsv", "out/t.tsv.gz", "in/one.warc.gz"),
        weight=2,
    ),
    "cat": Kind(
        "cat {options} --table {output} {inputs}",
        ("in/one.warc.gz", "in/two.warc.gz"),
        (_REPLACE,),
        ("out/t.tsv", "out/t.tsv", "in/one.warc.gz"),
        weight=2,
    ),
    "report": Kind(
        "report -p 1 {options} --json {output} {inputs}",
        ("cl", "cl cl2", "cdx/a.cdxj", "out"),
        (_REPLACE, ("", "", "--compare cl2", "--html out/r.html")),
        ("out/r.json", "out/r.json", "cdx/a.cdxj", "cl/cluster.json"),
    ),
    "export": Kind(
        "export {inputs} {options} -o {output}",
        ("cl", "cl", "cl *.com", "cl,cl2", "cdx/a.cdxj", "out"),
        (_REPLACE, ("--to csv", "--to cdxj"), ("", "", "--from 2014", "--fl url,status")),
        ("out/e.gz", "out/e.gz", "out", "cl/cluster.idx", "cdx/a.cdxj"),
    ),
    "export PARQUET": Kind(
        "export {inputs} --to parquet -p 1 {options} -o {output}",
        ("cl", "cl", "cl *.com", "cl,cl2", "out"),
        (_REPLACE, ("", "", "--partition", "--from 2014")),
        ("out/t", "out/t", "out", "cl", "in"),
        keeps=True,
    ),
    "export WACZ": Kind(
        "export {inputs} --to wacz -p 1 {options} -o {output}",
        ("cl", "cl *.com", "cl,cl2", "cdx/a.cdxj"),
        (_REPLACE, ("--archives in", "--archives in", "--archives more"), ("", "", "--related", "--title T")),
        ("out/e.wacz", "out/e.wacz", "in/e.wacz"),
        keeps=True,
    ),
}
_COPY = Kind(
    "copy -p 1 {options} -o {output} {inputs}",
    ("cl *.com", "cl *.com *.org", "cl example.com", "cdx/a.cdxj", "cl,cl2 *.com"),
    (
        ("--archives in", "--archives in", "--archives more"),
        ("", "", "--limit 2", "--keep-arc", "--size 2K", "--related", "--originals"),
    ),
    ("out", "out", "out2", "in"),
    weight=8,
    keeps=True,
    adds=True,
)

KINDS = {**_PER_ARCHIVE, **_CLUSTERS, **_ONE_FILE, "copy": _COPY}
"""Each kind of command, by name."""
