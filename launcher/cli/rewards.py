"""`ppo-tui check --reward`: scores possible answers of a model with a reward function."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from launcher.cli.output import put, put_json, put_table, say
from launcher.core.errors import UserError
from launcher.core.files import require_file
from launcher.core.format import counted


def check_reward(file: Path, data: Path | None, name: str, *, json: bool) -> None:
    """Scores right, wrong and degenerate responses in a separate process; exits with 1 if the function fails."""
    from launcher.check import reward, worker
    from launcher.check.row_rules import Rows
    from launcher.core.format import number
    from launcher.verl import env as verl_env

    python = verl_env.interpreter(None)
    rows: Sequence[dict[str, Any]] = reward.MADE_UP
    if data is not None:
        path = data.expanduser().absolute()
        require_file(path, "--data")
        request: dict[str, Any] = {"file": str(path), "prompt_key": "prompt", "template": {}}
        reply = Rows.from_json(worker.ask(python, "read_rows", request, timeout=60))
        rows = reply.examples
        if not rows:
            raise UserError(f"--data: {path}: {reply.why or 'it has no rows'}", "name a file with rows for training")
    require_file(function := file.expanduser().absolute())
    trial = reward.try_out(python, str(function), name, rows, degenerate=True)
    scored = list(zip(trial.kinds, trial.scores, strict=True))
    means = {kind: reward.mean_of(kind, scored) for kind in dict.fromkeys(trial.kinds)}
    plain = [(kind, score) for kind, score in scored if kind in reward.PLAIN]
    if json:
        put_json(
            {
                "ok": trial.ok,
                "findings": [finding.as_json() for finding in trial.findings],
                "scores": [score for _, score in plain],
                "answers": [kind for kind, _ in plain],
                "degenerate": {kind: mean for kind, mean in means.items() if kind not in reward.PLAIN},
                "extra": list(trial.extra),
                "seconds": trial.seconds,
                "async": trial.is_async,
            }
        )
    else:
        if trial.scores:
            right = means.get("right", 0.0)
            rows_out = [("RESPONSE", "SCORE", "OF A RIGHT ONE")]
            for kind, mean in means.items():
                rows_out.append((kind, number(mean), f"{100 * mean / right:.0f} %" if right > 0 else ""))
            put_table(rows_out)
            put(
                f"{counted(len(trial.scores), 'response')}, "
                f"{number(min(trial.scores))} to {number(max(trial.scores))}, {number(trial.seconds * 1000)} ms each"
                + (f"; also returned: {', '.join(trial.extra)}" if trial.extra else "")
            )
        for finding in trial.findings:
            say(f"{finding.level}: {finding.message}")
            there = (finding.change or {}).get("reward.function")
            say(f"hint: use --function {there}" if there else f"hint: {finding.fix}")
    if not trial.ok:
        raise typer.Exit(1)
