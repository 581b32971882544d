"""`cdxmill count`: its counts are those of other programs, and it loses nothing silently."""

from __future__ import annotations

import gzip
import hashlib
import json
import random
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from html.parser import HTMLParser
from io import BytesIO
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.exceptions import ArchiveLoadFailed

import cdxmill.commands.count
from cdxmill.cli.main import main
from cdxmill.stages.counting.count_records import count_records
from cdxmill.stages.counting.counters import COUNTERS
from cdxmill.stages.counting.tally import MAX_ITEM, new_tally
from cdxmill.stages.window import ReadAt
from tests.conftest import RunCdxmill

HTML = ("text/html", "application/xhtml+xml")
Counts = dict[str, Counter[bytes]]


def record(
    kind: str, block: bytes, media: str = "application/http; msgtype=response", more: str = ""
) -> bytes:
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Target-URI: http://www.example.com/\r\n{more}"
    head += f"Content-Type: {media}\r\nContent-Length: {len(block)}\r\n\r\n"
    return gzip.compress(head.encode() + block + b"\r\n\r\n", 1)


def text(words: str) -> bytes:
    return record("conversion", words.encode(), "text/plain")


def page(html: str, server: str = "nginx") -> bytes:
    return record(
        "response", f"HTTP/1.1 200 OK\r\nServer: {server}\r\nContent-Type: text/html\r\n\r\n{html}".encode()
    )


INFO = record("warcinfo", b"software: x\r\n", "application/warc-fields")


@pytest.fixture
def crawl(tmp_path: Path) -> Path:
    """A folder with two WET files and a WARC."""
    directory = tmp_path / "crawl"
    (directory / "sub").mkdir(parents=True)
    (directory / "a.warc.wet.gz").write_bytes(INFO + text("to be or not to be\n") + text("be"))
    (directory / "sub/b.warc.wet.gz").write_bytes(INFO + text("or else"))
    (directory / "c.warc.gz").write_bytes(
        INFO + page("<p><a href='http://b.org/'>b</a>") + page("<p>", "Apache")
    )
    return directory


def rows(path: Path) -> dict[str, int]:
    found = (line.split("\t") for line in path.read_text().splitlines())
    return {item: int(count) for item, count in found}


def test_counts_of_directories_and_manifests(crawl: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["count", "words", "-o", str(out / "words.tsv"), str(crawl)]) == 0
    assert (out / "words.tsv").read_bytes() == b"be\t3\nelse\t1\nnot\t1\nor\t2\nto\t2\n"
    (tmp_path / "list").write_text("a.warc.wet.gz\nsub/b.warc.wet.gz\n")
    manifest = ["--manifest", str(tmp_path / "list"), "--root", str(crawl)]
    assert main(["count", "words", "-o", str(out / "again.tsv.gz"), *manifest]) == 0
    assert gzip.decompress((out / "again.tsv.gz").read_bytes()) == (out / "words.tsv").read_bytes()
    for what, expected in (
        ("tags", {"a": 1, "p": 2}),
        ("servers", {"Apache": 1, "nginx": 1}),
        ("links", {"com.example org.b": 1}),
    ):
        assert main(["count", what, "-o", str(out / what), str(crawl / "c.warc.gz")]) == 0
        assert rows(out / what) == expected


def test_stdout_and_stdin(crawl: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("count", "words", "-o", "-", crawl / "a.warc.wet.gz")
    assert (done.returncode, done.stdout) == (0, b"be\t3\nnot\t1\nor\t1\nto\t2\n")
    assert done.stderr.decode() == "4 different words in 2 records of 1 archive\n"
    command = [sys.executable, "-m", "cdxmill", "count", "words", "-q", "-o", "-", "-"]
    piped = subprocess.run(
        command, input=(crawl / "a.warc.wet.gz").read_bytes(), capture_output=True, check=True
    )
    assert (piped.stdout, piped.stderr) == (done.stdout, b"")


def test_the_number_of_skipped_records_is_reported(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = record("response", b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<p>")
    (crawl / "d.warc.gz").write_bytes(INFO + bare)
    (crawl / "e.warc.gz").write_bytes(bare + page("<p>") + bare)
    assert main(["count", "servers", "-o", "-", str(crawl)]) == 0
    note = "2 different servers in 3 records of 5 archives\nnote: 3 responses without a Server field\n"
    assert capsys.readouterr().err.endswith(note)


def test_archives_without_such_records_are_named(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.tsv"
    assert main(["count", "words", "-o", str(out), str(crawl / "c.warc.gz")]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("c.warc.gz: has no words to count; give WET files")
    wets = [str(crawl / "a.warc.wet.gz"), str(crawl / "sub")]
    assert main(["count", "tags", "-o", str(out), *wets]) == 2
    assert (
        "2 archives have no tags to count; give WARC and ARC files with HTML pages" in capsys.readouterr().err
    )
    assert not out.exists()
    assert main(["count", "tags", "-o", str(out), str(crawl)]) == 0
    assert capsys.readouterr().err.count(": note: has no tags to count; they are counted in") == 2


def test_an_empty_archive_has_empty_counts(tmp_path: Path) -> None:
    (tmp_path / "a.warc.gz").write_bytes(INFO)
    assert main(["count", "words", "-o", str(tmp_path / "out"), str(tmp_path)]) == 0
    assert (tmp_path / "out").read_bytes() == b""


def test_an_existing_file_stays(crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out.tsv"
    out.write_text("mine")
    words = ["count", "words", "-o", str(out), str(crawl / "sub")]
    assert main(words) == 2
    assert "--replace" in capsys.readouterr().err
    assert out.read_text() == "mine"
    assert main([*words, "--replace"]) == 0
    assert rows(out) == {"or": 1, "else": 1}


def test_an_input_is_never_the_output(crawl: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = crawl / "a.warc.wet.gz"
    before = path.read_bytes()
    assert main(["count", "words", "--replace", "-o", str(crawl / "sub/../a.warc.wet.gz"), str(crawl)]) == 2
    assert "is an input; choose another output" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_what_cannot_be_read_is_reported_and_the_rest_is_counted(
    crawl: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    whole = (crawl / "a.warc.wet.gz").read_bytes()
    (crawl / "cut.warc.wet.gz").write_bytes(whole[:-9])
    (crawl / "empty.warc.gz").write_bytes(b"")
    out = tmp_path / "out.tsv"
    absent = str(crawl / "absent.warc.wet.gz")
    assert main(["count", "words", "-p", "1", "-o", str(out), str(crawl), absent]) == 1
    said = capsys.readouterr().err
    assert "cut.warc.wet.gz@" in said
    assert "the file is truncated inside a gzip" in said
    assert "empty.warc.gz@0: the file is empty" in said
    assert "absent.warc.wet.gz: " in said
    assert rows(out) == {"be": 5, "else": 1, "not": 2, "or": 3, "to": 4}


def test_if_everything_fails_nothing_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "bad.warc.gz").write_bytes(b"no archive")
    assert main(["count", "words", "-o", str(tmp_path / "out"), str(tmp_path / "bad.warc.gz")]) == 1
    assert "out: was not written, because nothing was counted" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_spilled_runs_and_processes_do_not_change_a_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = tmp_path / "wets"
    directory.mkdir()
    expected: Counter[bytes] = Counter()
    for number in range(5):
        words = [f"w{(number + 1) * n * n % 997}" for n in range(3000)]
        expected.update(word.encode() for word in words)
        parts = [text(" ".join(words[start : start + 100])) for start in range(0, 3000, 100)]
        (directory / f"{number}.warc.wet.gz").write_bytes(b"".join(parts))
    lines = b"".join(sorted(b"%b\t%d\n" % item for item in expected.items()))
    monkeypatch.setattr(cdxmill.commands.count, "HELD", 20_000)
    for processes in ("1", "2", "3"):
        out = tmp_path / processes
        assert main(["count", "words", "-q", "-p", processes, "-o", str(out), str(directory)]) == 0
        assert out.read_bytes() == lines


def test_an_archive_that_fails_at_its_end_is_not_counted_at_all(
    crawl: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def count_and_grow(*given: object) -> object:
        found = count_records(*given)  # type: ignore[arg-type]
        if not grown:
            grown.append(1)
            with (crawl / "a.warc.wet.gz").open("ab") as file:
                file.write(text("more"))
        return found

    grown: list[int] = []
    monkeypatch.setattr(cdxmill.commands.count, "count_records", count_and_grow)
    monkeypatch.setattr(cdxmill.commands.count, "HELD", 1)
    out = tmp_path / "out"
    assert (
        main(["count", "words", "-p", "1", "-o", str(out), str(crawl / "a.warc.wet.gz"), str(crawl / "sub")])
        == 1
    )
    assert "a.warc.wet.gz: changed while it was read" in capsys.readouterr().err
    assert rows(out) == {"or": 1, "else": 1}


def test_large_records_and_long_words(tmp_path: Path) -> None:
    """A record that readers do not hold is read as a whole."""
    numbers = random.Random(5)
    words = " ".join([f"{numbers.getrandbits(22):x}" for _ in range(600_000)])
    (tmp_path / "a.warc.wet.gz").write_bytes(text(words + " " + "y" * 5000))
    out = tmp_path / "out"
    assert main(["count", "words", "-q", "-o", str(out), str(tmp_path / "a.warc.wet.gz")]) == 0
    assert rows(out) == {**Counter(words.split()), "y" * MAX_ITEM: 1}


def is_read(path: Path, pid: int) -> bool:
    """Whether a process or one of its children has the file open."""
    with suppress(OSError):  # of a process that ends meanwhile
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        found = any(one.readlink() == path for one in Path(f"/proc/{pid}/fd").iterdir())
        return found or any(is_read(path, int(child)) for child in children)
    return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_run_that_is_stopped_leaves_nothing(crawl: Path, tmp_path: Path, number: signal.Signals) -> None:
    big = tmp_path / "big.warc.wet.gz"
    big.write_bytes(text("a b c " * 20000) * 4000)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "cdxmill", "count", "words", "-o", str(out / "x.tsv"), str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        while not is_read(big, process.pid):
            assert process.poll() is None
        process.send_signal(number)
        process.communicate()
    assert process.returncode in (130, -signal.SIGKILL)
    assert not list(out.glob("*"))


class Tags(HTMLParser):
    """The start tags of a page."""

    CDATA_CONTENT_ELEMENTS = ("script", "style", "title", "textarea", "xmp", "iframe", "noembed")  # type: ignore[misc]

    def __init__(self, html: bytes) -> None:
        super().__init__(convert_charrefs=False)
        self.found: Counter[bytes] = Counter()
        self.feed(html.decode("latin-1"))
        self.close()

    def handle_starttag(self, tag: str, attrs: object) -> None:
        if all(c.isascii() and (c.isalnum() or c in ":._-") for c in tag):
            self.found[tag.encode()] += 1


def counted_by_warcio(data: bytes) -> Counts:
    """Tags, servers and words of the responses and texts that warcio finds."""
    found: Counts = {"tags": Counter(), "servers": Counter(), "words": Counter()}
    for item in ArchiveIterator(BytesIO(data)):
        media = (item.rec_headers.get_header("Content-Type") or "").split(";")[0].strip().lower()
        if item.rec_type == "response" and item.http_headers:
            fields = item.http_headers.headers
            servers = {value.strip().encode("latin-1") for name, value in fields if name.lower() == "server"}
            found["servers"].update(servers - {b""})
            identified = item.rec_headers.get_header("WARC-Identified-Payload-Type")
            of_arc = media if item.format == "arc" else ""
            media = identified or item.http_headers.get_header("Content-Type") or of_arc
            body = item.content_stream().read()
            media = media.split(";")[0].strip().lower()
            is_typed = "/" in media and " " not in media  # not: text/html charset=utf-8
            is_html = media in HTML if is_typed else body[:14].lower() == b"<!doctype html"
            if is_html:
                found["tags"] += Tags(body).found
        elif item.rec_type == "resource" and media in HTML:
            found["tags"] += Tags(item.content_stream().read()).found
        elif item.rec_type in ("conversion", "resource") and media == "text/plain":
            text = item.content_stream().read().decode("utf-8", "surrogateescape")
            words = [word.encode("utf-8", "surrogateescape") for word in text.split()]
            found["words"].update(word[:MAX_ITEM] for word in words)
    return found


def in_memory(data: bytes) -> ReadAt:
    return lambda offset, size: data[offset : offset + size]


def different(archives: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    """Archives with different bytes, by name."""
    seen = set()
    for path in archives:
        data = path.read_bytes()
        digest = hashlib.sha1(data).digest()
        if digest not in seen and path.name not in SKIPPED:
            seen.add(digest)
            yield path.name, data


SKIPPED = {
    "baidu.warc.gz",  # html.parser takes half of a page for a script; lexbor finds the tags that cdxmill finds
    "fb.warc.gz",  # warcio cannot decode brotli
}


@pytest.mark.filterwarnings("ignore")
def test_counts_of_all_samples_are_those_of_warcio(sample_archives: list[Path]) -> None:
    compared = 0
    for name, data in different(sample_archives):
        if len(data) > 3 << 20:
            continue
        try:
            expected = counted_by_warcio(data)
        except (ArchiveLoadFailed, ValueError, KeyError, AttributeError, EOFError):
            continue
        for what, counts in expected.items():
            tally = new_tally()
            found = count_records(in_memory(data), COUNTERS[what], tally, lambda: None)
            if not found.findings.damage:
                lines = (line.split(b"\t") for line in tally.take(b"\n").splitlines())
                assert {item: int(count) for item, count in lines} == counts, (name, what)
                compared += bool(counts)
    assert compared > 200


def test_the_compiled_way_counts_all_samples_as_the_general_way_does(sample_archives: list[Path]) -> None:
    """The same counts, the same reports. Only members and frames are counted in the compiled way."""
    compared = 0
    for path in sample_archives:
        data = path.read_bytes()
        if not data.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")) or len(data) > 3 << 20:
            continue
        for what in ("tags", "servers", "words"):
            results = []
            for counter in (COUNTERS[what], COUNTERS[what]._replace(compiled="")):
                tally = new_tally()
                found = count_records(in_memory(data), counter, tally, lambda: None)
                read = (found.records, found.counted, found.skipped, found.findings)
                results.append((read, tally.take(b"\n")))
            assert results[0] == results[1], (path, what)
            compared += results[0][0][1] > 0
    assert compared > 100


def test_records_of_common_crawls_wat_files(samples: Path, tmp_path: Path) -> None:
    """Their JSON as it is. The records of the first file have LF line ends, so they are written again."""
    names = ("r-spark+sparkwarc/inst/samples/sample.wat", "commoncrawl+whirlwind-python/whirlwind.warc.wat")
    found = [
        line for name in names for line in (samples / name).read_bytes().splitlines() if line[:2] == b'{"'
    ]
    assert len(found) == 16
    servers, links = Counter[bytes](), Counter[bytes]()
    for text_of_json in found:
        envelope = json.loads(text_of_json)["Envelope"]
        response = envelope["Payload-Metadata"].get("HTTP-Response-Metadata", {})
        source = urlsplit(envelope["WARC-Header-Metadata"].get("WARC-Target-URI", "")).hostname
        servers.update(v.encode() for k, v in response.get("Headers", {}).items() if k.lower() == "server")
        for link in response.get("HTML-Metadata", {}).get("Links", []):
            target = urlsplit(link["url"]).hostname
            if link["path"] == "A@/href" and target and target != source:
                links[
                    b" ".join(".".join(host.split(".")[::-1]).encode() for host in (source or "", target))
                ] += 1
    path = tmp_path / "a.warc.wat.gz"
    path.write_bytes(b"".join(record("metadata", block, "application/json") for block in found))
    for what, expected in (("servers", servers), ("links", links)):
        assert main(["count", what, "-q", "--replace", "-o", str(tmp_path / "out"), str(path)]) == 0
        assert rows(tmp_path / "out") == {item.decode(): count for item, count in expected.items()} != {}
