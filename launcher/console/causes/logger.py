"""Failures of the metric loggers."""

from launcher.console.causes.entry import Cause

CONSOLE = "set trainer.logger=[console,file]"

CAUSES = (
    Cause(
        "logger-login",
        "No login for Weights & Biases",
        "trainer.logger contains wandb (as in veRL's default), but no API key is configured. The run fails only at "
        "the end of the start-up.",
        (CONSOLE, "or env: WANDB_MODE=offline", "or run `wandb login`"),
        raised=r"UsageError: (?:No API key configured|api_key not configured)|wandb\S*(?:AuthenticationError"
        r"|UsageError)",
        line=r"wandb: ERROR (?:api_key not configured|API key must be)",
    ),
    Cause(
        "logger-unreachable",
        "Logging service unreachable",
        "wandb or another online logger could not connect.",
        (CONSOLE, "or env: WANDB_MODE=offline"),
        raised=r"wandb\.\S*(?:CommError|Error): |MlflowException|swanlab\S*Error",
    ),
    Cause(
        "logger-unknown",
        "Unknown logger '{name}'",
        "trainer.logger may contain console, file, wandb, tensorboard, mlflow, swanlab, trackio, clearml and "
        "vemlp_wandb.",
        (CONSOLE,),
        raised=r"AssertionError: (?P<name>\S+) is not supported$",
    ),
    Cause(
        "logger-numbers",
        "File logger of this veRL cannot write numpy numbers",
        "veRL 0.6 and 0.7.0 crash when a metric is a numpy integer.",
        ("set trainer.logger=[console]", "or install veRL 0.7.1 or newer"),
        raised=r"Object of type (?:int32|int64|float32|bool_?) is not JSON serializable",
    ),
)
