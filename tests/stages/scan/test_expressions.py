"""The text of --where becomes one tree, or an error that shows what is wrong and where."""

from __future__ import annotations

import pytest

from cdxmill.stages.scan.expressions import Condition, Every, Node, Not, Some, parse_expression


def shown(node: Node) -> str:
    """A tree in short: a condition as (field operator value), with a ! if it is negated, and a ' if it is quoted."""
    if isinstance(node, Condition):
        return f"{'!' * node.negated}{node.field} {node.operator} {node.value}{chr(39) * node.is_quoted}"
    if isinstance(node, Not):
        return f"not({shown(node.node)})"
    return f"{'all' if isinstance(node, Every) else 'any'}({', '.join(map(shown, node.nodes))})"


@pytest.mark.parametrize(
    ("text", "tree"),
    [
        ("a=1", "a = 1"),
        ("A.b!=1", "!A.b = 1"),
        ("a!:1", "!a : 1"),
        ("a!~1", "!a ~ 1"),
        ("a!@1", "!a @ 1"),
        ("a^=1", "a ^= 1"),
        ("a<=1", "a <= 1"),
        ("a>=1", "a >= 1"),
        ("a<1", "a < 1"),
        ("a>1", "a > 1"),
        ("a@1", "a @ 1"),
        (" a  =  1 ", "a = 1"),
        ("a ~ '1 2'", "a ~ 1 2'"),
        ('a="1 2"', "a = 1 2'"),
        ("a=''", "a = '"),
        ("a='=1'", "a = =1'"),
        ("a=b=c", "a = b=c"),
        ("meta.'og:title'=x", "meta.og:title = x"),
        ('meta."og:title"=x', "meta.og:title = x"),
        ("meta.og:'title=x'", "meta.og : title=x'"),
        ("meta.og~title=x", "meta.og ~ title=x"),
        ("meta.og:title", "meta.og : title"),
        ("header.og:title=x", "header.og : title=x"),
        ("a=1 and b=2", "all(a = 1, b = 2)"),
        ("a=1 AND b=2 and c=3", "all(a = 1, b = 2, c = 3)"),
        ("a=1 or b=2 and c=3", "any(a = 1, all(b = 2, c = 3))"),
        ("(a=1 or b=2) and c=3", "all(any(a = 1, b = 2), c = 3)"),
        ("not a=1 and b=2", "all(not(a = 1), b = 2)"),
        ("not not a=1", "not(not(a = 1))"),
        ("not(a=1)", "not(a = 1)"),
        ("((a=1))", "a = 1"),
        ("android=1 or orange=2", "any(android = 1, orange = 2)"),
        ("a=(b)", "a = (b)"),
        ("(a=(b))", "a = (b)"),
        ("(a=(b)(c))", "a = (b)(c)"),
        ("a=com,b)/", "a = com,b)/"),
        ("(a=com,b)/)", "a = com,b)/"),
        ("(a=com,b)/c(d)e)", "a = com,b)/c(d)e"),
        (r"(a~\(b)", r"a ~ \(b"),
        (r"(a~\)b)", r"a ~ \)b"),
        ("a~b\\", "a ~ b\\"),
        ("(a=1)and(b=2)", "all(a = 1, b = 2)"),
    ],
)
def test_a_text_is_one_tree(text: str, tree: str) -> None:
    assert shown(parse_expression(text)) == tree


def test_a_condition_has_its_own_text() -> None:
    node = parse_expression(" not  status = 200 and (url:'a b')")
    assert isinstance(node, Every)
    negated, other = node.nodes
    assert isinstance(negated, Not)
    assert isinstance(negated.node, Condition)
    assert isinstance(other, Condition)
    assert (negated.node.text, other.text) == ("status = 200", "url:'a b'")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "expected FIELD=VALUE at its end"),
        ("a", "expected FIELD=VALUE at 'a'"),
        ("1a=1", "expected FIELD=VALUE at '1a=1'"),
        ("and a=1", "expected FIELD=VALUE at 'and a=1'"),
        ("a=1 and", "expected FIELD=VALUE at its end"),
        ("a=1 or or", "expected FIELD=VALUE at 'or'"),
        ("a=", "a value is missing at its end"),
        ("a=)", "a value is missing at ')'"),
        ("a = ", "a value is missing at its end"),
        ("a=1 b=2", "unexpected text at 'b=2'"),
        ("a=1)", "unexpected text at ')'"),
        ("a=1 " + "x" * 40, f"unexpected text at '{'x' * 30}'"),
        ("(a=1", "a ) is missing at its end"),
        ("(a=1 b=2)", "a ) is missing at 'b=2)'"),
        ("a='1", 'a quote is not closed at "\'1"'),
        ('a="1', "a quote is not closed at '\"1'"),
        ("a==1", "two operators; write a=1, or quote"),
        ("a!==1", "two operators; write a!=1, or quote"),
        ("a^==1", "two operators; write a^=1, or quote"),
        ("a=~1", "two operators; write a=1, or quote"),
        ("a~~1", "two operators; write a~1, or quote"),
        ("a!~~1", "two operators; write a!~1, or quote"),
        ("a!=~1", "two operators; write a!=1, or quote"),
        ("a<>1", "two operators; write a!=1, or quote"),
        (
            "meta.og:title=x",
            "is the : part of the name? Write meta.'og:title'=x or meta.og:'title=x'",
        ),
        (
            "meta.og!:title~x",
            "is the : part of the name? Write meta.'og:title'~x or meta.og!:'title~x'",
        ),
        ("a=\ud800", "it is not UTF-8; set LC_ALL=C.UTF-8, or write a list, FIELD@FILE"),
        ("a=\udfff", "it is not UTF-8; set LC_ALL=C.UTF-8, or write a list, FIELD@FILE"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=r"^invalid expression ") as error:
        parse_expression(text)
    assert reason in str(error.value)


@pytest.mark.parametrize("sign", ["\ud7ff", "\ue000", "\U0001f600"])
def test_other_characters_may_be_in_a_value(sign: str) -> None:
    assert shown(parse_expression(f"a={sign}")) == f"a = {sign}"


@pytest.mark.parametrize(("start", "end"), [("(", ")"), ("not ", ""), ("not (", ")")])
def test_parentheses_have_a_largest_depth(start: str, end: str) -> None:
    most = 25 if start == "not (" else 50
    parse_expression(start * most + "a=1" + end * most)
    with pytest.raises(ValueError, match="too many parentheses"):
        parse_expression(start * (most + 1) + "a=1" + end * (most + 1))
    parse_expression(" and ".join(["(a=1)"] * 60))


@pytest.mark.parametrize(
    ("text", "operator", "form"),
    [
        ("a=1", "=", "a=2"),
        ("a!=1", "=", "a!=2"),
        ("a!=1", ":", "a!:2"),
        ("a!=1", "~", "a!~2"),
        ("a!=1", "@", "a!@2"),
        ("a!=1", "<", "not a<2"),
        ("a!=1", "^=", "not a^=2"),
        ("a=1", "<", "a<2"),
        ("a=1", "^=", "a^=2"),
    ],
)
def test_a_condition_can_be_written_in_another_way(text: str, operator: str, form: str) -> None:
    one = parse_expression(text)
    assert isinstance(one, Condition)
    assert one.form(operator, "2") == form
    assert one.form(operator, "2", "b") == form.replace("a", "b")
    assert str(one.wrong("why")) == str(one.wrong("why", "")) == f"{text}: why"
    assert str(one.wrong("why", form)) == f"{text}: why; write {form}"
    for size, is_shown in ((1, True), (200, True), (201, False)):
        assert str(one.wrong("why", "x" * size)).endswith("x") == is_shown


def test_a_tree_of_one_is_no_tree() -> None:
    assert isinstance(parse_expression("a=1 or b=1"), Some)
    assert isinstance(parse_expression("(a=1)"), Condition)
