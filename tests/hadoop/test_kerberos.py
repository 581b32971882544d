"""HDFS and YARN with Kerberos: whoever has a ticket can use all commands and jobs, by `hadoop fs`, which is said once."""

from __future__ import annotations

import gzip
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import RunCdxmill

from .conftest import HADOOP_DEV, Hadoop, ended_with_the_tests
from .fs_shell import FsShell

ROOT = Path(__file__).parents[2]
REALM, SERVICE, USER = "EXAMPLE.COM", "hdfs/localhost", "alice"
"""Names that secured.py gives keys."""
COMMAND = Path(sys.executable).parent / "cdxmill"
NOTE = "note: the cluster uses Kerberos; hadoop fs is used instead of WebHDFS, which takes longer\n"
HOME = f"hdfs:///user/{USER}"


@pytest.fixture(scope="module")
def secured(fetched: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hadoop]:
    with ended_with_the_tests(Hadoop(tmp_path_factory.mktemp("secured"))) as cluster:
        env = {**os.environ, "CDXMILL_HADOOP_DEV": str(cluster.directory), "PYTHONPATH": str(ROOT / "bin")}
        script = ROOT / "tests/hadoop/secured.py"
        done = subprocess.run([sys.executable, script], check=False, env=env, capture_output=True)
        assert done.returncode == 0, done.stderr.decode()
        yield cluster


def ticket(cluster: Hadoop, name: str, user: str) -> dict[str, str]:
    """Variables with which Hadoop's commands log in as a Kerberos name; cdxmill has no use for them."""
    keytab = str(cluster.directory / "kdc/keytab")
    return {"KRB5PRINCIPAL": f"{name}@{REALM}", "KRB5KEYTAB": keytab, "HADOOP_USER_NAME": user}


@pytest.fixture(scope="module")
def alices(secured: Hadoop) -> Iterator[FsShell]:
    """Hadoop's own commands, as the user with a ticket."""
    server = f"-Djava.security.krb5.conf={secured.directory}/kdc/krb5.conf"
    env = {**ticket(secured, USER, USER), "JAVA_TOOL_OPTIONS": server}
    shell = FsShell(HADOOP_DEV, secured.directory, env)
    yield shell
    shell.close()


def test_the_contract_of_storages_is_kept(secured: Hadoop) -> None:
    checks = Path(__file__).with_name("hdfs_checks.py")
    words = ("-p", "no:cacheprovider", "-k", "names_are_taken or read_in_pieces", checks)
    secured.run(sys.executable, "-m", "pytest", *words, env=ticket(secured, SERVICE, "root"))


def test_without_a_ticket_one_line_says_what_to_do(secured: Hadoop) -> None:
    done = secured.run(COMMAND, "lookup", f"{HOME}/C", "example.com", check=False)
    assert done.returncode == 3
    reason = "there is no valid Kerberos ticket; run kinit"
    assert done.stderr.decode() == f"{NOTE}cdxmill: {HOME}/C/cluster.idx: {reason}\n"


def test_the_index_job_runs_and_a_command_reads_what_it_wrote(
    secured: Hadoop, alices: FsShell, pywb_warcs: Path, run_cdxmill: RunCdxmill, tmp_path: Path
) -> None:
    alice = ticket(secured, USER, USER)
    archive = pywb_warcs / "example.warc.gz"
    (tmp_path / "list").write_text(f"{archive.name}\n")
    alices.run("-mkdir", f"{HOME}/warcs")
    alices.run("-put", archive, f"{HOME}/warcs")
    job = (ROOT / "jobs/indexwarcsjob.py", "--no-conf", "-r", "hadoop", "--python-bin", sys.executable)
    places = ("--warc_bucket", f"{HOME}/warcs", "--cdx_bucket", f"{HOME}/cdx")
    done = secured.run(sys.executable, *job, *places, tmp_path / "list", env=alice)
    assert done.stderr.decode().count(NOTE) == 1
    assert "1 of 1 archives indexed, 0 with failures" in done.stderr.decode()
    assert run_cdxmill("index", "-q", "-o", tmp_path / "cdx", archive).returncode == 0
    made = alices.run("-cat", f"{HOME}/cdx/example.cdx.gz")
    assert gzip.decompress(made) == gzip.decompress((tmp_path / "cdx/example.cdx.gz").read_bytes())
    words = ("-q", "-s", "1", "--location", ".", "-o")
    read = secured.run(COMMAND, "zipnum", *words, tmp_path / "C", f"{HOME}/cdx", env=alice)
    assert read.stderr.decode() == NOTE
    assert run_cdxmill("zipnum", *words, tmp_path / "D", tmp_path / "cdx").returncode == 0
    assert (tmp_path / "C/cdx-00000.gz").read_bytes() == (tmp_path / "D/cdx-00000.gz").read_bytes()
