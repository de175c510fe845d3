"""`$(( ))` as bash computes it: values, assignments, and what bash refuses."""

import shlex
import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.scripts.bash.arithmetic import Arithmetic, NotANumber, wrapped

START = {"x": "7", "y": "-3", "z": "", "s": "x + 1", "o": "010"}
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")


def ours(expression: str) -> str:
    """The value and the variables after it, or `error`."""
    variables = dict(START)
    try:
        value = Arithmetic(expression, lambda name: variables.get(name, ""), variables.__setitem__).value()
    except NotANumber:
        return "error"
    return "|".join([str(value), *(variables[name] for name in START)])


def of_bash(expressions: list[str]) -> list[str]:
    """The same of bash, all in one process."""
    # in a variable: unclosed parentheses end with it
    script = "; ".join(f"{name}='{value}'" for name, value in START.items())
    after = "|".join(f"${name}" for name in START)
    lines = [
        f'e={shlex.quote(expression)}; (v=$(($e)); echo "$v|{after}") 2>/dev/null || echo error'
        for expression in expressions
    ]
    done = subprocess.run(["bash"], input="\n".join([script, *lines]), capture_output=True, text=True, check=False)
    return done.stdout.splitlines()


BY_HAND = [
    "", "1 + 2 * 3", "(1 + 2) * 3", "7 / 2", "-7 / 2", "7 % -2", "-7 % 2", "2 ** 3 ** 2", "-2 ** 2", "2 ** 0",
    "1 << 3 | 1", "5 & 3 ^ 1", "1 < 2 == 1", "!x", "!!x", "~x", "- -x", "-y", "+x", "x + y", "z", "s * 2", "o", "010",
    "0x1F", "2#101", "16#ff", "36#z", "08", "2#2", "x = 5", "x = y = 2", "x += y", "x -= 1", "x *= 3", "x /= 2",
    "x %= 4", "x++", "x--", "++x", "--x", "x++ + x", "++x + x", "x, y", "x = 1, x + 1", "x ? 1 : 2", "z ? 1 : 2",
    "x > 5 ? x < 10 ? 1 : 2 : 3", "1 ? 2 : 0 ? 3 : 4", "1 / 0", "5 % 0", "0 && 1 / 0", "1 || 1 / 0", "1 ? 2 : 1 / 0",
    "0 && (x = 1)", "1 || x++", "1 && x++", "0 || x++", "z ? (x = 1) : (y = 1)", "x ? (x = 1) : (y = 1)",
    "9223372036854775807 + 1", "-9223372036854775807 - 2", "9223372036854775808", "-(-9223372036854775807 - 1)",
    "x = 9223372036854775807, ++x", "1 << 63", "1 << 64", "-1 >> 1", "--5", "++5", "- - 5", "x--- 1", "1 +", "(1", "1)",
    "* 2", "1 2", "5 = 3", "x ? 1", "1 : 2", "10#1_0", "0#5", "3 ** -1", "x <<= 2", "x &= 3", "x |= 8", "x ^= 1",
    "x >>= 1", "5++", "(x) = 3", "1.5", "@",
]  # fmt: skip


@needs_bash
def test_each_operator_gives_what_bash_gives() -> None:
    wrong = [
        (expression, mine, real)
        for expression, mine, real in zip(BY_HAND, map(ours, BY_HAND), of_bash(BY_HAND), strict=True)
        if mine != real
    ]
    assert wrong == []


atoms = st.one_of(
    st.integers(0, 12).map(str), st.sampled_from(["x", "y", "z", "s", "o", "x++", "--y", "0x1f", "2#110", "010"])
)
infix = st.sampled_from(
    ["+", "-", "*", "/", "%", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||", ","]
)
expressions = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, infix, inner),
        st.builds("({} {} {})".format, inner, infix, inner),
        st.builds("{} ({})".format, st.sampled_from("-+!~"), inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("(x {} {})".format, st.sampled_from(["=", "+=", "-=", "*="]), inner),
        st.builds("({}) ** {}".format, inner, st.integers(0, 5)),
    ),
    max_leaves=8,
)


@needs_bash
@settings(max_examples=20)
@given(st.lists(expressions, min_size=20, max_size=40))
def test_any_expression_gives_what_bash_gives(some: list[str]) -> None:
    for expression, mine, real in zip(some, map(ours, some), of_bash(some), strict=True):
        assert mine == real, expression


@given(st.text("0123456789xyzso+-*/%<>=!~?:(),&|^#[]$ \t\n'\"", max_size=60))
def test_wild_input_is_a_number_of_64_bits_or_refused(text: str) -> None:
    found = ours(text)
    assert found == "error" or -(1 << 63) <= int(found.partition("|")[0]) < 1 << 63


def test_what_could_take_for_ever_is_refused() -> None:
    deep = "(" * 100 + "1" + ")" * 100
    assert [ours(text) for text in (deep, "1" * 3000, "2 ** 100000", "1" * 30)] == ["error"] * 4
    endless = {"a": "b", "b": "a"}
    with pytest.raises(NotANumber):
        Arithmetic("a", endless.__getitem__, endless.__setitem__).value()


@given(st.integers())
def test_numbers_wrap_to_64_bits(number: int) -> None:
    assert -(1 << 63) <= wrapped(number) < 1 << 63 and (wrapped(number) - number) % (1 << 64) == 0
