"""`cdxmill export --to wacz`: one file that holds the archives of a query, whole or absent."""

from __future__ import annotations

import fcntl
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, utils
from warcio.archiveiterator import ArchiveIterator

from cdxmill.cli.main import main

from ..commands.test_get import url_of, warc_record
from ..conftest import RunCdxmill
from ..docs.pages import DOCS, fences
from ..material.processes import stopped_at
from .conftest import export

NAMES = ("iana.warc.gz", "example.warc.gz", "example.arc.gz", "dupes.warc.gz")
STORED = {"indexes/index.cdx.gz", "indexes/index.idx", "pages/pages.jsonl"}


@pytest.fixture(scope="module")
def source(pywb_warcs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """warcs/ with archives, and the cluster c of them."""
    directory = tmp_path_factory.mktemp("source")
    (directory / "warcs").mkdir()
    for name in NAMES:
        shutil.copyfile(pywb_warcs / name, directory / "warcs" / name)
    build = ["build", "-q", "-p", "1", "-s", "1", "-o", str(directory / "c"), str(directory / "warcs")]
    assert main(build) == 0
    return directory


@pytest.fixture
def here(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory, with a fixed time for outputs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    return tmp_path


def members(wacz: Path | str) -> dict[str, bytes]:
    """The files of a WACZ, which is compared with the specification."""
    with zipfile.ZipFile(wacz) as package:
        assert package.testzip() is None
        assert {one.compress_type for one in package.infolist()} == {zipfile.ZIP_STORED}
        assert len(package.namelist()) == len(set(package.namelist()))
        found = {name: package.read(name) for name in package.namelist()}
    check_package(found)
    check_index(found)
    return found


def check_package(found: dict[str, bytes]) -> None:
    """datapackage.json lists each other file with its size and its digest, and its own digest is right."""
    package = json.loads(found["datapackage.json"])
    assert (package["profile"], package["wacz_version"]) == ("data-package", "1.1.1")
    listed = {one["path"]: one for one in package["resources"]}
    assert len(listed) == len(package["resources"]) == len({one["name"] for one in package["resources"]})
    assert found.keys() - listed.keys() == {"datapackage.json", "datapackage-digest.json"}
    assert listed.keys() >= STORED
    for path, one in listed.items():
        assert one["hash"] == f"sha256:{hashlib.sha256(found[path]).hexdigest()}"
        assert one["bytes"] == len(found[path])
        assert re.fullmatch(r"[-a-z0-9._/]+", one["name"])
    digest = json.loads(found["datapackage-digest.json"])
    assert digest["path"] == "datapackage.json"
    assert digest["hash"] == f"sha256:{hashlib.sha256(found['datapackage.json']).hexdigest()}"


def check_index(found: dict[str, bytes]) -> None:
    """Each block of the index is where its line says, and each line of it leads to a record."""
    head, *blocks = found["indexes/index.idx"].splitlines()
    assert json.loads(head.split(b" ", 2)[2]) == {"format": "cdxj-gzip-1.0", "filename": "index.cdx.gz"}
    lines = []
    for row in blocks:
        place = json.loads(row[row.index(b"{") :])
        block = found["indexes/index.cdx.gz"][place["offset"] : place["offset"] + place["length"]]
        assert place["digest"] == f"sha256:{hashlib.sha256(block).hexdigest()}"
        text = gzip.decompress(block).splitlines()
        assert text[0].startswith(row[: row.index(b" {")] + b" ")
        lines += text
    assert lines == sorted(set(lines)) == gzip.decompress(found["indexes/index.cdx.gz"]).splitlines()
    for line in lines:
        fields = json.loads(line.split(b" ", 2)[2])
        start, size = int(fields["offset"]), int(fields["length"])
        member = found[f"archive/{fields['filename']}"][start : start + size]
        (record,) = ArchiveIterator(io.BytesIO(member))
        assert record.rec_headers.get_header("WARC-Target-URI") == fields["url"]


def pages_of(found: dict[str, bytes]) -> list[dict[str, Any]]:
    head, *rows = [json.loads(row) for row in found["pages/pages.jsonl"].splitlines()]
    assert head == {"format": "json-pages-1.0", "id": "pages", "title": "All Pages"}
    assert len({row["id"] for row in rows}) == len(rows)
    return rows


def left(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def test_the_captures_of_a_query_are_one_wacz(source: Path, here: Path, run_cdxmill: RunCdxmill) -> None:
    words = ["--title", "<b>A & B</b>", "--description", "*All* of it"]
    assert export(source / "c", "*.iana.org", "example.com", "--to", "wacz", "-o", "s.wacz", *words) == 0
    assert left(here) == ["s.wacz"]
    found = members("s.wacz")
    package = json.loads(found["datapackage.json"])
    assert (package["title"], package["description"]) == ("<b>A & B</b>", "*All* of it")
    assert package["created"] == "2023-11-14T22:13:20Z"
    pages = pages_of(found)
    assert {"url": "http://www.iana.org/about", "ts": "2014-01-26T20:07:06Z"}.items() <= pages[3].items()
    wanted = run_cdxmill("lookup", source / "c", "*.iana.org").stdout.splitlines()
    wanted += run_cdxmill("lookup", source / "c", "example.com").stdout.splitlines()
    lines = gzip.decompress(found["indexes/index.cdx.gz"]).splitlines()
    assert sorted(line.split(b" {")[0] for line in lines) == sorted(line.split(b" {")[0] for line in wanted)
    with (source / "warcs/iana.warc.gz").open("rb") as file:
        file.seek(334)
        assert file.read(2258) in found["archive/s-00000.warc.gz"]


def test_py_wacz_finds_it_valid(source: Path, here: Path) -> None:
    """It does not find one with a changed archive valid."""
    assert export(source / "c", "--to", "wacz", "-o", "s.wacz", "--title", "ä <b>") == 0
    command = [str(Path(sys.executable).with_name("wacz")), "validate", "-f"]
    done = subprocess.run([*command, "s.wacz"], check=False, capture_output=True)
    assert done.returncode == 0, done.stdout
    assert b"the passed WACZ is valid" in done.stdout
    with zipfile.ZipFile("s.wacz") as package, zipfile.ZipFile("changed.wacz", "w") as changed:
        for name in package.namelist():
            data = package.read(name)
            changed.writestr(name, data[:-1] + b"!" if name.startswith("archive/") else data)
    assert subprocess.run([*command, "changed.wacz"], check=False, capture_output=True).returncode != 0


def test_other_commands_read_the_wacz(source: Path, here: Path, run_cdxmill: RunCdxmill) -> None:
    assert export(source / "c", "--to", "wacz", "-o", "s.wacz") == 0
    built = run_cdxmill("build", "-q", "-s", "1", "-o", "again", "s.wacz", cwd=here)
    assert (built.returncode, built.stderr) == (0, b"")
    lines = run_cdxmill("lookup", "again", "*", cwd=here).stdout
    assert lines == gzip.decompress(members("s.wacz")["indexes/index.cdx.gz"])
    checked = run_cdxmill("verify", "-q", "again", "--archives", "s.wacz", cwd=here)
    assert (checked.returncode, checked.stderr) == (0, b"")
    page = run_cdxmill("get", "again", "http://www.iana.org/", "--payload", "--decode", cwd=here).stdout
    assert b"<title>Internet Assigned Numbers Authority</title>" in page


def test_a_killed_export_ends_with_the_same_bytes(source: Path, here: Path, run_cdxmill: RunCdxmill) -> None:
    command: list[str | Path] = ["export", "-q", "-p", "2", source / "c", "--to", "wacz", "-o"]
    assert run_cdxmill(*command, "alone/s.wacz", cwd=here).returncode == 0
    for number, pattern in enumerate(
        (".s.wacz.work/.work/copy/s/.work", "**/s-00000.tsv", "**/.package.*.tmp")
    ):
        call = [*command, here / str(number) / "s.wacz", "--replace"]
        stopped_at(here / str(number), pattern, call, tries=20)
        done = run_cdxmill(*call)
        assert (done.returncode, done.stderr) == (0, b"")
        assert (here / str(number) / "s.wacz").read_bytes() == (here / "alone/s.wacz").read_bytes()
        assert left(here / str(number)) == ["s.wacz"]


def test_a_killed_export_of_another_query_is_not_continued(source: Path, here: Path) -> None:
    command: list[str | Path] = [source / "c", "--to", "wacz", "-o", here / "s.wacz"]
    stopped_at(here, "**/s-00000.tsv", ["export", "-q", *command])
    Path("s.wacz").unlink(missing_ok=True)
    assert export(*command, "*.example.com") == 0
    assert {page["url"].partition("example.com")[0] for page in pages_of(members("s.wacz"))} == {"http://"}


def test_a_second_run_beside_it_is_refused(source: Path, here: Path, run_cdxmill: RunCdxmill) -> None:
    Path(".s.wacz.work").mkdir()
    with Path(".s.wacz.work/.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = run_cdxmill("export", source / "c", "--to", "wacz", "-o", "s.wacz", cwd=here)
    assert (done.returncode, left(here)) == (2, [".s.wacz.work"])
    assert b"another run writes to this directory" in done.stderr


def test_damage_costs_a_record_and_is_listed(source: Path, here: Path, run_cdxmill: RunCdxmill) -> None:
    shutil.copytree(source / "warcs", "warcs")
    damaged = bytearray(Path("warcs/iana.warc.gz").read_bytes())
    damaged[334 + 1000] ^= 255
    Path("warcs/iana.warc.gz").write_bytes(damaged)
    Path("warcs/dupes.warc.gz").unlink()
    command = ["export", "-q", source / "c", "--archives", "warcs", "--to", "wacz", "-o", "s.wacz"]
    done = run_cdxmill(*command, cwd=here)
    assert done.returncode == 1
    assert b"warcs/iana.warc.gz" in done.stderr
    assert left(here) == ["_s.wacz.failures", "s.wacz", "warcs"]
    listed = Path("_s.wacz.failures").read_text()
    assert ("http://www.iana.org/ 20140126200624" in listed, "dupes.warc.gz" in listed) == (True, True)
    lines = gzip.decompress(members("s.wacz")["indexes/index.cdx.gz"]).splitlines()
    assert len(lines) == len(run_cdxmill("lookup", source / "c", "*").stdout.splitlines()) - listed.count(
        "\n"
    )
    shutil.copytree(source / "warcs", "warcs", dirs_exist_ok=True)
    assert run_cdxmill(*command, "--replace", cwd=here).returncode == 0
    assert left(here) == ["s.wacz", "warcs"]


def test_what_a_revisit_refers_to_is_in_the_wacz(
    here: Path, run_cdxmill: RunCdxmill, pywb_warcs: Path
) -> None:
    for name in ("example.warc.gz", "dupes.warc.gz"):
        shutil.copyfile(pywb_warcs / name, name)
    assert run_cdxmill("index", "-q", "-o", "i.cdxj", "dupes.warc.gz", cwd=here).returncode == 0
    lines = Path("i.cdxj").read_bytes().splitlines()
    revisits = [line for line in lines if b"com,example)/" in line and b"warc/revisit" in line]
    assert len(revisits) == 1
    words = ["--filter", "mime:warc/revisit", "--archives", "."]
    assert export("i.cdxj", "example.com", *words, "--to", "wacz", "-o", "s.wacz") == 0
    found = gzip.decompress(members("s.wacz")["indexes/index.cdx.gz"]).splitlines()
    digests = {json.loads(line.split(b" ", 2)[2])["digest"] for line in found if b"warc/revisit" not in line}
    assert digests == {json.loads(line.split(b" ", 2)[2])["digest"] for line in revisits}


def test_two_archives_of_one_name_are_both_in_it(here: Path) -> None:
    for name in ("a", "b"):
        Path(name).mkdir()
        page = f"<title>{name}</title>".encode()
        Path(name, "x.warc").write_bytes(
            warc_record(
                url_of(f"<i>{name}"), b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n" + page, page
            )
        )
    assert main(["build", "-q", "-p", "1", "-s", "1", "-o", "c", "--dir-root", ".", "a", "b"]) == 0
    assert export("c", "--to", "wacz", "-o", "s.wacz") == 0
    assert len(pages_of(members("s.wacz"))) == 2


def test_a_program_signs_the_wacz(source: Path, here: Path) -> None:
    key = ec.generate_private_key(ec.SECP384R1())
    kinds = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    Path("key.pem").write_bytes(key.private_bytes(*kinds))
    (program,) = fences(DOCS / "export.md", "python")
    Path("sign.py").write_text(program)
    command: list[str | Path] = [
        source / "c",
        "*.example.com",
        "--to",
        "wacz",
        "-o",
        "s.wacz",
        "--sign-command",
    ]
    assert export(*command, f"{sys.executable} sign.py") == 0
    digest = json.loads(members("s.wacz")["datapackage-digest.json"])
    signed = digest["signedData"]
    assert (signed["hash"], signed["created"]) == (digest["hash"], "2023-11-14T22:13:20Z")
    raw = b64decode(signed["signature"])
    numbers = int.from_bytes(raw[:48], "big"), int.from_bytes(raw[48:], "big")
    public = serialization.load_der_public_key(b64decode(signed["publicKey"]))
    assert isinstance(public, ec.EllipticCurvePublicKey)
    public.verify(utils.encode_dss_signature(*numbers), digest["hash"].encode(), ec.ECDSA(hashes.SHA256()))


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("false", b"ended with 1 (without a message)"),
        ("echo {}", b"printed no JSON object with a signature"),
        ("echo {", b"printed no JSON object with a signature"),
        ("../not-a-program", b"--sign-command ../not-a-program: Exec format error; run it again"),
        ("""echo '{"signature": "x", "hash": "y"}'""", b"signed another hash or time"),
    ],
)
def test_a_program_that_does_not_sign_stops_the_export(
    program: str, message: bytes, source: Path, here: Path, run_cdxmill: RunCdxmill
) -> None:
    (here.parent / "not-a-program").write_bytes(b"\x7fELF")
    (here.parent / "not-a-program").chmod(0o700)
    command = ["export", "-q", source / "c", "*.example.com", "--to", "wacz", "-o", "s.wacz"]
    done = run_cdxmill(*command, "--sign-command", program, cwd=here)
    assert (done.returncode, left(here)) == (3, [".s.wacz.work"])
    assert message in done.stderr
    assert run_cdxmill(*command, cwd=here).returncode == 0
    assert left(here) == ["s.wacz"]


def test_a_file_that_appears_while_it_is_written_stays(
    source: Path, here: Path, run_cdxmill: RunCdxmill
) -> None:
    sign = """sh -c 'echo mine > s.wacz; echo "{\\"signature\\": \\"x\\"}"'"""
    command = ["export", "-q", source / "c", "*.example.com", "--to", "wacz", "-o", "s.wacz"]
    done = run_cdxmill(*command, "--sign-command", sign, cwd=here)
    assert (done.returncode, b"already exists" in done.stderr) == (2, True), done.stderr
    assert (here / "s.wacz").read_text() == "mine\n"
    assert run_cdxmill(*command, "--sign-command", sign, "--replace", cwd=here).returncode == 0
    assert (here / "s.wacz").read_bytes().startswith(b"PK")


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("there.wacz", 2, b"already exists; use --replace"),
        ("directory.wacz --replace", 2, b"is a directory"),
        ("a.zip", 2, b"ends in .wacz"),
        ("i.wacz --replace --archives i.wacz", 2, b"is an input"),
        ("a.wacz --sign-command nothing-of-this-name", 2, b"is not found"),
        ("a.wacz --sign-command 'x", 2, b"--sign-command 'x: No closing quotation"),
        ("a.wacz --sign-command=", 2, b"is empty"),
        ("fifo.wacz --replace", 2, b"fifo.wacz: is not a file; choose another output file"),
        ("a.wacz --fl url", 2, b"--fl"),
        ("a.wacz none.example.net", 1, b"no capture matches the query; no WACZ is written"),
    ],
)
def test_what_is_refused_changes_nothing(
    words: str, status: int, message: bytes, source: Path, here: Path, run_cdxmill: RunCdxmill
) -> None:
    Path("there.wacz").write_text("precious")
    Path("directory.wacz").mkdir()
    os.mkfifo("fifo.wacz")
    with zipfile.ZipFile("i.wacz", "w") as package:
        package.write(source / "warcs/iana.warc.gz", "archive/iana.warc.gz")
    output, *rest = words.split()
    before = {path: path.is_file() and path.read_bytes() for path in here.iterdir()}
    done = run_cdxmill("export", source / "c", *rest, "--to", "wacz", "-o", output, cwd=here)
    assert (done.returncode, done.stdout) == (status, b"")
    assert message in done.stderr
    assert {path: path.is_file() and path.read_bytes() for path in here.iterdir()} == before


def test_several_queries_are_for_a_wacz(source: Path, here: Path, run_cdxmill: RunCdxmill) -> None:
    done = run_cdxmill("export", source / "c", "a.com", "b.com", "--to", "csv", "-o", "t.csv", cwd=here)
    assert (done.returncode, left(here)) == (2, [])
    assert b"takes one QUERY" in done.stderr
