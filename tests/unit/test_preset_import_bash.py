"""What bash makes of a script, the importer makes of it, too: words, conditions, loops, and hostile ones."""

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import parts, tabled

from launcher.core.errors import UserError
from launcher.preset.files import load_text
from launcher.scripts.bash.marks import plain
from launcher.scripts.importer import Lossy, from_script
from launcher.scripts.verl_command import Source, parse

HERE = Path("/data/project")
ROWS = {name: rows for name, (_, rows) in parts("preset_import_bash").items()}
RUN = "python -m verl.trainer.main_ppo x.y=1"


def overrides(text: str) -> list[str]:
    return [plain(word) for word in parse(Source(text, HERE)).overrides]


def shell_words(script: str, folder: Path | None = None) -> list[str]:
    """What bash would hand to the command `show`."""
    show = f"show() {{ {sys.executable} -c 'import json, sys; print(json.dumps(sys.argv[1:]))' \"$@\"; }}\n"
    done = subprocess.run(
        ["bash", "--norc", "-c", show + script],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
        env={"HOME": str(Path.home()), "PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"},
    )
    return json.loads(done.stdout.splitlines()[-1])


def assert_like_bash(before: str, words: str, folder: Path = HERE) -> None:
    """That the words are those that bash passes, and nothing in them is unknown."""
    found = parse(Source(f"{before}\n{RUN} {words}", folder)).overrides[1:]
    real = shell_words(f"{before}\nshow {words}", None if folder == HERE else folder)
    assert [plain(word) for word in found] == [each.strip() for each in real if each.strip()]


@tabled
def test_words_are_those_of_the_shell(words):
    before = "EMPTY=()\nARR=('x y' z)\nV='one two'\nP=/usr/lib/Qwen2.5-7B.tar.gz\n"
    ours = overrides(f'{before}python -m verl.trainer.main_ppo {words} "${{ARR[@]}}" $V')
    assert ours == shell_words(f'{before}show {words} "${{ARR[@]}}" $V')[: len(ours)]
    assert ours


def test_arithmetic_is_that_of_the_shell() -> None:
    """Values, and what they assign."""
    start = "x=7 y=-3 z= s='x + 1' o=010"
    sums = [f'{start}; v=$(({each})); A+="$v|$x|$y|$z|$s|$o\n"' for each in ROWS["arithmetic"]]
    assert_like_bash("\n".join(sums), '"$A"')


def test_conditions_are_those_of_the_shell(tmp_path: Path) -> None:
    (tmp_path / "here").write_text("x")
    (tmp_path / "empty").touch()
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("here")
    start = "x=7 word='some words' none= glob='a*' path=here\n"
    tests = "\n".join(f"if {each}; then A+=1; else A+=0; fi" for each in ROWS["conditions"])
    assert_like_bash(start + tests, '"$A"', tmp_path)


@pytest.mark.parametrize("expression", ROWS["refused"])
def test_arithmetic_that_the_shell_refuses_is_refused(expression):
    with pytest.raises(UserError):
        from_script(Source(f"{RUN} data.seed=$(({expression}))", HERE), "mine")


@tabled
def test_an_unknown_value_spreads_only_where_it_decides(condition, decided):
    script = f"later=$(date); begun=a$(date)\nif [[ {condition} ]]; then S=1; else S=2; fi\n{RUN} data.seed=$S"
    if decided is None:
        with pytest.raises(Lossy):
            from_script(Source(script, HERE), "mine")
    else:
        assert overrides(script)[1:] == [f"data.seed={1 if decided else 2}"]


_ITEM = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0\1\2\3\4\r\n"), max_size=12)


@settings(max_examples=60)
@given(st.lists(_ITEM, min_size=1, max_size=4))
def test_any_quoted_words_come_back_as_they_were(items):
    text = "python -m verl.trainer.main_ppo " + " ".join(map(shlex.quote, items))
    assert overrides(text) == [item.strip() for item in items]


@pytest.mark.slow
@settings(max_examples=300)
@given(st.lists(st.sampled_from(ROWS["fragments"]) | st.text(max_size=5), max_size=25).map("".join))
def test_any_text_is_a_preset_or_a_user_error(text):
    try:
        found = from_script(Source(text, HERE), "mine", lossy=True)
    except UserError:
        return
    load_text(HERE / "mine.yaml", found.text)


@pytest.mark.slow
@pytest.mark.parametrize(
    "script",
    [
        "A=" + "${A:-" * 5000 + "}" * 5000,
        "A=xxxxxxxxxx\n" + "A=$A$A\n" * 40,
        f"A={'a' * 20000}b\nB=${{A//*a*a*a*a*a*a*c/}}",
        "while true; do A=$A.; done",
        "f() { f; }\nf",
        "A=" + "{a,b}" * 40,
        "A=" + "$(echo " * 3000 + ")" * 3000,
        "A=$((" + "(" * 3000 + "1" + ")" * 3000 + "))",
        "A=$((" + "-" * 1900 + "1))",
        "if a; then " * 3000,
        "[[ " + "( " * 3000 + "a",
        "for i in {1..999999}; do for j in {1..999999}; do A=$i; done; done",
        "[[ aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa =~ ^(a+)+$b ]]",
        "A=$((9**9**9**9)) B=$((1 << 999999999)) C=$((" + "1" * 3000 + "))",
        "a=b\nb=a\nA=$((a))",
    ],
    ids=lambda script: script[:20].splitlines()[0],
)
def test_a_hostile_script_ends_in_a_sentence(script):
    """Each is bounded in time and memory: by a limit that a user error names, or by what it comes to."""
    try:
        from_script(Source(f"{script}\npython -m verl.trainer.main_ppo data.seed=1", HERE), "mine", lossy=True)
    except UserError as error:
        assert len(str(error)) < 500


INFIX = ["+", "-", "*", "<<", ">>", "<", ">", "<=", ">=", "==", "!=", "&", "|", "^", "&&", "||", ","]
EXPRESSIONS = st.recursive(
    st.integers(0, 12).map(str) | st.sampled_from(["x", "y", "x++", "--y", "0x1f", "2#110", "010"]),
    lambda inner: st.one_of(
        st.builds("({} {} {})".format, inner, st.sampled_from(INFIX), inner),
        st.builds("{} ({})".format, st.sampled_from("-+!~"), inner),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("(x {} {})".format, st.sampled_from(["=", "+=", "-=", "*="]), inner),
        st.builds("({}) ** {}".format, inner, st.integers(0, 5)),
    ),
    max_leaves=8,
)
OPERANDS = st.sampled_from(["$A", "$B", "$C", '"$B"', "a", "7", "''", "x"])
TESTS = st.recursive(
    st.builds("{} {}".format, st.sampled_from(["-n", "-z", "-v"]), OPERANDS)
    | st.builds("{} {} {}".format, OPERANDS, st.sampled_from(["==", "=", "!=", "<", ">"]), OPERANDS)
    | st.builds("{} {} {}".format, st.integers(-9, 9), st.sampled_from(["-eq", "-lt", "-ge"]), st.integers(-9, 9)),
    lambda inner: (
        st.builds("( {} {} {} )".format, inner, st.sampled_from(["&&", "||"]), inner)
        | st.builds("! ( {} )".format, inner)
    ),
    max_leaves=6,
)
LINES = (
    st.sampled_from(ROWS["lines"])
    | st.builds("A=$(({}))".format, EXPRESSIONS)
    | st.builds("if [[ {} ]]; then B=v; else C=w; fi".format, TESTS)
)


@pytest.mark.slow
@settings(max_examples=80)
@given(st.lists(LINES, max_size=12))
def test_scripts_mean_what_they_mean_to_bash(lines):
    assert_like_bash("\n".join(["x=3; y=-2", *lines]), '"a=$A" "b=$B" "c=$C" $A "${L[@]}" "$@"')
