"""`[ ]` and `[[ ]]` as bash decides them; None only where the script would have to run."""

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launcher.core.errors import UserError
from launcher.scripts.bash import marks
from launcher.scripts.bash.conditions import Conditions
from launcher.scripts.bash.state import State
from launcher.scripts.bash.words import Words

VARIABLES = {"x": "7", "word": "some words", "none": "", "glob": "a*", "path": "here"}
needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files for `-f` and its kind."""
    made = tmp_path_factory.mktemp("conditions")
    (made / "here").write_text("x")
    (made / "empty").touch()
    (made / "sub").mkdir()
    (made / "link").symlink_to("here")
    return made


def conditions(folder: Path | str, **more: str) -> Conditions:
    return Conditions(Words(State({**VARIABLES, **more}, str(folder)), marks.Budget(), lambda _: ""))


def double(text: str, folder: Path | str = "/") -> bool | None:
    return conditions(folder).double(text)


def single(text: str, folder: Path | str = "/") -> bool | None:
    found = conditions(folder)
    return found.single([word for raw in shlex.split(text, posix=False) for word in found._words.fields(raw)])


def of_bash(folder: Path, tests: list[str]) -> list[bool | None]:
    """What bash decides, all in one process; None where it refuses the test."""
    script = [f"{name}={shlex.quote(value)}" for name, value in VARIABLES.items()]
    script += [f"(eval {shlex.quote(test)}) 2>/dev/null; echo $?" for test in tests]
    done = subprocess.run(
        ["bash"], input="\n".join(script), capture_output=True, text=True, check=True, cwd=folder, env={"LC_ALL": "C"}
    )
    return [{"0": True, "1": False}.get(line) for line in done.stdout.splitlines()]


DOUBLE = [
    "$x", "$none", "-n $x", "-z $x", "-z $none", "-z $missing", "! $none", "! ! $x", "$x == 7", "$x = 8", "$x != 7",
    "$word == some*", '$word == "some*"', "abc == $glob", 'abc == "$glob"', "$word == 'some words'", "a < b", "b < a",
    "b > a", "$x -eq 7", "$x -ne 7", "$x -lt 10", "$x -le 7", "$x -gt 7", "$x -ge 8", "x -eq 7", "x+1 -eq 8",
    "$missing -eq 0", "$x && $none", "$x || $none", "$none || $x && $none", "( $none || $x ) && $x",
    "! ( $x && $none )",
    "$none && $x || $x", "$word =~ ^some", "$word =~ words$", "$word =~ ^word", "$x =~ ^[0-9]+$", "ab =~ a.?b",
    "-f here", "-f sub", "-d sub", "-d here", "-e link", "-L link", "-L here", "-s here", "-s empty", "-x here",
    "-r here", "-e missing", "-f $path", "-f $none", "-v x", "-v missing", "-n $x && -f here", "abc == a?c",
    "abc == [a-b]bc",
    "abc == [!a]*", "-z", "-n", "a==b", "-f == -f",
]  # fmt: skip
SINGLE = [
    "", "$x", '"$none"', "a", "-z", "! a", "! ''", "-n a", "-z ''", "-z a", "a = a", "a = b", "a == a", "a != b",
    "a '<' b", "7 -eq 7", "7 -ne 7", "3 -lt 4", "4 -ge 5", "a -a b", "a -a ''", "'' -o b", "'' -o ''",
    "a = a -a b = c", "a = b -o b = b", "! a = b", "-f here", "-d sub", "-e missing", "-f here -a -d sub", "-f ''",
    "( a )", "( a = b )", "( a = b ) -o c", "a = 'a*'", "-z = -z", "! = !",
]  # fmt: skip


@needs_bash
def test_each_operator_decides_as_bash_does(folder: Path) -> None:
    of_double = of_bash(folder, [f"[[ {text} ]]" for text in DOUBLE])
    wrong = [(t, mine, real) for t, real in zip(DOUBLE, of_double, strict=True) if (mine := double(t, folder)) != real]
    quoted = [text.replace("(", "\\(").replace(")", "\\)") for text in SINGLE]
    of_single = of_bash(folder, [f"[ {text} ]" for text in quoted])
    wrong += [(t, mine, real) for t, real in zip(SINGLE, of_single, strict=True) if (mine := single(t, folder)) != real]
    assert [each for each in wrong if each[2] is not None] == []


words = st.sampled_from(["$x", "$none", '"$word"', "a", "7", "''", "$missing", "x", "here"])
tests = st.recursive(
    st.one_of(
        words,
        st.builds("{} {}".format, st.sampled_from(["-n", "-z", "-f", "-d", "-e", "-v"]), words),
        st.builds("{} {} {}".format, words, st.sampled_from(["==", "=", "!=", "<", ">"]), words),
        st.builds("{} {} {}".format, st.integers(-9, 9), st.sampled_from(["-eq", "-lt", "-ge"]), st.integers(-9, 9)),
    ),
    lambda inner: st.one_of(
        st.builds("{} {} {}".format, inner, st.sampled_from(["&&", "||"]), inner),
        st.builds("! ( {} )".format, inner),
        st.builds("( {} )".format, inner),
    ),
    max_leaves=6,
)


@needs_bash
@settings(max_examples=20)
@given(some=st.lists(tests, min_size=20, max_size=40))
def test_any_test_is_decided_as_bash_does(folder: Path, some: list[str]) -> None:
    for text, real in zip(some, of_bash(folder, [f"[[ {text} ]]" for text in some]), strict=True):
        assert double(text, folder) == real, text


@given(st.text("abxy0-=~!<>&|()[]{}*?+\\$'\" \t\nnzfedv", max_size=60))
def test_wild_input_is_decided_or_not_known(text: str) -> None:
    for decide in (lambda: double(text), lambda: conditions("/").single(text.split())):
        try:
            assert decide() in (True, False, None)
        except UserError as error:  # too deep, or longer than is read
            assert str(error)


def test_what_is_not_known_spreads_only_where_it_decides() -> None:
    found = conditions("/", later=marks.unknown("asked at run time"), begun="a" + marks.unknown("asked"))
    cases: dict[str, bool | None] = {
        "$later": None, "$begun": True, "-z $begun": False, "$later == 1": None, "$later -gt 1": None,
        "-f $later": None, "! $later": None, "$later && a": None, "$later && ''": False, "$later || a": True,
        "$later || ''": None, "a -nt b": None, "a =~ (a+)+": None,
        "aaaa =~ a+a+a+a+b": None,
    }  # fmt: skip
    assert {text: found.double(text) for text in cases} == cases
    assert conditions(marks.unknown("cd")).double("-f here") is None


def test_the_groups_of_a_match_are_kept() -> None:
    found = conditions("/")
    assert found.double("gsm8k-7b =~ ^([a-z0-9]+)-([0-9]+)b$") is True
    assert found._words.state.arrays["BASH_REMATCH"] == {"0": "gsm8k-7b", "1": "gsm8k", "2": "7"}
