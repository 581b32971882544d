"""A counting job of a user on EMR: its step, and what is in S3 then."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest
from warcio.archiveiterator import ArchiveIterator

from .conftest import ROOT
from .emr_server import BUCKET, KEYS, Emr
from .test_emr import RunStep, command, emr, run_step

__all__ = ["emr", "run_step"]  # fixtures
EXAMPLE = re.search(r"```python\n(.*?)```", (ROOT / "docs/analysing.md").read_text(), re.S)
NAMES = ("iana.warc.gz", "example.warc.gz", "absent.warc.gz")


@pytest.fixture
def manifest(emr: Emr, run_step: RunStep, pywb_warcs: Path) -> str:
    """Of two archives in S3, and one that is not there. `run_step` writes the settings."""
    for name in NAMES[:2]:
        emr.put(f"warcs/{name}", (pywb_warcs / name).read_bytes())
    return emr.put("warc.paths", "".join(f"warcs/{name}\n" for name in NAMES).encode())


def run(emr: Emr, settings: Path, script: Path, *words: str) -> subprocess.CompletedProcess[bytes]:
    given = ["--conf-path", str(settings), "-r", "emr", "--warc_bucket", f"s3://{BUCKET}", *words]
    env = {**os.environ, **KEYS, "AWS_ENDPOINT_URL_S3": emr.url}
    return subprocess.run(
        [sys.executable, str(script), *given], env=env, cwd=ROOT, capture_output=True, check=False
    )


def test_the_example_of_the_page(emr: Emr, manifest: str, tmp_path: Path) -> None:
    """Its counts and its failures are in S3, and nothing else is left there."""
    assert EXAMPLE is not None
    (tmp_path / "languages.py").write_text(EXAMPLE[1].replace('b"conversion"', 'b"response"'))
    before, output = set(emr.objects()), f"s3://{BUCKET}/counts"
    done = run(
        emr, tmp_path / "mrjob.conf", tmp_path / "languages.py", "-q", "--output-dir", output, manifest
    )
    assert emr.trouble == []
    assert done.returncode == 1, done.stderr.decode()
    assert re.search(rb"^s3://.*/absent.warc.gz: cannot be read \(404 Not Found\)", done.stderr, re.M)
    (step,) = emr.steps
    assert command(step.option("-mapper"))[:3] == ["count", "--job", "LanguageCount"]
    assert command(step.option("-reducer")) == ["sum"]
    found = {url.removeprefix(output): data for url, data in emr.objects().items() if url not in before}
    failures, counts = found.values()
    assert list(found) == ["/_failures-00000", "/part-00000"]
    assert counts == b"unknown\t%d\n" % _responses(emr)
    assert b"/absent.warc.gz\tcannot be read (404 Not Found)\tcheck the bucket and the key\n" in failures


def _responses(emr: Emr) -> int:
    """Their number in the archives, as another program finds them."""
    made = emr.objects()
    archives = [made[f"s3://{BUCKET}/warcs/{name}"] for name in NAMES[:2]]
    return sum(item.rec_type == "response" for data in archives for item in ArchiveIterator(BytesIO(data)))
