"""Trainings of TRL that are not reinforcement learning, and what RLOO logs: real runs of TRL 1.16.0 on the CPU toy."""

import shutil
import tarfile
from pathlib import Path

import pytest
from tables import tabled

from launcher.health.applies import fitting
from launcher.health.catalogue import rules, supervised_settings
from launcher.health.checklist import Checklist
from launcher.health.config import RunConfig
from launcher.metrics.frameworks import Framework, described, frameworks, reference
from launcher.preset.schema import BY_KEY
from launcher.record.levels import Level
from launcher.runs.judge.run_checklist import Judged, judged
from launcher.runs.watch.check_words import coverage
from launcher.runs.watch.log import Log, resolve
from launcher.verl.config import ESTIMATOR, LOSS_MODE

SFT, DPO, REWARD = "supervised fine-tuning (SFT)", "preference optimization (DPO)", "reward model"
JUDGING = {"NUM-1", "ERR-1", "LR-1", "GRAD-1", "LOSS-1"}


@pytest.fixture(scope="module")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("kinds")
    for name in ("trl-kinds", "trl"):
        with tarfile.open(f"tests/data/frameworks/{name}.tar.xz") as packed:
            packed.extractall(folder, filter="data")
    return folder


def of(path: Path) -> tuple[Framework, Judged]:
    log = resolve(str(path))
    assert isinstance(log, Log) and log.framework is not None
    return log.framework, judged(log, [])


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sft.log", SFT),
        ("sft-converged.log", SFT),
        ("sft-part2.log", SFT),
        ("dpo.log", DPO),
        ("dpo.trainer_state.json", DPO),
        ("reward.log", REWARD),
    ],
)
def test_a_training_without_a_policy_is_judged_by_what_holds_for_it(name: str, kind: str, real: Path) -> None:
    framework, found = of(real / name)

    assert framework.words == f"TRL, {kind}"
    checks = found.checklist.checks()
    assert {check.rule for check in checks if check.level != Level.N_A} == JUDGING
    assert coverage(framework, checks) == f"TRL, {kind}: 5 of 49 rules apply; not judged: reinforcement learning"
    assert [check.rule for check in checks if check.on] == []
    assert max(change.after for change in found.changes) <= Level.WARN


def test_reinforcement_learning_has_no_kind(real: Path) -> None:
    framework, found = of(real / "rloo.log")

    assert framework.words == "TRL"
    assert {"KL-1", "ENT-1", "REW-1"} <= {check.rule for check in found.checklist.checks() if check.level != Level.N_A}


@pytest.mark.parametrize("name", ["rloo.log", "healthy/console.log", "ruined/console.log", "broken/console.log"])
def test_a_log_whose_trainer_is_unknown_has_only_flags_that_hold_for_either(
    name: str, real: Path, tmp_path: Path
) -> None:
    """The KL of RLOO is k1, its clip ratio counts sequences; GRPO logs k3 and tokens under the same names."""
    log = resolve(str(shutil.copy(real / name, tmp_path / "train.log")))
    vanilla = f"{LOSS_MODE}=vanilla"

    def found(*config: str) -> tuple[set[tuple[str, int, Level]], set[str]]:
        made = judged(log, config)
        levels = {(each.rule, each.step, each.after) for each in made.changes if each.notable}
        return levels, {each.rule for each in made.checklist.checks() if each.level == Level.N_A}

    assert isinstance(log, Log) and not log.config
    flags, silent = found(vanilla)
    grpo, silent_grpo = found(vanilla, f"{ESTIMATOR}=grpo")
    rloo, silent_rloo = found(vanilla, f"{ESTIMATOR}=rloo")
    assert flags == rloo and flags <= grpo
    assert "CLIP-1" in silent & silent_rloo and "CLIP-1" not in silent_grpo


@tabled
def test_the_trainer_is_known_by_a_name_or_a_class(place: str, text: str, named: str | None, tmp_path: Path) -> None:
    row = "{'loss': '0.1', 'grad_norm': '1', 'learning_rate': '0.1', 'reward': '1', 'kl': '0.1', 'epoch': '0.1'}"
    path = tmp_path / place
    path.parent.mkdir(parents=True)
    path.write_text(f"{text}\n{row}\n", "utf-8")

    log = resolve(str(path))

    assert isinstance(log, Log)
    assert log.config == ({ESTIMATOR: named} if named else {})


def test_the_settings_in_wandb_name_the_trainer(real: Path) -> None:
    log = resolve(str(real / "healthy/wandb/run.wandb"))

    assert isinstance(log, Log)
    assert log.config[ESTIMATOR] == "grpo"


def test_a_lasting_rise_of_the_loss_is_flagged_with_settings_of_the_training(tmp_path: Path) -> None:
    losses = [2.0 * 0.95**n * (1 + 0.05 * (-1) ** n) for n in range(30)] + [2.5 + 0.1 * (-1) ** n for n in range(8)]
    others = "'grad_norm': '1.5', 'learning_rate': '0.0003', 'mean_token_accuracy': '0.9'"
    row = f"{{{{'loss': '{{:.4g}}', {others}, 'epoch': '{{}}'}}}}"
    path = tmp_path / "train.log"
    path.write_text("".join(row.format(loss, n / 100) + "\n" for n, loss in enumerate(losses, 1)), "utf-8")

    _, found = of(path)

    (flag,) = (check for check in found.checklist.checks() if check.on)
    assert (flag.rule, flag.name, flag.level) == ("LOSS-1", "Training loss", Level.WARN)
    assert flag.message.startswith("loss 2.40 for 5 logged lines, ")
    assert [fix.text for fix in flag.fixes] == ["lower learning_rate"]
    assert 35 <= (flag.since or 0) <= 37


def test_nan_is_critical_in_any_training(tmp_path: Path) -> None:
    row = "{{'loss': '{}', 'grad_norm': 'nan', 'learning_rate': '0.3', 'rewards/margins': '0', 'epoch': '{}'}}\n"
    path = tmp_path / "train.log"
    path.write_text("".join(row.format("nan" if n > 5 else "0.6", n / 100) for n in range(1, 12)), "utf-8")

    _, found = of(path)

    flag = found.checklist.checks()[0]
    assert (flag.rule, flag.level) == ("NUM-1", Level.CRITICAL)
    assert not any("KL" in fix.text or "kl" in fix.text for fix in flag.fixes)


def test_no_fix_of_such_a_training_is_a_setting_of_reinforcement_learning() -> None:
    assert supervised_settings() <= BY_KEY.keys()
    for kind in frameworks()["trl"].kinds:
        config = RunConfig({}, frameworks()["trl"].of_kind(kind.has))
        assert config.supervised == kind.title
        for rule in rules().values():
            fixes = fitting(rule.of(config.supervised).advice, config, set()) if rule.supervised else ()
            for fix in fixes:
                assert not any(word in fix.text for word in ("num_iter", "beta", "reward", "temperature", "clip range"))


def test_a_record_keeps_the_kind() -> None:
    known = frameworks()["ms-swift"].of_kind(["mean_token_accuracy"])

    assert described(reference(known)) == known
    assert known.kind is not None and known.kind.title == SFT


def test_a_setting_that_is_one_by_default_is_not_lowered() -> None:
    advice = rules()["KL-2"].advice
    texts = [fix.text for fix in fitting(advice, RunConfig({}, frameworks()["trl"]), set())]
    given = RunConfig({"actor_rollout_ref.actor.ppo_epochs": 4}, frameworks()["trl"])

    assert "lower num_iterations" not in texts and "lower learning_rate" in texts
    assert "lower num_iterations" in [fix.text for fix in fitting(advice, given, set())]


def test_shares_of_micro_batches_are_judged_only_where_they_are_whole() -> None:
    data = {"actor/kl_loss": 0.1, "actor/pg_loss": 20.0, "critic/score/mean": 0.5}
    levels = {}
    for dynamic in (None, True):
        keys = {} if dynamic is None else {"actor_rollout_ref.actor.use_dynamic_bsz": dynamic}
        checklist = Checklist(keys, clock=False, framework=frameworks()["openrlhf"])
        for step in range(1, 30):
            checklist.step(step, data | {"actor/entropy": 0.5 if step < 12 else 0.005})
        levels[dynamic] = {check.rule: check for check in checklist.checks()}

    assert levels[True]["ENT-1"].level >= Level.WARN
    for rule in ("ENT-1", "ENT-2", "KL-1", "LOSS-1"):
        assert levels[None][rule].level == Level.N_A
        assert levels[None][rule].message.endswith("of an unknown number (actor_rollout_ref.actor.use_dynamic_bsz)")
