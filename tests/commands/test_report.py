"""`cdxmill report`: its numbers are those of other tools, bad input stops nothing, and its page can be read by anyone."""

from __future__ import annotations

import json
import re
import resource
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import cdxmill
from bench.browser import dump_dom, find_chromium, find_program, print_pdf
from cdxmill.cli.main import main
from cdxmill.cluster.write import read_manifest
from cdxmill.commands.reporting import parts
from cdxmill.formats.clusters.manifest import format_manifest
from cdxmill.stages import native
from cdxmill.stages.report.capture_sums import DictSums
from cdxmill.storage.location import locate

from ..material.clusters import write_raw_cluster

NASTY = "</script><img src=x onerror=alert(1)>\"'&"


def reported(*args: str | Path) -> tuple[int, dict[str, Any]]:
    out = Path(str(args[0])).parent / "report.json"
    status = main(["report", *map(str, args), "-q", "--json", str(out), "--replace"])
    return status, json.loads(out.read_text())


def line(key: str, time: str = "20200102030405", **fields: object) -> str:
    return f"{key} {time} {json.dumps({'url': 'http://a.com/', **fields})}\n"


def clustered(directory: Path, *lines: str, shards: int = 1, numlines: int = 3000) -> Path:
    cdx, cluster = directory / "in.cdxj", directory / "cluster"
    cdx.write_text("".join(lines))
    sizes = ["-s", str(shards), "--numlines", str(numlines)]
    assert main(["zipnum", "-q", *sizes, "-o", str(cluster), str(cdx)]) == 0
    return cluster


@pytest.fixture(scope="module")
def collection(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    cluster = tmp_path_factory.mktemp("report") / "cluster"
    assert main(["build", "-q", "-s", "3", "-o", str(cluster), str(pywb_warcs)]) in (0, 1)
    return cluster


def test_the_totals_are_those_of_other_tools(collection: Path) -> None:
    shards = [str(path) for path in sorted(collection.glob("cdx-*.gz"))]
    text = subprocess.run(["zcat", *shards], capture_output=True, check=True).stdout.decode()
    found = [
        (key, time, json.loads(rest)) for key, time, rest in (one.split(" ", 2) for one in text.splitlines())
    ]
    status, report = reported(collection)
    assert status == 0
    totals, by = report["totals"], report["by"]
    assert totals["captures"] == len(found)
    assert totals["bytes"] == sum(int(fields["length"]) for _, _, fields in found)
    keys = subprocess.run(
        f"zcat {' '.join(shards)} | cut -d ' ' -f 1 | sort -u | wc -l",
        shell=True,
        capture_output=True,
        check=True,
    )
    assert totals["urls"] == int(keys.stdout)
    wanted = {
        "mime": Counter(fields.get("mime", "-") for _, _, fields in found),
        "status": Counter(fields.get("status", "-") for _, _, fields in found),
        "archive": Counter(fields["filename"] for _, _, fields in found),
        "month": Counter(time[:6] for _, time, _ in found),
        "year": Counter(time[:4] for _, time, _ in found),
    }
    for name, counts in wanted.items():
        assert {row["name"]: row["captures"] for row in by[name]["rows"]} == counts, name
    for name in ("host", "domain", "tld"):
        assert sum(row["captures"] for row in by[name]["rows"]) == len(found), name
        assert sum(row["urls"] for row in by[name]["rows"]) >= totals["urls"], name
    digests = Counter(
        fields["digest"]
        for _, _, fields in found
        if fields.get("mime") != "warc/revisit" and fields.get("digest", "-") != "-"
    )
    assert totals["digests"] == len(digests)
    assert totals["duplicates"] == sum(digests.values()) - len(digests)
    lengths = sorted((int(fields["length"]) for _, _, fields in found), reverse=True)
    assert [int(one["length"]) for one in report["largest"]] == lengths[:20]
    assert report["blocks"]["bytes"] == sum(Path(path).stat().st_size for path in shards)


def test_cdx_files_give_the_report_of_their_cluster(collection: Path, tmp_path: Path) -> None:
    _, whole = reported(collection)
    status, files = reported(collection / "cdx")
    assert status == 0
    for name in ("captures", "urls", "bytes", "digests", "duplicates", "duplicate_bytes", "first", "last"):
        assert files["totals"][name] == whole["totals"][name], name
    captures = [
        {row["name"]: row["captures"] for row in report["by"]["host"]["rows"]} for report in (whole, files)
    ]
    assert captures[0] == captures[1]


def test_the_rest_of_a_damaged_cluster_is_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster = clustered(tmp_path, *(line(f"com,a)/{number:05d}", length="5") for number in range(9500)))
    shard = cluster / "cdx-00000.gz"
    data = bytearray(shard.read_bytes())
    data[len(data) // 2] ^= 255
    shard.write_bytes(data)
    status, report = reported(cluster)
    assert status == 1
    assert report["totals"]["captures"] == 6500
    assert report["failures"]["number"] == 1
    assert "cdx-00000.gz@" in capsys.readouterr().err
    page = tmp_path / "page.html"
    assert main(["report", str(cluster), "--html", str(page)]) == 1
    assert re.search(r"Failures of this report\s+1\n", capsys.readouterr().out)
    (listed,) = re.findall("What this report could not read.*?</section>", page.read_text(), re.DOTALL)
    assert f"<li>{shard}@" in listed
    assert "1 of 1" in listed


def test_of_many_corrupt_blocks_and_lines_the_first_are_reported(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_raw_cluster(
        tmp_path / "C", [line(f"com,a)/{n:02d}", length="1").encode()[:-1] for n in range(30)], 1
    )
    shard = tmp_path / "C/cdx-00000.gz"
    rows = [row.split(b"\t") for row in (tmp_path / "C/cluster.idx").read_bytes().splitlines()]
    data = bytearray(shard.read_bytes())
    for row in rows[:-1]:
        data[int(row[2]) + int(row[3]) // 2] ^= 0xFF
    shard.write_bytes(data)
    (tmp_path / "odd.cdxj").write_bytes(
        line("com,a)/", length="8").encode() + b'com,b)/ 2020 {"mime": }\n' * 40
    )
    for path, more in (
        (tmp_path / "C", "more corrupt blocks"),
        (tmp_path / "odd.cdxj", "more lines of this kind"),
    ):
        status, report = reported(path)
        assert (status, report["totals"]["captures"]) == (1, 1)
        told = capsys.readouterr().err.splitlines()
        (rest,) = (re.search(rf": (\d+) {more}", one) for one in told if more in one)
        assert rest is not None
        assert int(rest[1]) + len(told) - 1 == (29 if more.endswith("blocks") else 40)


def test_a_large_cdx_file_is_reported_piece_by_piece(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that two pieces share is one line."""
    monkeypatch.setattr(parts, "_TEXT", 1)
    text = "".join(line(f"com,a)/{number:06d}", length="2") for number in range(30000))
    (tmp_path / "a.cdxj").write_text(text)
    status, report = reported(tmp_path / "a.cdxj")
    totals = report["totals"]
    assert (status, totals["captures"], totals["bytes"], totals["invalid_lines"]) == (0, 30000, 60000, 0)


def test_odd_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cdx = tmp_path / "odd.cdxj"
    odd = b'com,a)/b - {"mime": "\xff\xfe", "length": "x"}\ncom,a)/c 2020 {"mime": }\n'
    cdx.write_bytes(
        line("com,a)/", mime="a/b", length="7").encode() + odd + line("com,a)/d", length="8").encode()
    )
    status, report = reported(cdx)
    assert status == 1
    totals = report["totals"]
    assert (totals["captures"], totals["bytes"], totals["invalid_lines"]) == (3, 15, 1)
    assert (totals["without_date"], totals["without_length"]) == (1, 1)
    assert {row["name"] for row in report["by"]["mime"]["rows"]} == {"a/b", "\\xff\\xfe", "-"}
    assert "neither a CDX nor a CDXJ line" in capsys.readouterr().err


@pytest.mark.parametrize(("lines", "change", "is_advised"), [(7, 1, False), (8, 1, True), (8, 0, False)])
def test_compact_is_advised_if_changes_left_many_small_blocks(
    lines: int, change: int, is_advised: bool, tmp_path: Path
) -> None:
    """4 blocks would do; half as many more are usual, and one per shard."""
    made = clustered(tmp_path, *(line(f"com,a)/{number}") for number in range(lines)), numlines=1)
    manifest = read_manifest(locate(made) / "cluster.json")
    changed = manifest._replace(numlines=2, change=change, origin="0" * 64 if change else "")
    (made / "cluster.json").write_bytes(format_manifest(changed))
    (found,) = reported(made)[1]["clusters"]
    advice = f"{lines} blocks, where 4 would do: cdxmill compact {made}"
    assert found["compact"] == (advice if is_advised else "")


def test_an_estimate_is_not_more_than_there_is(collection: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A sample of one in eight may have a few names too many for its share."""
    monkeypatch.setattr(DictSums, "sampled", lambda *_: (3, 10**6, 1, 7))
    monkeypatch.setattr(native, "CaptureSums", None)
    backwards = sorted(collection.glob("cdx-0000[12].gz"), reverse=True)
    totals = cdxmill.report(backwards, processes=1).report["totals"]
    assert totals["digests"] == totals["urls"] == totals["captures"]
    assert (totals["duplicates"], totals["duplicate_bytes"]) == (8, 56)


def test_names_that_are_missing_are_not_counted_as_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, page = clustered(tmp_path, line("com,a)/", status="200"), line("com,b)/")), tmp_path / "r.html"
    assert main(["report", str(cluster), "--html", str(page)]) == 0
    for shown in (capsys.readouterr().out, page.read_text()):
        assert "1 of 1" in shown, "statuses"
        assert "0 of 0" in shown, "languages"
        assert "2 of 1" not in shown
        assert "2 of 2" in shown, "hosts"


def test_an_empty_cluster(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "in.cdxj").write_text(" CDX N b a\n")
    assert main(["zipnum", "-q", "-s", "1", "-o", str(tmp_path / "cluster"), str(tmp_path / "in.cdxj")]) == 0
    page = tmp_path / "r.html"
    assert main(["report", str(tmp_path / "cluster"), "--html", str(page)]) == 0
    assert "Captures" in capsys.readouterr().out
    assert "No capture has a date" in page.read_text()


@pytest.mark.parametrize("width", [40, 72, 200])
def test_the_tables_fit_the_terminal(
    width: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    cluster = clustered(
        tmp_path, *(line(f"com,{'x' * 60}{n},{'y' * 50})/", length="1", mime="\x1b[31m") for n in range(12))
    )
    assert main(["report", "-q", str(cluster)]) == 0
    assert capsys.readouterr().out == ""
    assert main(["report", str(cluster)]) == 0
    out = capsys.readouterr().out
    assert max(map(len, out.splitlines())) <= width
    assert "\x1b" not in out


def test_without_any_input_there_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "r.html"
    assert main(["report", str(tmp_path / "none"), "--html", str(page)]) == 1
    assert "no input can be read, so there is no report" in capsys.readouterr().err
    assert not page.exists()


def test_outputs_are_not_replaced_unasked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cluster = clustered(tmp_path, line("com,a)/"))
    for option in ("--html", "--json"):
        mine = tmp_path / f"mine{option}"
        mine.write_text("precious")
        assert main(["report", str(cluster), option, str(mine)]) == 2
        assert mine.read_text() == "precious"
        assert main(["report", str(cluster), option, str(mine), "--replace"]) == 0
        assert mine.read_text() != "precious"
    same = str(tmp_path / "x")
    assert main(["report", str(cluster), "--html", same, "--json", same]) == 2
    assert main(["report", str(cluster), "--replace", "--html", str(cluster / "cdx-00000.gz")]) == 2
    assert main(["report", str(cluster), "--replace"]) == 2
    assert main(["report", str(cluster), "--replace", "--html", str(tmp_path)]) == 2
    assert "is a directory" in capsys.readouterr().err
    assert main(["report", str(cluster), "--html", "-"]) == 2
    assert "Traceback" not in capsys.readouterr().err


def test_a_full_disk_stops(tmp_path: Path) -> None:
    cluster = clustered(tmp_path, line("com,a)/"))
    limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, {resource.RLIM_INFINITY}))"
    run = f"{limit}; import sys; from cdxmill.cli.main import main; sys.exit(main(sys.argv[1:]))"
    page = tmp_path / "r.html"
    done = subprocess.run(
        [sys.executable, "-c", run, "report", cluster, "--html", page], capture_output=True, check=False
    )
    assert done.returncode == 3, done.stderr
    assert not page.exists()


def test_compare_shows_what_was_added_and_what_is_gone(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = [line("com,gone)/", length="1"), line("com,stays)/", length="1")]
    new = [line("com,new)/", length="1"), line("com,stays)/", length="1"), line("com,stays)/2", length="1")]
    (tmp_path / "old").mkdir()
    before = clustered(tmp_path / "old", *old)
    _, _ = reported(before)
    now = clustered(tmp_path, *new)
    for other in (before, before.parent / "report.json"):
        _, report = reported(now, "--compare", other)
        hosts = report["compared"]["by"]["host"]
        assert [row["name"] for row in hosts["added"]] == ["new.com"]
        assert [row["name"] for row in hosts["gone"]] == ["gone.com"]
        assert hosts["changed"] == [{"name": "stays.com", "before": 1, "captures": 2}]
        assert report["compared"]["totals"]["captures"] == {"before": 2, "now": 3}
    page = tmp_path / "page.html"
    assert main(["report", str(now), "--compare", str(before), "--html", str(page)]) == 0
    shown = re.sub(r"\s+", " ", re.sub("<[^>]*>", " ", page.read_text()))
    out = re.sub(r"[^\w.:]+", " ", capsys.readouterr().out)
    for what, row in (("added", "new.com 0 1"), ("gone", "gone.com 1 0"), ("changed", "stays.com 1 2")):
        assert f"Hosts: {what} Name Before Now {row}" in shown
        assert f"Hosts: {what} before now {row}" in out
    assert main(["report", str(now), "--compare", str(tmp_path / "absent")]) == 2
    capsys.readouterr()
    good = (before.parent / "report.json").read_text()
    for bad, reason in (
        ("[1]", "is not the JSON of cdxmill report"),
        ('{"format": 1}', "is not the JSON of cdxmill report"),
        (good.replace('"complete"', '"whole"', 1), "is not the JSON of cdxmill report"),
        (good[:-9], "cannot be read as a report (it is not JSON)"),
        ("[" * 100_000, "cannot be read as a report (it is not JSON)"),
    ):
        (tmp_path / "bad.json").write_text(bad)
        assert main(["report", str(now), "--compare", str(tmp_path / "bad.json")]) == 2
        assert f"bad.json: {reason}" in capsys.readouterr().err


def test_python(tmp_path: Path) -> None:
    cluster = clustered(tmp_path, line("uk,co,bbc,news)/", length="3"))
    done = cdxmill.report(cluster, json=tmp_path / "r.json")
    assert done.failures == []
    assert done.report == json.loads((tmp_path / "r.json").read_text())
    assert [row["name"] for row in done.report["by"]["domain"]["rows"]] == ["bbc.co.uk"]


def test_the_page_in_a_browser(tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "profile", ignore_errors=True)
    nasty = [
        line(f"com,h{n}{NASTY.replace(' ', '')})/", mime=NASTY, filename=NASTY, length=str(n))
        for n in range(300)
    ]
    page = tmp_path / "r.html"
    cluster = clustered(tmp_path, *nasty)
    assert (
        main(["report", "-q", str(cluster), "--html", str(page), "--compare", str(tmp_path / "in.cdxj")]) == 0
    )
    assert page.stat().st_size < 2 << 20
    assert "http:" not in page.read_text().replace("http://a.com/", "")
    click = "<script>document.querySelectorAll('th button')[3].click()</script></body>"
    page.write_text(page.read_text().replace("</body>", click))
    dom = dump_dom(find_chromium(), page.as_uri(), tmp_path)
    assert "<img" not in dom
    assert 'aria-sort="descending"' in dom
    assert dom.count("<svg") == 2


def test_the_printed_page_has_all_sections_and_40_rows_of_a_table(tmp_path: Path) -> None:
    hosts = [line(f"com,h{n:03d})/", length=str(n)) for n in range(100)]
    page, pdf = tmp_path / "r.html", tmp_path / "r.pdf"
    assert main(["report", "-q", str(clustered(tmp_path, *hosts)), "--html", str(page)]) == 0
    print_pdf(find_chromium(), page.as_uri(), pdf, tmp_path)
    to_text = find_program(("pdftotext",), "poppler-utils")
    paper = subprocess.run([to_text, "-layout", pdf, "-"], capture_output=True, text=True, check=True).stdout
    titles = re.findall(r"<h2>(.*?)</h2>", page.read_text())
    assert len(titles) > 10
    assert [title for title in titles if title not in paper] == []
    rows = re.findall(r"^ *h\d\d\d\.com +1 +1 +", paper, re.M)
    assert len(rows) == 2 * 40  # of hosts and of domains
    assert "On paper: the first 40 rows." in paper


def test_blocks_are_measured_in_lines_and_bytes(tmp_path: Path) -> None:
    lines = [b'com,a)/%03d 2020 {"url": "http://a.com/%03d"}\n' % (number, number) for number in range(107)]
    Path(tmp_path, "a.cdxj").write_bytes(b"".join(lines))
    cdxmill.zipnum(tmp_path / "a.cdxj", output=tmp_path / "C", shards=1, numlines=25, processes=1)
    sizes = [int(row.split(b"\t")[3]) for row in (tmp_path / "C/part-00000").read_bytes().splitlines()]
    blocks = cdxmill.report(tmp_path / "C", processes=1).report["blocks"]
    assert (blocks["number"], blocks["bytes"]) == (5, sum(sizes))
    assert [blocks[f"{which}_lines"] for which in ("least", "median", "most")] == [7, 25, 25]
    assert [blocks[f"{which}_bytes"] for which in ("least", "median", "most")] == [
        *(min(sizes), sorted(sizes)[2], max(sizes))
    ]
