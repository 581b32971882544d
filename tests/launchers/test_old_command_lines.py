"""Command lines of webarchive-indexing, its scripts in bin/ and jobs/, do here what they did.

What its scripts, options and variables are called is listed here as found in all versions of
commoncrawl/webarchive-indexing and ikreymer/webarchive-indexing; docs/migrating.md has each.
"""

from __future__ import annotations

import gzip
import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import ROOT, Finished, Launch, RunPaths, clean_environment, commands

SCRIPTS = {
    *("runindexwarcs.sh", "runsample.sh", "runzipcluster.sh", "run_index_hadoop.sh", "publish_index.sh"),
    *("index_env.sample.sh", "bootstrap.sh", "mrjob.conf", "requirements.txt"),
    *("indexwarcsjob.py", "samplecdxjob.py", "dosample.py", "zipnumclusterjob.py", "seqfileutils.py"),
    *(
        "build_local_zipnum.py",
        "runsample.py",
        "runzip.sh",
        "indexwarcs.py",
        "samplecdx.py",
        "zipnumwriter.py",
    ),
    *("run_index_ccpyspark.sh", "indexwarcs_cc_pyspark.py", "zipnumcluster_cc_pyspark.py"),
}
OPTIONS = {
    "indexwarcsjob.py": {"--warc_bucket", "--cdx_bucket", "--skip-existing", "--s3_local_temp_dir"},
    "samplecdxjob.py": {"--shards", "--scaler", "--splitfile"},
    "zipnumclusterjob.py": {
        *(
            "--shards",
            "--splitfile",
            "--numlines",
            "--convert",
            "--zipnum-dir",
            "--output-dir",
            "--s3-upload-acl",
        )
    },
    "seqfileutils.py": {"SEQFILE", "--copyfrom", "--count"},
    "build_local_zipnum.py": {
        "OUTPUT",
        "INPUTS",
        "-s",
        "--shards",
        "-l",
        "--numlines",
        "-p",
        "--parallel",
        "--convert",
    },
    "run_index_hadoop.sh": {"YEAR-WEEK", "MANIFEST", "SPLIT_FILE"},
    "run_index_ccpyspark.sh": {"YEAR-WEEK", "LIST", "SPLIT_FILE"},
    "indexwarcs_cc_pyspark.py": {
        *("--input_base_url", "--output_base_url", "--skip-existing"),
        *("--num_input_partitions", "--local_temp_dir"),
    },
    "zipnumcluster_cc_pyspark.py": {
        *("--input_base_url", "--output_base_url", "--temporary_output_base_url"),
        *("--partition_boundaries_file", "--num_lines", "--num_output_partitions"),
        *("--num_input_partitions", "--local_temp_dir"),
    },
    "publish_index.sh": {"YEAR-WEEK", "MONTH"},
    "mrjob": {"-r", "--conf-path", "--no-output", "--cleanup", "--cmdenv", "--jobconf", "--verbose"},
}
VARIABLES = {
    *("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "WARC_MANIFEST", "WARC_CDX_BUCKET", "WARC_CDX"),
    *("WARC_CDX_SAMPLE", "SPLIT_FILE", "ZIPNUM_CLUSTER_DIR", "ZIPNUM_OUTPUT_DIR", "S3_LOCAL_TEMP_DIR"),
}
PAGE = (
    (ROOT / "docs/migrating.md").read_text().partition("\n## webarchive-indexing\n")[2].partition("\n## ")[0]
)


def rows(heading: str) -> list[list[str]]:
    """The cells of the table whose first column has this heading."""
    _, _, rest = PAGE.partition(f"\n| {heading} |")
    return [
        [cell.strip() for cell in row.strip("|").split("|")]
        for row in rest.partition("\n\n")[0].splitlines()[2:]
    ]


def named(cell: str) -> set[str]:
    """What a cell has in backquotes."""
    return set(re.findall(r"`([^`]+)`", cell))


def test_the_page_has_every_script() -> None:
    assert {name for row in rows("script") for name in named(row[0])} == SCRIPTS


def test_the_page_has_every_option_of_every_script() -> None:
    table = [
        (script, option)
        for row in rows("script | option")
        for script in named(row[0])
        for option in named(row[1])
    ]
    assert sorted(table) == sorted(
        (script, option) for script, all_of in OPTIONS.items() for option in all_of
    )


def test_the_page_has_every_variable_and_the_sample_too() -> None:
    assert {name for row in rows("variable") for name in named(row[0])} == VARIABLES
    sample = (ROOT / "index_env.sample.sh").read_text()
    assert set(re.findall(r"export (\w+)=", sample)) >= VARIABLES


def test_what_the_page_names_instead_is_there() -> None:
    paths = [name for row in rows("script") for name in named(row[1]) if "/" in name or "." in name]
    assert len(paths) > 15
    assert [name for name in paths if " " not in name and not (ROOT / name).exists()] == ["mrjob.conf"]


@pytest.fixture
def old(places: RunPaths) -> RunPaths:
    """A folder with a mrjob.conf, and CDX files of six fields as old clusters have them."""
    (places.directory / "mrjob.conf").write_text("runners:\n  local:\n    cleanup: [ALL]\n")
    (places.directory / "six").mkdir()
    for host in "ab":
        lines = [
            f"com,{host})/{n} 2020010100000{n} http://{host}.com/{n} 512 {n} {host}.warc.gz\n"
            for n in range(9)
        ]
        (places.directory / "six" / f"{host}.cdx").write_text("".join(lines))
    return places


def run(script: str, *args: str, cwd: Path) -> Finished:
    """A script of the checkout, called from the user's own folder as `python SCRIPT ...`."""
    command = [sys.executable, str(ROOT / script), *args]
    return subprocess.run(
        command, cwd=cwd, env=clean_environment(), capture_output=True, text=True, check=False
    )


KEYS = ("--cmdenv", "AWS_ACCESS_KEY_ID=id", "--cmdenv", "AWS_SECRET_ACCESS_KEY=secret")
MEMORY = ("--jobconf", "mapreduce.map.memory.mb=640", "--jobconf", "mapreduce.map.java.opts=-Xmx512m")


def test_the_jobs_as_the_known_launchers_call_them(old: RunPaths) -> None:
    def job(name: str, options: str, *more: str) -> None:
        done = run(f"jobs/{name}.py", *shlex.split(options), *more, cwd=old.directory)
        assert (done.returncode, done.stdout) == (0, "2\n" if "--count" in options else ""), done.stderr

    kept = "--conf-path ./mrjob.conf --no-output --cleanup NONE --skip-existing -r local"
    places = "--cdx_bucket=cdx --s3_local_temp_dir=. --warc_bucket warcs"
    job("indexwarcsjob", f"{kept} {places}", *KEYS, *MEMORY, "warcs.txt")
    assert sorted(path.name for path in (old.directory / "cdx").glob("*.gz")) == [
        "dupes.cdx.gz",
        "iana.cdx.gz",
    ]

    plain = "--jobconf mapreduce.output.fileoutputformat.compress=false -r local"
    sample = f"--verbose --shards=3 --scaler 100 --splitfile=splits.seq {plain}"
    job("dosample", sample, *KEYS, *MEMORY, "cdx/*.cdx.gz")
    job("seqfileutils", "splits.seq --count")
    job("seqfileutils", "--copyfrom splits.txt again.seq")

    cluster = "--shards=3 --splitfile=again.seq --output-dir=indexes/ --no-output --numlines 3000 -r local"
    job("zipnumclusterjob", cluster, *KEYS, *MEMORY, "cdx/*.cdx.gz")
    shards = sorted(path.name for path in (old.directory / "indexes").glob("cdx-*"))
    assert shards == ["cdx-00000.gz", "cdx-00001.gz", "cdx-00002.gz"]
    all_idx = subprocess.run("cat indexes/part-* > all.idx", shell=True, cwd=old.directory, check=True)
    assert all_idx.returncode == 0
    rows = [line.split("\t") for line in (old.directory / "all.idx").read_text().splitlines()]
    assert {len(row) for row in rows} == {4}
    assert rows == sorted(rows)


def test_lines_of_six_fields_are_converted_without_a_split_file(old: RunPaths) -> None:
    """Of a local run, and from a pattern in a file URL. The names of the four fields were one letter each."""
    given = (old.directory / "six").as_uri() + "/*.cdx"
    words = ("--shards", "2", "--output-dir", "out", "--no-output", "--convert", given)
    done = run("jobs/zipnumclusterjob.py", "-r", "local", *words, cwd=old.directory)
    assert done.returncode == 0, done.stderr
    shards = sorted((old.directory / "out").glob("cdx-*.gz"))
    assert len(shards) == 2
    lines = [line for shard in shards for line in gzip.decompress(shard.read_bytes()).decode().splitlines()]
    assert len(lines) == 18
    key, timestamp, fields = lines[0].split(" ", 2)
    assert (key, timestamp) == ("com,a)/0", "20200101000000")
    theirs = {"u": "http://a.com/0", "s": "512", "o": "0", "w": "a.warc.gz"}
    names = {"u": "url", "s": "length", "o": "offset", "w": "filename"}
    assert json.loads(fields) == {names[letter]: value for letter, value in theirs.items()}


def test_a_local_cluster(old: RunPaths) -> None:
    options = ("out", "-s", "3", "-l", "2", "-p", "--convert", "six/a.cdx", "six/b.cdx")
    assert run("bin/build_local_zipnum.py", *options, cwd=old.directory).returncode == 0
    names = {path.name for path in (old.directory / "out").iterdir()}
    assert names >= {"part-00002", "cdx-00002.gz", "cluster.summary", "cluster.loc"}


def test_publish_index_for_a_monthly_crawl(launch: Launch) -> None:
    place = "s3a://commoncrawl/cc-index/collections/CC-MAIN-2018-22/indexes"
    (words,) = commands(launch("publish_index.sh", "--dry-run", "2018-22", "may", env={"INDEX_ENV": ""}))
    assert words[3:] == ["publish", "--title", "May 2018 Index", place, place]
    (words,) = commands(launch("publish_index.sh", "--dry-run", "2018-22", env={"INDEX_ENV": ""}))
    assert words[3:] == ["publish", place, place]
