"""`hadoop fs` in place of WebHDFS: when it is used, and what its errors become. tests/hadoop/test_kerberos.py runs the real one."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cdxmill.errors import AbsentError, InputError, OutageError, RefusedError, StoppedError
from cdxmill.storage.cache import open_cached
from cdxmill.storage.hadoop import hadoop_fs, hdfs, pick
from cdxmill.storage.location import locate
from cdxmill.storage.reading import look

from .contract import check_storage, check_writing

URL = "hdfs://names:8020/a"
SETTINGS = [
    ("hadoop.security.authentication", "KERBEROS", "the cluster uses Kerberos"),
    ("dfs.http.policy", "https_only", "the cluster uses TLS only"),
    ("dfs.webhdfs.enabled", "False", "WebHDFS is turned off"),
]


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """HADOOP_CONF_DIR, which says that the cluster uses Kerberos."""
    directory = tmp_path / "conf"
    directory.mkdir()
    configure(directory, "hadoop.security.authentication", "kerberos")
    monkeypatch.setenv("HADOOP_CONF_DIR", str(directory))
    monkeypatch.delenv("CDXMILL_WEBHDFS", raising=False)
    yield directory
    pick._picked.cache_clear()
    pick._say_once.cache_clear()


def configure(directory: Path, name: str, value: str) -> None:
    values = {name: value, "fs.defaultFS": "hdfs://names:8020"}
    properties = (
        f"<property><name>{key}</name><value>{text}</value></property>" for key, text in values.items()
    )
    (directory / "core-site.xml").write_text(f"<configuration>{''.join(properties)}</configuration>")


@pytest.fixture
def hadoop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A hadoop command to be written."""
    path = tmp_path / "home/bin/hadoop"
    path.parent.mkdir(parents=True)
    monkeypatch.setenv("HADOOP_HOME", str(tmp_path / "home"))
    return path


def write(path: Path, script: str) -> None:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_it_keeps_the_contract_of_storages(
    hadoop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell = Path(__file__).with_name("hadoop_shell.py")
    write(hadoop, f'exec {sys.executable} -I -S {shell} "$@"')
    monkeypatch.setenv("HADOOP_SHELL_ROOT", str(tmp_path))

    def put(name: str, body: bytes) -> str:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(body)
        return f"hdfs://names:8020/{name}"

    check_storage(put)
    check_writing("hdfs://names:8020/written")
    old, new = (locate(f"hdfs://names:8020/{name}") for name in ("old", "new"))
    for name in ("old", "new"):
        (tmp_path / name).mkdir()
    (tmp_path / "old").chmod(0o700)
    new.take_mode(locate("hdfs://names:8020/absent"))
    new.take_mode(old)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(("name", "value", "reason"), SETTINGS)
def test_it_is_used_if_the_settings_rule_out_webhdfs_and_that_is_said_once(
    settings: Path, hadoop: Path, capsys: pytest.CaptureFixture[str], name: str, value: str, reason: str
) -> None:
    configure(settings, name, value)
    write(hadoop, "printf content")
    assert locate(URL).read_bytes() == locate(URL).read_bytes() == b"content"
    note = f"note: {reason}; hadoop fs is used instead of WebHDFS, which takes longer\n"
    assert capsys.readouterr().err == note


def test_an_address_of_the_user_is_asked_whatever_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDXMILL_WEBHDFS", "http://127.0.0.1:1")
    assert pick.storage_of(URL) is hdfs


def test_it_is_used_if_nothing_answers_at_that_address(
    hadoop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CDXMILL_WEBHDFS", "http://127.0.0.1:1")
    write(hadoop, "printf content")
    assert locate(URL).read_bytes() == b"content"
    assert "hadoop fs is used instead of WebHDFS" in capsys.readouterr().err


def test_without_a_hadoop_command_both_reasons_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HADOOP_HOME", "HADOOP_COMMON_HOME", "HADOOP_PREFIX"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(InputError, match="uses Kerberos, and there is no hadoop command; set HADOOP_HOME"):
        locate(URL).read_bytes()


def test_many_files_are_copied_with_several_commands(hadoop: Path, tmp_path: Path) -> None:
    """Of 20,000 files for one mapper, none was read (`Argument list too long`)."""
    write(hadoop, f'echo $# >>{tmp_path}/words\n[ "$3" = hdfs:///x/0 ] && exit 1; exit 0')
    urls = [f"hdfs:///x/{'y' * 100 * bool(number)}{number}" for number in range(20_000)]
    with pytest.raises(InputError):  # the first one is missing: the others are copied
        hadoop_fs.fetch(urls, tmp_path)
    counts = list(map(int, (tmp_path / "words").read_text().split()))
    assert sum(counts) == len(urls) + 3 * len(counts)
    assert 10 < len(counts) < 30


@pytest.mark.parametrize(
    ("told", "kind", "text"),
    [
        (
            "cat: `/a': No such file or directory",
            AbsentError,
            "cannot be read (no such file); check the path",
        ),
        (
            "at org.apache.hadoop\nls: Client cannot authenticate via:[TOKEN, KERBEROS]",
            RefusedError,
            "there is no valid Kerberos ticket; run kinit",
        ),
        (
            "cat: Permission denied: user=a",
            RefusedError,
            "hadoop fs -cat failed (cat: Permission denied: user=a); correct this and run it again",
        ),
        ("", OutageError, "hadoop fs -cat failed (no reason given); correct this and run it again"),
        (
            f"cat: {'x' * 400} (Service: Amazon S3; Status Code: 500)",
            OutageError,
            f"hadoop fs -cat failed (cat: {'x' * 295}); correct this and run it again",
        ),
        (
            "cat: no host (Service: Amazon S3; Status Code: 500)",
            OutageError,
            "hadoop fs -cat failed (cat: no host); correct this and run it again",
        ),
    ],
    ids=["absent", "no ticket", "no right", "no reason", "long", "details"],
)
def test_what_hadoop_says_is_one_line(hadoop: Path, told: str, kind: type[InputError], text: str) -> None:
    write(hadoop, f"cat >&2 <<'END'\n{told}\nEND\nexit 1")
    with pytest.raises(InputError) as caught, locate(URL).open_ranges():
        pass
    assert (type(caught.value), str(caught.value)) == (kind, f"{URL}: {text}")


def test_a_file_that_is_not_whole_is_an_error(hadoop: Path) -> None:
    write(hadoop, "printf content\necho 'cat: Unable to write to output stream.' >&2; exit 1")
    with pytest.raises(OutageError, match=r"hadoop fs -cat failed \(cat: Unable to write"):
        locate(URL).read_bytes()


@pytest.fixture
def asked(hadoop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A function that returns the verbs of all commands so far; HDFS is the test's directory."""
    shell = Path(__file__).with_name("hadoop_shell.py")
    write(hadoop, f'echo "$2" >>{tmp_path}/asked\nexec {sys.executable} -I -S {shell} "$@"')
    monkeypatch.setenv("HADOOP_SHELL_ROOT", str(tmp_path))
    return lambda: (tmp_path / "asked").read_text().split()


def test_a_file_is_looked_at_once_and_read_once(asked: Callable[[], list[str]], tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    entry, head = look(locate(URL), 4)
    assert entry is not None
    assert (entry.size, head) == (7, b"cont")
    with open_cached(URL) as ranges:
        assert (ranges.read_at(3, 9), ranges.size) == (b"tent", 7)
    assert asked() == ["-stat", "-cat", "-stat", "-cat"]


def test_a_file_that_is_missing_is_asked_for_once(asked: Callable[[], list[str]]) -> None:
    with (
        pytest.raises(AbsentError, match=r"cannot be read \(no such file\); check the path"),
        open_cached(URL),
    ):
        pass
    assert asked() == ["-stat"]


def test_a_file_is_deleted_with_one_command(asked: Callable[[], list[str]], tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"content")
    for _ in range(2):  # then there is none
        locate(URL).remove()
    assert asked() == ["-rm", "-rm"]
    (tmp_path / "a").mkdir()
    locate(URL).remove()
    assert asked()[2:] == ["-rm", "-stat", "-rmdir"]
    assert not (tmp_path / "a").exists()


def test_what_cannot_be_deleted_is_an_error(failing: Callable[[str], None], tmp_path: Path) -> None:
    (tmp_path / "hdfs/a").write_bytes(b"old")
    failing("-rm")
    with pytest.raises(StoppedError, match="-rm failed"):
        locate(URL).remove()
    assert files(tmp_path) == {"a": b"old"}


def test_a_directory_is_not_read(asked: Callable[[], list[str]], tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(InputError, match="is a directory; name a file, or a directory with archives"):
        locate(URL).read_bytes()
    assert asked() == ["-cat"]


def test_the_default_file_system_is_known() -> None:
    assert locate("hdfs:///a/b").is_same(locate("hdfs://names:8020/a/b/"))
    assert not locate("hdfs:///a/b").is_same(locate("hdfs://others:8020/a/b/"))


@pytest.fixture
def failing(hadoop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """A function that lets a verb fail from then on. HDFS is the directory `hdfs`; the words of commands are in `asked`."""
    shell = Path(__file__).with_name("hadoop_shell.py")
    (tmp_path / "hdfs").mkdir()
    monkeypatch.setenv("HADOOP_SHELL_ROOT", str(tmp_path / "hdfs"))

    def fail(verb: str) -> None:
        refusal = f'echo "{verb[1:]}: Input/output error" >&2; exit 1'
        words = f'echo "$@" >>{tmp_path}/asked'
        write(
            hadoop,
            f'{words}\n[ "$2" = "{verb}" ] && {{ {refusal}; }}\nexec {sys.executable} -I -S {shell} "$@"',
        )

    return fail


def files(directory: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in (directory / "hdfs").iterdir()}


def write_stamped(url: str, body: bytes) -> None:
    with locate(url).write_atomic(stamp=lambda: "mine") as file:
        file.write(body)


@pytest.mark.parametrize(
    ("verb", "left"),
    [("-put", {"a": b"old"}), ("-rm", {"a": b"old"}), ("-mv", {}), ("-mkdir", {"a": b"old"})],
)
def test_a_write_that_fails_leaves_no_unfinished_file(
    verb: str, left: dict[str, bytes], failing: Callable[[str], None], tmp_path: Path
) -> None:
    (tmp_path / "hdfs/a").write_bytes(b"old")
    failing(verb)
    url = "hdfs://names:8020/below/a" if verb == "-mkdir" else URL
    with pytest.raises(StoppedError, match=rf"hadoop fs {verb} failed"):
        write_stamped(url, b"new")
    kept = files(tmp_path)
    if verb == "-rm":  # nor can the unfinished file be deleted
        kept = {name: body for name, body in kept.items() if not name.endswith(".tmp")}
    assert kept == left


def test_a_file_is_written_without_attributes_too(failing: Callable[[str], None], tmp_path: Path) -> None:
    failing("-setfattr")
    write_stamped(URL, b"new")
    assert files(tmp_path) == {"a": b"new"}
    failing("-getfattr")
    write_stamped(URL, b"newer")
    assert locate(URL).stamped() == (locate(URL).status(), "")


def test_a_file_that_cannot_be_renamed_is_no_other_file(
    failing: Callable[[str], None], tmp_path: Path
) -> None:
    failing("-mv")
    with pytest.raises(StoppedError, match="hadoop fs -mv failed"):
        locate(URL).swap(None, b"mine")
    assert files(tmp_path) == {}
    (tmp_path / "hdfs/a").write_bytes(b"theirs")
    assert not locate(URL).swap(None, b"mine")
    assert files(tmp_path) == {"a": b"theirs"}


def test_a_private_file_is_that_of_its_owner(hadoop: Path, tmp_path: Path) -> None:
    write(hadoop, f'echo "$@" >>{tmp_path}/asked; [ "$4" != -put ]')
    (tmp_path / "keys").write_bytes(b"secret")
    with (tmp_path / "keys").open("rb") as file:
        hadoop_fs.put(file, URL)
        with pytest.raises(StoppedError, match="hadoop fs -put failed"):
            hadoop_fs.put(file, URL, is_private=True)
    words = f"-put -f - {URL}"
    assert (tmp_path / "asked").read_text() == f"fs {words}\nfs -D fs.permissions.umask-mode=077 {words}\n"


@pytest.mark.parametrize(
    ("scheme", "words"), [("hdfs", "-f"), ("s3", "-f -d"), ("s3a", "-f -d"), ("gs", "-f")]
)
def test_an_object_of_s3_is_put_under_its_name(scheme: str, words: str, hadoop: Path, tmp_path: Path) -> None:
    write(hadoop, f'echo "$@" >>{tmp_path}/asked')
    hadoop_fs.upload([tmp_path / "a b", tmp_path / "c"], f"{scheme}://b/out/")
    target = f"{scheme}://b/out/"
    assert (tmp_path / "asked").read_text() == (
        f"fs -put {words} {(tmp_path / 'a b').as_uri()} {(tmp_path / 'c').as_uri()} {target}\n"
    )


def test_what_does_not_exist_is_not_moved_and_its_target_stays(
    failing: Callable[[str], None], tmp_path: Path
) -> None:
    failing("nothing")
    (tmp_path / "hdfs/a").write_bytes(b"kept")
    with pytest.raises(StoppedError, match="no such file"):
        locate("hdfs://names:8020/absent").move(locate(URL))
    assert files(tmp_path) == {"a": b"kept"}


def test_sizes_and_times_are_those_that_hadoop_prints(hadoop: Path) -> None:
    write(hadoop, "echo '7 1700000000123 regular file a b'")
    entry = locate(URL).status()
    assert entry is not None
    assert (entry.size, entry.modified, entry.tag, entry.is_directory) == (
        7,
        1700000000.123,
        "1700000000123",
        False,
    )
    lines = (
        "Found 3 items",
        "-rw-r--r--   3 user group         12 2026-01-02 03:04 hdfs://names:8020/a/b c",
        "drwxr-xr-x   - user group          0 2026-01-02 03:04 hdfs://names:8020/a/below",
        "-rw-r--r--   1 user group 3000000000 2026-01-02 03:04 hdfs://names:8020/a/below/d",
    )
    write(hadoop, "cat <<'END'\n{}\nEND".format("\n".join(lines)))
    found = {"hdfs://names:8020/a/b c": 12, "hdfs://names:8020/a/below/d": 3_000_000_000}
    assert hadoop_fs.sized_files("hdfs://names:8020/a") == found


def test_names_fill_the_command_line_and_no_more() -> None:
    """A byte ends each name. A name that is too long alone has a command of its own, and the system says why it fails."""
    most = hadoop_fs._COMMAND
    for sizes, expected in (
        ([1023] * 300, [128, 128, 44]),
        ([most - 1, most - 3, 1, 1], [1, 2, 1]),
        ([most + 5, 1], [1, 1]),
        ([], []),
    ):
        words = ["x" * size for size in sizes]
        batches = list(hadoop_fs._batches(words))
        assert [len(batch) for batch in batches] == expected
        assert [word for batch in batches for word in batch] == words
    assert [len(batch) for batch in hadoop_fs._batches(["\u00fc" * 2048] * 33)] == [31, 2], "bytes count"


def test_a_single_file_is_copied_and_what_fails_is_named(hadoop: Path, tmp_path: Path) -> None:
    write(hadoop, f'echo "$@" >{tmp_path}/asked')
    hadoop_fs.fetch([URL], tmp_path)
    assert (tmp_path / "asked").read_text() == f"fs -get {URL} {tmp_path}\n"
    write(hadoop, "echo 'get: Input/output error' >&2; exit 1")
    with pytest.raises(OutageError) as caught:
        hadoop_fs.fetch([URL], tmp_path)
    assert caught.value.path == URL


def test_a_directory_in_the_way_is_told_by_the_command_that_met_it(hadoop: Path) -> None:
    write(hadoop, "echo 'put: `/a: Is a directory' >&2; exit 1")
    with pytest.raises(StoppedError, match=r"hadoop fs -put failed \(put: `/a: Is a directory\)"):
        hadoop_fs.upload([Path("a")], URL)


def test_a_command_does_not_read_what_is_piped_into_cdxmill(hadoop: Path, tmp_path: Path) -> None:
    write(hadoop, "cat")
    (tmp_path / "piped").write_bytes(b"of the user")
    own = os.dup(0)
    try:
        with (tmp_path / "piped").open("rb") as piped:
            os.dup2(piped.fileno(), 0)
            assert locate(URL).read_bytes() == b""
            assert os.read(0, 99) == b"of the user"
    finally:
        os.dup2(own, 0)
        os.close(own)
