"""`cdxmill export --to parquet`: the columns of Common Crawl's columnar index, every line a row, whole or absent."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pyarrow.parquet
import pytest

from cdxmill.commands.exporting import table_part
from cdxmill.formats.clusters.manifest import format_manifest, parse_manifest
from cdxmill.storage.local import temporary_name
from cdxmill.storage.location import Location

from ..material.clusters import write_raw_cluster
from .conftest import build, export, query, text_of

COMMON_CRAWL = (
    "url_surtkey string, url string, url_host_name string, url_host_tld string, url_host_2nd_last_part string,"
    " url_host_3rd_last_part string, url_host_4th_last_part string, url_host_5th_last_part string,"
    " url_host_registry_suffix string, url_host_registered_domain string, url_host_private_suffix string,"
    " url_host_private_domain string, url_host_name_reversed string, url_protocol string, url_port int32,"
    " url_path string, url_query string, fetch_time timestamp[ms, tz=UTC], fetch_status int16, fetch_redirect string,"
    " content_digest string, content_mime_type string, content_mime_detected string, content_charset string,"
    " content_languages string, content_truncated string, warc_filename string, warc_record_offset int64,"
    " warc_record_length int64, warc_segment string"
)
"""Its schema, cc-index-schema-flat.json, but int64 in place of int32 for offset and length."""
VIEW = "CREATE VIEW ccindex.ccindex AS SELECT * FROM read_parquet('t/**/*.parquet', hive_partitioning=true)"
HEAD = "select 1", "CREATE SCHEMA ccindex", VIEW
ODD = [
    b'com,a)/1 20200101000000 {"url": "http://a.com/1", "status": "2xx"}',
    b'com,a)/2 2020 {"url": "http://a.com/2"}',
    b'com,a)/3 20200101000000 {"url": "http://a.com/\\ud800"}',
    b'com,a)/4 20200101000000 {"url": "http://a.com/4", "mime": "\xff"}',
    b'com,a)/5 20200101000000 {"url": "http://a.com/5", "offset": "5000000000", "length": "12"}',
    b'com,a)/6 20200101000000 {"nested": [}',
]


def files(directory: Path) -> list[str]:
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def test_the_columns_are_those_of_common_crawl(cluster: Path) -> None:
    assert export("c", "--to", "parquet", "-o", "t") == 0
    schema = pyarrow.parquet.read_schema("t/part-00000.c000.zstd.parquet")
    found = [f"{field.name} {field.type}" for field in schema]
    assert ", ".join(found[:30]) == COMMON_CRAWL
    assert found[30:] == ["cdx_line binary", "crawl string", "subset string"]
    about = pyarrow.parquet.read_metadata("t/part-00000.c000.zstd.parquet").metadata
    assert about[b"public_suffix_list"].startswith(b"publicsuffixlist ")


def test_every_line_is_a_row_for_duckdb_pandas_polars_and_pyarrow(cluster: Path, lines: list[bytes]) -> None:
    import pandas  # type: ignore[import-untyped]  # slow to import
    import polars

    assert export("c", "--to", "parquet", "-o", "t") == 0
    keys = [line.split(b" ")[0].decode() for line in lines]
    assert pyarrow.parquet.read_table("t")["url_surtkey"].to_pylist() == keys
    assert list(pandas.read_parquet("t")["url_surtkey"]) == keys
    assert polars.read_parquet("t/*.parquet")["url_surtkey"].to_list() == keys
    assert query("SELECT url_surtkey FROM 't/*.parquet'") == [[key] for key in keys]
    row = pyarrow.parquet.read_table("t").slice(0, 1).to_pylist()[0]
    fields = json.loads(lines[0].split(b" ", 2)[2])
    assert row["url"] == fields["url"]
    assert (row["fetch_status"], row["warc_record_offset"]) == (int(fields["status"]), int(fields["offset"]))


def test_row_groups_are_pruned_by_key(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdxmill.commands.exporting.table_part.BATCH", 500)
    assert export("c", "--to", "parquet", "-o", "t", "--file-lines", "1000") == 0
    assert [name for name in files(Path("t")) if name != "_cdxmill/export.json"] == [
        f"part-{number:05d}.c000.zstd.parquet" for number in range(4)
    ]
    ends = []
    for path in sorted(Path("t").glob("*.parquet")):
        found = pyarrow.parquet.read_metadata(path)
        assert found.num_rows <= 1000
        for group in range(found.num_row_groups):
            column = found.row_group(group).column(0)
            assert (column.path_in_schema, column.compression) == ("url_surtkey", "ZSTD")
            ends += [column.statistics.min, column.statistics.max]
    assert len(ends) >= 12
    assert ends == sorted(ends)


PUBLISHED = {
    "count-by-partition": """SELECT COUNT(*) as n_captures,
       crawl,
       subset
FROM "ccindex"."ccindex"
GROUP BY crawl, subset;""",
    "compare-mime-type-http-vs-detected": """SELECT COUNT(*) as n_pages,
       content_mime_type,
       content_mime_detected
FROM "ccindex"."ccindex"
WHERE crawl = 'BENCH-2024-22'
  AND subset = 'warc'
GROUP BY content_mime_type,
         content_mime_detected
ORDER BY n_pages DESC;""",
    "host-length-distrib": """WITH t AS (SELECT url_host_name AS host_name,
                  cardinality(split(url_host_name, '.')) AS host_name_length
           FROM "ccindex"."ccindex"
           WHERE crawl = 'BENCH-2024-22'
             AND subset = 'warc')
SELECT COUNT(*) AS n_pages,
       COUNT(DISTINCT host_name) AS uniq_hosts,
       host_name_length
FROM t
GROUP BY  host_name_length
ORDER BY  host_name_length ASC;""",
    "count-domains-of-tld": """SELECT COUNT(*) AS count,
       url_host_registered_domain
FROM "ccindex"."ccindex"
WHERE crawl = 'BENCH-2024-22'
  AND subset = 'warc'
  AND url_host_tld = 'com'
GROUP BY  url_host_registered_domain
HAVING (COUNT(*) >= 2)
ORDER BY  count DESC""",
    "count-fetch-status": """SELECT COUNT(*) as n_captures, fetch_status
FROM "ccindex"."ccindex"
WHERE crawl = 'BENCH-2024-22'
GROUP BY fetch_status
ORDER BY n_captures DESC;""",
    "get-records-for-language": """SELECT url,
       warc_filename,
       warc_record_offset,
       warc_record_length
FROM "ccindex"."ccindex"
WHERE (crawl = 'CC-MAIN-2018-39'
    OR crawl = 'BENCH-2024-22')
  AND subset = 'warc'
  AND content_languages = 'rus'
LIMIT 10000;""",
    "get-records-of-mime-type": """SELECT url,
       content_mime_type,
       content_mime_detected,
       warc_filename,
       warc_record_offset,
       warc_record_length
FROM "ccindex"."ccindex"
WHERE crawl = 'BENCH-2024-22'
  AND subset = 'warc'
  AND (content_mime_detected = 'application/pdf' OR
       content_mime_type LIKE '%pdf%')
LIMIT 1000;""",
}
"""Queries of cc-index-table, src/sql/examples, with another crawl, language and smallest number."""


@pytest.mark.parametrize("options", [(), ("--partition",)], ids=["columns", "partitions"])
def test_published_queries_run_in_duckdb(options: tuple[str, ...], cluster: Path, lines: list[bytes]) -> None:
    assert export("c", "--to", "parquet", "-o", "t", *options) == 0
    rows = {name: query(*HEAD, sql) for name, sql in PUBLISHED.items()}
    objects = [json.loads(line.split(b" ", 2)[2]) for line in lines]
    assert rows["count-by-partition"] == [[len(lines), "BENCH-2024-22", "warc"]]
    statuses = Counter(int(one["status"]) for one in objects)
    assert {status: number for number, status in rows["count-fetch-status"]} == statuses
    assert len(rows["get-records-for-language"]) == sum(one.get("languages") == "rus" for one in objects)
    pdf = [one for one in objects if one["mime-detected"] == "application/pdf"]
    assert len(rows["get-records-of-mime-type"]) == len(pdf)
    assert rows["count-domains-of-tld"]
    kinds = Counter((one["mime"], one["mime-detected"]) for one in objects)
    assert {tuple(row[1:]): row[0] for row in rows["compare-mime-type-http-vs-detected"]} == kinds
    hosts = Counter(one["url"].split("/")[2].count(".") + 1 for one in objects)
    assert {row[2]: row[0] for row in rows["host-length-distrib"]} == hosts


@pytest.mark.parametrize(
    ("crawl", "name"), [("..", "%2E%2E"), (".", "%2E"), ("A.b", "A.b"), ("a=b", "a%3Db"), ("a b", "a b")]
)
def test_a_partition_of_any_name_stays_in_the_directory(crawl: str, name: str, tmp_path: Path) -> None:
    line = b'com,a)/ 20200101000000 {"url": "http://a.com/", "filename": "crawl-data/%b/segments/1/warc/a"}'
    build(tmp_path / "d", [line % crawl.encode()])
    assert export(str(tmp_path / "d"), "--to", "parquet", "-o", str(tmp_path / "o/t"), "--partition") == 0
    assert f"o/t/crawl={name}/subset=warc/part-00000.c000.zstd.parquet" in files(tmp_path)


def test_partitions_are_directories(cluster: Path, tmp_path: Path) -> None:
    line = b'com,a)/ 20200101000000 {"url": "http://a.com/", "filename": "%b"}'
    names = [b"crawl-data/A/segments/1/warc/a", b"crawl-data/A/segments/1/robotstxt/a", b"own.warc.gz"]
    build(tmp_path / "d", sorted(line % name for name in names))
    assert export("d", "--to", "parquet", "-o", "t", "--partition") == 0
    none = "__HIVE_DEFAULT_PARTITION__"
    assert [name for name in files(Path("t")) if name != "_cdxmill/export.json"] == [
        f"crawl=A/subset={subset}/part-00000.c000.zstd.parquet" for subset in ("robotstxt", "warc")
    ] + [f"crawl={none}/subset={none}/part-00000.c000.zstd.parquet"]


def test_more_than_100_partitions_are_refused(
    cluster: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    line = b'com,a)/ 20200101000000 {"url": "http://a.com/", "filename": "crawl-data/%d/segments/1/warc/a"}'
    for number, status in ((100, 0), (101, 2)):
        (tmp_path / "d.cdxj").write_bytes(text_of(sorted(line % crawl for crawl in range(number))))
        assert export("d.cdxj", "--to", "parquet", "-o", str(number), "--partition") == status
    assert "--partition: more than 100 crawls and subsets; export without it" in capsys.readouterr().err
    assert files(Path("101")) == []


def test_the_files_of_a_cdx_file_have_at_most_the_lines_that_were_asked_for(
    cluster: Path, lines: list[bytes]
) -> None:
    """Its lines are one range of keys."""
    assert export("c.cdxj", "--to", "parquet", "-o", "t", "--file-lines", "1000") == 0
    found = [
        pyarrow.parquet.ParquetFile(path).metadata.num_rows for path in sorted(Path("t").glob("*.parquet"))
    ]
    assert (sum(found), max(found)) == (len(lines), 1000)


def test_no_line_is_dropped_and_what_is_missing_is_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("odd.cdxj").write_bytes(b"".join(line + b"\n" for line in ODD))
    assert main_export("odd.cdxj", "--to", "parquet", "-o", "t") == 0
    assert capsys.readouterr().err == (
        "t: 6 captures; values that a table cannot have: 1 of JSON, 1 of content_mime_type, 1 of fetch_status,"
        " 1 of fetch_time, 1 of url; see the column cdx_line\n"
    )
    rows = pyarrow.parquet.read_table("t").to_pylist()
    assert [row["url_surtkey"] for row in rows] == [f"com,a)/{number}" for number in range(1, 7)]
    assert [row["cdx_line"] for row in rows] == [*ODD[:4], None, ODD[5]]
    assert rows[0]["fetch_status"] is rows[1]["fetch_time"] is rows[2]["url"] is rows[5]["url"] is None
    assert rows[2]["url_host_registered_domain"] == "a.com"
    assert rows[4]["warc_record_offset"] == 5_000_000_000
    about = json.loads(Path("t/_cdxmill/export.json").read_bytes())
    assert (about["rows"], about["rows_with_missing_values"]) == (6, 5)


def test_a_hyphen_is_a_missing_value(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    fields = '"status": "-", "mime": "-", "mime-detected": "-", "digest": "-", "redirect": "-", "length": "-"'
    Path("a.cdxj").write_text(f'com,a)/ - {{"url": "http://a.com/", {fields}}}\n')
    assert main_export("a.cdxj", "--to", "parquet", "-o", "t") == 0
    assert capsys.readouterr().err == "t: 1 capture\n"
    (row,) = pyarrow.parquet.read_table("t").to_pylist()
    parts = {name: value for name, value in row.items() if value is not None and name[:8] != "url_host"}
    assert parts == {
        "url_surtkey": "com,a)/", "url": "http://a.com/", "url_protocol": "http", "url_path": "/"
    }  # fmt: skip


def main_export(*args: str) -> int:
    from cdxmill.cli.main import main

    return main(["export", *args])


def test_a_corrupt_block_is_reported_and_the_others_are_exported(
    cluster: Path, lines: list[bytes], capsys: pytest.CaptureFixture[str]
) -> None:
    row = (cluster / "cluster.idx").read_bytes().splitlines()[3].split(b"\t")
    shard = cluster / row[1].decode()
    data = bytearray(shard.read_bytes())
    middle = int(row[2]) + int(row[3]) // 2
    data[middle : middle + 20] = bytes(20)
    shard.write_bytes(data)
    assert export("c", "--to", "parquet", "-o", "t") == 1
    assert f"c/{shard.name}@{int(row[2])}: " in capsys.readouterr().err
    keys = [line.split(b" ")[0].decode() for line in [*lines[:300], *lines[400:]]]
    assert pyarrow.parquet.read_table("t")["url_surtkey"].to_pylist() == keys


def test_rows_are_compared_with_cluster_json(cluster: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = cluster / "cluster.json"
    known = parse_manifest(path.read_bytes())
    first = known.shards[0]._replace(lines=known.shards[0].lines + 1)
    path.write_bytes(format_manifest(known._replace(shards=(first, *known.shards[1:]))))
    assert export("c", "--to", "parquet", "-o", "t") == 1
    assert "but its cluster.json has 3001" in capsys.readouterr().err
    assert not Path("t").exists()


def test_an_empty_cluster_is_a_table_without_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_raw_cluster(tmp_path / "e", [])
    for options in ((), ("--partition",)):
        assert export("e", "--to", "parquet", "-o", "t", "--replace", *options) == 0
        assert query("SELECT count(*), count(url) FROM 't/**/*.parquet'") == [[0, 0]]


def test_an_existing_directory_is_replaced_only_if_an_export_wrote_it(
    cluster: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export("c", "--to", "parquet", "-o", "t") == 0
    before = files(Path("t"))
    assert export("c", "--to", "parquet", "-o", "t") == 2
    assert "t: already exists; use --replace" in capsys.readouterr().err
    assert export("c", "br,*", "--to", "parquet", "-o", "t", "--replace") == 0
    assert files(Path("t")) == before
    Path("t/mine").write_text("precious")
    assert export("c", "--to", "parquet", "-o", "t", "--replace") == 2
    assert "t: has files that no export wrote (mine)" in capsys.readouterr().err
    assert Path("t/mine").read_text() == "precious"


def test_a_field_of_some_lines_is_asked_for_in_all_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether the first lines of a query have it is found out once, not for each range of keys."""
    monkeypatch.chdir(tmp_path)
    lines = [b'com,a)/%04d 2020 {"url": "http://a.com/"}' % number for number in range(500)]
    lines += [
        b'net,b)/%04d 2020 {"url": "http://b.net/"%b}' % (number, b', "note": "yes"' * (number < 300))
        for number in range(2500)
    ]
    cluster = build(tmp_path / "c", lines)
    words = ["--to", "parquet", "-o", "t", "--file-lines", "1000", "--filter", "note:yes"]
    assert export(cluster, "b.net/*", *words) == 0
    assert query("SELECT count(*) FROM 't/*.parquet'") == [[300]]


def test_other_libraries_on_a_node_stop_it(
    cluster: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """They would write other bytes."""
    monkeypatch.setattr(table_part, "libraries", lambda: ["pyarrow 1.0"])
    assert export(cluster, "--to", "parquet", "-o", "t", "-p", "1") == 3
    assert "a node has pyarrow 1.0, the driver pyarrow " in capsys.readouterr().err
    assert files(Path("t")) == []


def test_what_a_killed_run_left_is_deleted(cluster: Path) -> None:
    left = Path(temporary_name("t"))
    left.mkdir()
    (left / "part-00000.c000.zstd.parquet").write_bytes(b"PAR1")
    assert export("c", "--to", "parquet", "-o", "t") == 0
    assert not left.exists()


def test_what_others_have_under_a_temporary_name_stays(cluster: Path) -> None:
    """A file, a link, and the directory of a run that is not finished."""
    file, link, held = (Path(f".t.{number}-0123abcd.tmp") for number in range(3))
    file.write_text("precious")
    link.symlink_to("c")
    held.mkdir()
    (held / "part-00000.c000.zstd.parquet").write_bytes(b"PAR1")
    handle = os.open(held, os.O_RDONLY)
    fcntl.flock(handle, fcntl.LOCK_EX)
    assert export("c", "--to", "parquet", "-o", "t") == 0
    os.close(handle)
    assert (file.read_text(), files(held)) == ("precious", ["part-00000.c000.zstd.parquet"])
    assert link.is_symlink() and (Path("c") / "cluster.json").exists()


def test_a_table_is_replaced_where_directories_cannot_be_exchanged(
    cluster: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert export("c", "--to", "parquet", "-o", "t") == 0
    monkeypatch.setattr(Location, "exchange", lambda one, other: False)
    assert export("c", "br,*", "--to", "parquet", "-o", "t", "--replace") == 0
    assert query("SELECT count(*) FROM 't/*.parquet'") == [[0]]
    assert [path.name for path in Path.cwd().iterdir() if path.name.startswith(".")] == []


def test_a_full_disk_stops(cluster: Path) -> None:
    command = f"ulimit -f 8; exec {sys.executable} -m cdxmill export c --to parquet -o t"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (3, "")
    assert "cannot be written (File too large)" in done.stderr
    assert [path.name for path in Path.cwd().iterdir() if path.name.startswith((".t", "t"))] == []
