"""What bash makes of a script, the importer makes of it, too: words, conditions, loops, and hostile ones."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tables import tabled

from launcher.core.errors import UserError
from launcher.preset.files import load_text
from launcher.scripts.bash.marks import plain
from launcher.scripts.importer import from_script
from launcher.scripts.verl_command import Source, parse

HERE = Path("/data/project")


def overrides(text: str) -> list[str]:
    return [plain(word) for word in parse(Source(text, HERE)).overrides]


def shell_words(script: str) -> list[str]:
    """What bash would hand to the command `show`."""
    show = f"show() {{ {sys.executable} -c 'import json, sys; print(json.dumps(sys.argv[1:]))' \"$@\"; }}\n"
    done = subprocess.run(
        ["bash", "--norc", "-c", show + script],
        capture_output=True,
        text=True,
        check=True,
        env={"HOME": str(Path.home()), "PATH": "/usr/bin:/bin"},
    )
    return json.loads(done.stdout.splitlines()[-1])


@tabled
def test_words_are_those_of_the_shell(words):
    before = "EMPTY=()\nARR=('x y' z)\nV='one two'\nP=/usr/lib/Qwen2.5-7B.tar.gz\n"
    ours = overrides(f'{before}python -m verl.trainer.main_ppo {words} "${{ARR[@]}}" $V')
    assert ours == shell_words(f'{before}show {words} "${{ARR[@]}}" $V')[: len(ours)]
    assert ours


_ITEM = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0\1\2\3\4\r\n"), max_size=12)


@settings(max_examples=60)
@given(st.lists(_ITEM, min_size=1, max_size=4))
def test_any_quoted_words_come_back_as_they_were(items):
    import shlex

    text = "python -m verl.trainer.main_ppo " + " ".join(map(shlex.quote, items))
    assert overrides(text) == [item.strip() for item in items]


@pytest.mark.slow
@settings(max_examples=300)
@given(
    st.lists(
        st.sampled_from(
            [
                "python -m verl.trainer.main_ppo ",
                "a.b=",
                "X=",
                "X=(",
                ")",
                "'",
                '"',
                "$",
                "${",
                "}",
                "$((",
                "`",
                "\\",
                "\\x",
                "#",
                ";",
                "<<E",
                ">",
                "|",
                "&&",
                "trainer.nnodes=2",
                "export ",
                "${X[@]}",
            ]
        )
        | st.text(max_size=5),
        max_size=25,
    ).map("".join)
)
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
        "A=$((9**9**9**9)) B=$((1 << 999999999))",
    ],
    ids=lambda script: script[:20].splitlines()[0],
)
def test_a_hostile_script_ends_in_a_sentence(script):
    """Each is bounded in time and memory: by a limit that a user error names, or by what it comes to."""
    try:
        from_script(Source(f"{script}\npython -m verl.trainer.main_ppo data.seed=1", HERE), "mine", lossy=True)
    except UserError as error:
        assert len(str(error)) < 500


_LINES = st.lists(
    st.sampled_from(
        [
            "A=1",
            'A="$B$A"',
            "B=${A:-x}",
            "B+=y",
            "L=(a 'b c' $A)",
            "L+=(d)",
            'A="${L[@]}"',
            "A=${#L[@]}",
            "A=${L[1]}",
            "B=${A#1}",
            "B=${A/1/2}",
            "A=$((${#B} + 1))",
            'if [ -z "$A" ]; then B=e; elif [[ $A == 1* ]]; then B=f; else B=g; fi',
            "case $A in 1*) B=h;; '') B=i;& *) B=j;; esac",
            "for A in $B k; do B=$B$A; done",
            "f() { local A=l; B=$A$1; }; f m",
            "n() { return 1; }; n && B=n || B=o",
            "B=$(echo $A | tr a-z A-Z)",
            "set -- p q; shift",
            "A=${1:-r}",
            "while [ ${#A} -lt 5 ]; do A=s$A; done",
            'A=$(printf "%s," "${L[@]}")',
            "B=${A^^}${B:0:2}",
            "( A=t ); { B=u; }",
            "unset A",
            "read -r A B <<< 'v w x'",
        ]
    ),
    max_size=12,
)


@pytest.mark.slow
@settings(max_examples=40)
@given(_LINES)
def test_scripts_mean_what_they_mean_to_bash(lines):
    """Their words are those that bash passes, and nothing is unknown in them."""
    before = "\n".join(lines)
    words = '"a=$A" "b=$B" $A "${L[@]}" "$@"'
    found = parse(Source(f"{before}\npython -m verl.trainer.main_ppo x.y=1 {words}", HERE))
    assert [plain(word) for word in found.overrides[1:]] == [
        each.strip() for each in shell_words(f"{before}\nshow {words}") if each.strip()
    ]
