"""Failures of the metric loggers."""

from launcher.console.causes.entry import Cause

CONSOLE = "trainer.logger=[console,file]"

CAUSES = (
    Cause(
        "logger-login",
        "Weights & Biases has no login",
        "trainer.logger contains wandb (veRL's default does) and no API key is configured. It fails only after the "
        "whole start-up.",
        (CONSOLE, "or env: WANDB_MODE=offline", "or wandb login"),
        raised=r"UsageError: (?:No API key configured|api_key not configured)|wandb\S*(?:AuthenticationError"
        r"|UsageError)",
        line=r"wandb: ERROR (?:api_key not configured|API key must be)",
    ),
    Cause(
        "logger-unreachable",
        "The logging service cannot be reached",
        "wandb or another online logger gave up connecting.",
        (CONSOLE, "or env: WANDB_MODE=offline"),
        raised=r"wandb\.\S*(?:CommError|Error): |MlflowException|swanlab\S*Error",
    ),
    Cause(
        "logger-unknown",
        "There is no logger named '{name}'",
        "trainer.logger may contain console, file, wandb, tensorboard, mlflow, swanlab, trackio, clearml and "
        "vemlp_wandb.",
        (CONSOLE,),
        raised=r"AssertionError: (?P<name>\S+) is not supported$",
    ),
    Cause(
        "logger-numbers",
        "The file logger of this veRL cannot write numpy numbers",
        "veRL 0.6 and 0.7.0 crash when a metric is a numpy integer.",
        ("trainer.logger=[console]", "or veRL 0.7.1 or newer"),
        raised=r"Object of type (?:int32|int64|float32|bool_?) is not JSON serializable",
    ),
)
