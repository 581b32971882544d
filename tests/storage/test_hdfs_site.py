"""Where the web addresses of name nodes come from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from cdxmill.errors import UsageError
from cdxmill.storage.hadoop import site
from cdxmill.storage.hadoop.site import hadoop_command, same_location, use_command, web_addresses

WriteConf = Callable[..., None]
HA = {
    "dfs.ha.namenodes.archive": "nn1, nn2",
    "dfs.namenode.http-address.archive.nn1": "one.example:9870",
    "dfs.namenode.http-address.archive.nn2": "two.example:50070",
}


@pytest.fixture
def write_conf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteConf:
    """Writes a file of Hadoop's configuration, of which HADOOP_CONF_DIR has the folder."""
    monkeypatch.setenv("HADOOP_CONF_DIR", str(tmp_path))

    def write(name: str, settings: dict[str, str]) -> None:
        rows = "".join(
            f"<property><name>{key}</name>\n  <value> {value} </value></property>\n"
            for key, value in settings.items()
        )
        (tmp_path / name).write_text(f'<?xml version="1.0"?>\n<configuration>{rows}</configuration>')

    return write


@pytest.mark.parametrize("authority", ["namenode", "namenode:9000"])
def test_the_port_is_hadoop_s_own_where_nothing_is_set(authority: str) -> None:
    assert web_addresses(authority) == ("http://namenode:9870",)


def test_what_is_said_outright_wins(write_conf: WriteConf, monkeypatch: pytest.MonkeyPatch) -> None:
    write_conf("hdfs-site.xml", HA)
    monkeypatch.setenv("CDXMILL_WEBHDFS", "https://gate:1/, http://other:2")
    for authority in ("", "archive", "namenode:9000"):
        assert web_addresses(authority) == ("https://gate:1", "http://other:2")


def test_a_name_service_stands_for_all_its_name_nodes(write_conf: WriteConf) -> None:
    write_conf("core-site.xml", {"fs.defaultFS": "hdfs://archive"})
    write_conf("hdfs-site.xml", HA)
    both = ("http://one.example:9870", "http://two.example:50070")
    assert web_addresses("archive") == web_addresses("") == both
    assert web_addresses("elsewhere:9000") == ("http://elsewhere:9870",)


def test_the_default_file_system_has_the_address_of_the_configuration(write_conf: WriteConf) -> None:
    write_conf("core-site.xml", {"fs.defaultFS": "hdfs://namenode:9000"})
    write_conf("hdfs-site.xml", {"dfs.namenode.http-address": "web.example:1234"})
    assert web_addresses("") == web_addresses("namenode:9000") == web_addresses("namenode")
    assert web_addresses("") == ("http://web.example:1234",)
    assert web_addresses("elsewhere") == ("http://elsewhere:9870",)


@pytest.mark.parametrize("everywhere", ["0.0.0.0:1234", ":1234"])
def test_a_name_node_that_listens_everywhere_is_on_its_host(write_conf: WriteConf, everywhere: str) -> None:
    write_conf("core-site.xml", {"fs.defaultFS": "hdfs://namenode:9000"})
    write_conf("hdfs-site.xml", {"dfs.namenode.http-address": everywhere})
    assert web_addresses("") == ("http://namenode:1234",)


def test_a_task_of_hadoop_finds_it_in_its_environment(
    write_conf: WriteConf, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_conf("core-site.xml", {"fs.defaultFS": "hdfs://wrong:9000"})
    monkeypatch.setenv("fs_defaultFS", "hdfs://archive")
    for name, value in HA.items():
        monkeypatch.setenv(name.replace(".", "_").replace("-", "_"), value)
    assert web_addresses("") == ("http://one.example:9870", "http://two.example:50070")


def test_an_address_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("dfs_namenode_http_address", "127.0.0.1:9870")
    assert web_addresses("") == ("http://127.0.0.1:9870",)


@pytest.mark.parametrize("default", ["", "file:///", "s3a://bucket"])
def test_without_a_default_file_system_a_host_has_to_be_named(write_conf: WriteConf, default: str) -> None:
    write_conf("core-site.xml", {"fs.defaultFS": default})
    with pytest.raises(UsageError, match="use hdfs://HOST/PATH"):
        web_addresses("")


def test_a_configuration_that_is_damaged_is_told(tmp_path: Path, write_conf: WriteConf) -> None:
    (tmp_path / "core-site.xml").write_text("<configuration>")
    with pytest.raises(UsageError, match=r"core-site.xml: cannot be read \(no element found"):
        web_addresses("namenode")


def test_a_name_node_without_an_address_is_not_asked(write_conf: WriteConf) -> None:
    write_conf("core-site.xml", {"fs.defaultFS": "hdfs://archive"})
    write_conf("hdfs-site.xml", {**HA, "dfs.ha.namenodes.archive": "nn1,, nn3 ,nn2"})
    assert web_addresses("archive") == ("http://one.example:9870", "http://two.example:50070")


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        ("hdfs:///a/b", "hdfs://names:9000/a/b/", True),
        ("hdfs://names/a", "hdfs://names:9000//a", True),
        ("hdfs://archive/a", "hdfs://one.example/a", False),
        ("hdfs:///a", "hdfs://other:9000/a", False),
        ("hdfs:///a", "hdfs:/b", False),
        ("hdfs://names/a", "hdfs://names/b", False),
    ],
)
def test_two_urls_are_one_file_if_the_same_name_nodes_have_it(
    one: str, other: str, is_same: bool, write_conf: WriteConf
) -> None:
    write_conf("core-site.xml", {"fs.defaultFS": "hdfs://names:9000"})
    write_conf("hdfs-site.xml", HA)
    assert same_location(one, other) == same_location(other, one) == is_same


def test_a_url_is_the_same_as_itself_whatever_the_default_file_system_is() -> None:
    assert same_location("hdfs:///a/", "hdfs:/a")
    with pytest.raises(UsageError, match="needs a default file system"):
        same_location("hdfs:///a", "hdfs://names/a")


def test_the_hadoop_command_is_that_of_the_job_or_of_the_first_home_or_of_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def install(name: str, mode: int) -> str:
        path = tmp_path / name / "bin/hadoop"
        path.parent.mkdir(parents=True)
        path.touch()
        path.chmod(mode)
        return str(path)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(site, "_USUAL_PATHS", (str(tmp_path / "usual/bin/hadoop"),))
    for name in ("HADOOP_HOME", "HADOOP_COMMON_HOME", "HADOOP_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "shell/bin"))
    install("None", 0o755)
    assert hadoop_command() == []
    usual = install("usual", 0o755)
    assert hadoop_command() == [usual]
    shell = install("shell", 0o755)
    assert hadoop_command() == [shell]
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "absent"))
    monkeypatch.setenv("HADOOP_COMMON_HOME", str(tmp_path / "common"))
    install("common", 0o644)
    assert hadoop_command() == [shell], "a file that cannot be run is none"
    monkeypatch.setenv("HADOOP_PREFIX", str(tmp_path / "prefix"))
    prefix = install("prefix", 0o755)
    assert hadoop_command() == [prefix]
    monkeypatch.setattr(site, "_given", [])
    use_command(["/own/hadoop", "--config", "/conf"])
    assert hadoop_command() == ["/own/hadoop", "--config", "/conf"]
