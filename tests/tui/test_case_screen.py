"""A case file on the screen: copied, shown with where it would go, sent after one more key, answered line by line."""

import pytest
from console_logs import DATA, stored
from endpoint import OK, Endpoint, stream

from launcher.core.paths import cache_dir, settings_file
from launcher.record.layout import RunDir
from launcher.runs.act.import_logs import import_logs


@pytest.fixture
def endpoint():
    found = Endpoint()
    yield found
    found.close()


@pytest.fixture
def failed(make):
    state = make.ended("failed", step=30, error="out of memory", cause="gpu-oom-update", checks=make.checks())
    return make.run(attempts=[make.recorded(30)], state=state, log=make.log + stored("fail-oom").decode())


def told(user):
    return "\n".join("".join(text for text, _ in row) for row in user.one("#case").lines)


async def test_y_copies_the_case_of_a_diagnosis_and_of_a_rule(make, failed):
    flagged = import_logs([str(DATA / "logs" / "kl-blowup.log.gz")])[0].path
    asked = (failed, "d", "failed, hangs or became slow"), (flagged, "h", "does not train as it should")
    for run, key, question in asked:
        async with make.open(run) as user:
            await user(key, "y", lambda user=user: "Copied" in user.message and "case.txt" in user.message)
            assert question in (cache_dir() / "copied" / "case.txt").read_text()


async def test_one_more_key_sends_it_and_the_answer_comes_line_by_line_marked_and_inert(make, failed, endpoint):
    settings_file().write_text(f"assistant: {{url: '{endpoint.url}', model: m-7}}\n")
    endpoint.replies = [stream("lower \x1b[31mtrainer.foo=1", "\nand wait\n")]
    async with make.open(failed) as user:
        await user("d", "A", "CaseScreen", lambda: f"characters to m-7 at {endpoint.url}" in told(user))
        assert "GPU out of memory" in told(user) and not endpoint.got
        await user("A", lambda: "> and wait" in told(user))
        lines = told(user).splitlines()
        at = lines.index(" answer of m-7, not checked by ppo-tui")
        assert lines[at + 1 : at + 4] == [
            " > lower trainer.foo=1",
            " trainer.foo is not a setting of veRL 0.9.1",
            " > and wait",
        ]
        assert "trainer.foo" not in RunDir(failed).run_yaml.read_text() and RunDir(failed).answers.exists()
        for size in ((80, 24), (20, 5)):
            await user.resize_terminal(*size)
        await user("escape", "DiagnosisScreen")
        assert "trainer.foo" not in user.drawn("DiagnosisList"), "never a fix"
    assert len(endpoint.got) == 1


async def test_escape_ends_an_answer_and_then_leaves(make, failed, endpoint):
    settings_file().write_text(f"assistant: {{url: '{endpoint.url}', model: m-7}}\n")
    endpoint.replies = [[OK, *stream("half\nof it")[1:3], None]]
    async with make.open(failed) as user:
        await user("d", "A", "CaseScreen", lambda: "characters to" in told(user), "A", lambda: "> half" in told(user))
        await user("escape", "...", "CaseScreen")
        assert not RunDir(failed).answers.exists(), "a part of an answer is not kept"
        await user("escape", "DiagnosisScreen")


async def test_errors_of_the_assistant_are_messages_and_a_read_only_screen_sends_nothing(make, failed, endpoint):
    settings_file().write_text("assistant: {command: [no-such-program]}\n")
    async with make.open(failed) as user:
        await user("d", "A", "CaseScreen", lambda: "characters to no-such-program" in told(user))
        await user("A", lambda: "cannot run no-such-program" in user.message)
    async with make.open(failed, read_only=True) as user:
        await user(
            "d", "A", "CaseScreen", lambda: "characters to" in told(user), "A", lambda: "Read-only" in user.message
        )
