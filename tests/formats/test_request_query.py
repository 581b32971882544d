"""Requests as queries, against pywb and cdxj-indexer: where the two agree, cdxmill agrees.

Where they differ, cdxmill equals one of them. Known differences of the two: whole floats and
true, false, null in JSON (pywb writes them as JavaScript does), JSON lines (cdxj-indexer reads
them), broken multipart bodies, empty bodies.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import warnings
from io import BytesIO

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdxmill.formats.lines.request_query import MAX_QUERY, append_query

with warnings.catch_warnings():  # what they import is deprecated in newer Pythons
    warnings.simplefilter("ignore")
    from cdxj_indexer.postquery import append_method_query
    from pywb.warcserver.inputrequest import MethodQueryCanonicalizer

URL = "http://example.com/a"
BOUNDARY = "xX0"
FORM, JSON, MULTIPART = "application/x-www-form-urlencoded", "application/json", "multipart/form-data"

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
names = st.text(
    st.characters(min_codepoint=0x21, max_codepoint=0x7E, exclude_characters='"\\;'), min_size=1, max_size=8
)
leaves = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e6, 1e6) | texts
trees = st.recursive(
    leaves, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4)
)
forms = st.lists(st.tuples(texts, texts)).map(
    lambda fields: "&".join(f"{name}={value}" for name, value in fields)
)


def pywb(method: str, mime: str, body: bytes, url: str = URL) -> str | None:
    """What pywb appends to the URL; None where it fails to report JSON that is no UTF-8."""
    with contextlib.redirect_stderr(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with contextlib.suppress(UnicodeDecodeError):
            return str(MethodQueryCanonicalizer(method, mime, len(body), BytesIO(body)).append_query(url))
    return None


def cdxj_indexer(method: str, mime: str, body: bytes, url: str = URL) -> str:
    """What cdxj-indexer appends to the URL."""
    with contextlib.redirect_stderr(io.StringIO()):
        return url + str(append_method_query(method, mime, len(body), BytesIO(body), url)[1])


def multipart(fields: list[tuple[str, str]]) -> bytes:
    parts = (
        f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields
    )
    return ("".join(parts) + f"--{BOUNDARY}--\r\n").encode()


def check(method: str, mime: str, body: bytes, url: str = URL) -> None:
    ours = append_query(url, method, mime, body)[0]
    theirs = {pywb(method, mime, body, url), cdxj_indexer(method, mime, body, url)}
    assert ours in theirs


@given(st.sampled_from([FORM, f"{FORM}; charset=UTF-8"]), forms)
def test_forms_are_appended_as_both_do(mime: str, form: str) -> None:
    check("POST", mime, form.encode())


@given(trees)
@example([{"a": 1}, {"a": 2.0}, {"a": None}, {"b": {"a": True}}])
@example({"": 1, "a": {"": 2}})
@example({"a": [-0.0, 1e300, 0.1]})
def test_json_is_appended_as_one_of_them_does(tree: object) -> None:
    check("POST", JSON, json.dumps(tree).encode())
    check("PUT", "text/plain;charset=UTF-8", json.dumps(tree).encode())


@given(st.lists(st.tuples(names, names), min_size=1, max_size=5))
def test_multipart_forms_are_appended_as_one_of_them_does(fields: list[tuple[str, str]]) -> None:
    check("POST", f"{MULTIPART}; boundary={BOUNDARY}", multipart(fields))


@given(
    st.sampled_from(["", "text/plain", JSON, FORM, "application/octet-stream", "image/png"]),
    st.binary(max_size=60),
)
def test_any_body_is_appended_as_one_of_them_does(mime: str, body: bytes) -> None:
    check("POST", mime, body)


@given(
    st.sampled_from(["HEAD", "OPTIONS", "DELETE", "PATCH", "POST", "PUT"]),
    st.sampled_from([URL, f"{URL}?b=c"]),
)
def test_other_methods_are_appended_without_a_body(method: str, url: str) -> None:
    check(method, FORM, b"" if method in ("POST", "PUT") else b"x=y", url)


def test_a_get_leaves_the_url_as_it_is() -> None:
    assert append_query(URL, "GET", FORM, b"a=b") == (URL, "")


def test_the_query_of_the_body_is_cut_at_4096_characters() -> None:
    url, query = append_query(URL, "POST", FORM, b"a=" + b"x" * 10_000)
    assert len(query) == MAX_QUERY == 4096
    assert url == pywb("POST", FORM, b"a=" + b"x" * 10_000)


@pytest.mark.parametrize(
    ("mime", "body"),
    [
        (JSON, b"[" * 100_000),
        ("text/plain", b'{"a":' * 100_000),
        (JSON, b'{"a": "\\ud800"}'),
        (JSON, b'{"a": ' + b"9" * 5000 + b"}"),
        (JSON, b'{"a": NaN, "b": Infinity, "c": 1e999}'),
        (MULTIPART, b"--x"),
        (f"{MULTIPART}; boundary=", b"--"),
        (FORM, b"\xff=\xfe"),
    ],
)
def test_hostile_bodies_give_a_query_and_no_error(mime: str, body: bytes) -> None:
    url, query = append_query(URL, "POST", mime, body)
    assert url.startswith(f"{URL}?__wb_method=POST")
    assert len(query) <= MAX_QUERY


def test_what_cannot_be_read_as_its_type_is_taken_as_binary() -> None:
    encoded = base64.b64encode(b"\xff{").decode()
    for mime in (FORM, "text/plain", MULTIPART, "application/x-amf", ""):
        assert append_query(URL, "POST", mime, b"\xff{")[1] == f"__wb_post_data={encoded}"
