"""What a change asks of S3: as many requests for a cluster of many shards as for one of few."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import cdxmill
from tests.material.cdx_files import cdxj, write_gzip

PLACE = '{"filename": "a.warc.gz", "offset": "1", "length": "5"}'
MOST = 110
"""Of these, about 20 are for the lock and the switch of each file."""


def requests_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    told = [record.getMessage() for record in caplog.records if record.name == "werkzeug"]
    caplog.clear()
    return [found[0] for line in told if (found := re.search(r"(?:GET|PUT|HEAD|POST|DELETE) \S+", line))]


def test_the_number_of_requests_does_not_depend_on_the_shards(
    bucket: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    write_gzip(tmp_path / "a.cdxj.gz", [cdxj(f"com,a)/{number:05d}", rest=PLACE) for number in range(2000)])
    write_gzip(tmp_path / "b.cdxj.gz", [cdxj("com,a)/00001x", rest=PLACE)])
    counts: dict[str, list[int]] = {"add": [], "remove": [], "remove keys": []}
    for shards in (3, 12):
        place = f"{bucket}/{shards}/C"
        cdxmill.zipnum(tmp_path / "a.cdxj.gz", output=tmp_path / f"{shards}", shards=shards, numlines=10)
        cdxmill.publish(tmp_path / f"{shards}", place)
        (tmp_path / "keys").write_text("com,a)/00001\n")
        caplog.clear()
        cdxmill.add(place, tmp_path / "b.cdxj.gz", cdx=True, processes=1)
        counts["add"].append(len(requests_of(caplog)))
        cdxmill.remove(place, "a.com/00001x", keep_old=0, processes=1)
        counts["remove"].append(len(requests_of(caplog)))
        cdxmill.remove(place, keys=tmp_path / "keys", keep_old=0, processes=1)
        asked = requests_of(caplog)
        counts["remove keys"].append(len(asked))
        assert not [one for one in asked if re.search(r"(cdx|part)-0000[1-9]", one)]
    assert all(few == many <= MOST for few, many in counts.values()), counts
