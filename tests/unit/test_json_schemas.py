"""Every command with --json against the schema that it is published with: on recorded runs, logs and presets.

`commands.call` and the fixture `ppo_tui` compare all lines with their schema (`valid_json`), so the tests that use them
for other commands (`check --reward`, `doctor`, `export --model`, `eval`) fail for a field without a description, too.
"""

import json
from pathlib import Path

import jsonschema
import orjson
import pytest
from commands import OTHER, RUN, call
from page_program import tree
from valid_json import command_of, validate
from whole_run import whole_run

from launcher.cli.schemas import printed, schema_of, shapes
from launcher.core.errors import UserError
from launcher.record.info import Edit, Origin, RunInfo
from launcher.record.layout import RunDir

DATA = Path(__file__).parents[1] / "data"
LOG = str(DATA / "logs" / "kl-blowup.log.gz")
COMMANDS = [
    ["list"],
    *([name, RUN] for name in ("status", "metrics", "health", "diagnose", "samples")),
    ["status", RUN, "--note"],
    ["try", RUN, "--list"],
    ["config", "show"],
    ["export", RUN, "-o", "run.csv"],
    ["samples", RUN, "--kind", "validation"],
    ["compare", RUN, OTHER],
    ["run", "--queue", "toy-cpu", "--after", RUN],
    ["queue"],
    ["sweep", "toy-cpu", "actor.lr=1e-4,3e-4"],
    ["sweep", "toy-cpu", "actor.lr=1e-4,3e-4", "--dry-run"],
    ["check", "toy-cpu"],
    ["check", "gsm8k-0.5b-24gb", "--assume", "1x24"],
    ["preset", "list"],
    ["preset", "list", "--recipes"],
    ["preset", "show", "--command", "toy-cpu"],
    ["preset", "show", "toy-cpu"],
    ["preset", "import", "train.sh"],
    ["clean", "--dry-run"],
    ["stop", RUN],
    ["delete", OTHER, "--yes"],
    ["config", "alerts"],
    *([name, LOG] for name in ("import", "metrics", "health", "diagnose", "time")),
]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two runs, the first with a trial; a queue that stands still; a script; limits and a target of alerts."""
    home = tmp_path / "home"
    monkeypatch.setenv("PPO_TUI_HOME", str(home))
    monkeypatch.chdir(tmp_path)
    run, trial = whole_run(home, RUN), whole_run(home, "7a1a11", "trial")
    whole_run(home, OTHER, failed=False)
    trial.note.unlink()
    _change(trial, Origin(run.id, (Edit("actor.lr", 1e-5, 1e-6),), step=0, trial="KL-1"))
    call(["queue", "pause"])
    call(["run", "--queue", "toy-cpu"])
    (home / "config.yaml").write_text("keep: 1 run\nalerts: {phone: 'ntfy://localhost/runs'}\n")
    (tmp_path / "train.sh").write_text("python -m verl.trainer.main_ppo trainer.total_epochs=1\n")
    return home


def _change(run: RunDir, after: Origin) -> None:
    info = run.read_info()
    RunInfo(run.id, info.name, info.created, info.preset, overrides=info.overrides, after=after).write(run.run_yaml)


@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: " ".join(words).replace(LOG, "LOG"))
def test_a_command_prints_what_its_schema_says(home: Path, words: list[str]) -> None:
    out, err, _ = call([*words, "--json"])
    assert out, err


def test_a_field_without_a_description_is_an_error(home: Path) -> None:
    line = json.loads(call(["list", "--json"])[0].splitlines()[0])
    for wrong in (line | {"surprise": 1}, line | {"step": "7"}, {name: line[name] for name in line if name != "run"}):
        with pytest.raises(jsonschema.ValidationError):
            validate(["list", "--json"], json.dumps(wrong))
    jsonschema.Draft202012Validator(schema_of("list")).validate(line | {"of_a_later_version": 1})


def test_every_command_with_json_has_a_schema_and_every_object_a_command() -> None:
    with_json = {name for name, (command, _) in tree().items() if any("--json" in each.opts for each in command.params)}
    assert {_path(name) for name in printed()} == with_json
    schemas = {command: schema_of(command) for command in printed()}
    assert set().union(*(schema["$defs"] for schema in schemas.values())) == set(shapes())
    for schema in schemas.values():
        jsonschema.Draft202012Validator.check_schema(schema)


def _path(name: str) -> str:
    return name.partition(" --")[0]


def test_a_field_has_a_meaning_a_version_and_its_alias() -> None:
    fields = [each for shape in shapes().values() for each in shape.fields]
    assert all(each.meaning and each.since in ("0.1.0", "0.2.0", "0.3.0", "0.4.0") for each in fields)
    assert {"figure", "metric"} <= {each.name for each in shapes()["Bound"].fields}
    assert "question" in {each.name for each in shapes()["JudgedCheck"].fields}, "as 0.1 called it"


def test_the_command_prints_a_schema_that_a_script_can_use() -> None:
    out, _, code = call(["schema", "run", "--queue"])
    assert code is None or code == 0
    assert orjson.loads(out) == schema_of("run --queue")
    listed = call(["schema"])[0].decode()
    assert all(name in listed for name in printed())
    assert call(["schema", "serve"])[2] == 2
    with pytest.raises(UserError, match="'statsu' is not a command with --json"):
        schema_of("statsu")


def test_words_lead_to_the_command_they_call() -> None:
    assert command_of(["run", "--queue", "toy-cpu", "--json"]) == "run --queue"
    assert command_of(["queue", "--json"]) == "queue" and command_of(["--host", "box", "list", "--json"]) == ""
