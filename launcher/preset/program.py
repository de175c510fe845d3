"""The group of a preset that names the program to run, where it is not `verl.trainer.main_ppo`."""

from pathlib import Path
from typing import ClassVar

from launcher.preset.fields import Group, verl
from launcher.verl.defaults import PPO

MAIN = "verl.trainer.main_ppo"
_EXPERIMENTAL = "experimental/fully_async_policy", "experimental/one_step_off_policy"
_CONFIGS = {
    MAIN: PPO,
    "verl.experimental.fully_async_policy.fully_async_main": f"{_EXPERIMENTAL[0]}/config/fully_async_ppo_trainer",
    "verl.experimental.one_step_off_policy.main_ppo": f"{_EXPERIMENTAL[1]}/config/one_step_off_ppo_trainer",
}
"""veRL's own programs, and the configurations that they start from (`@hydra.main` in each)."""


class Program(Group, title="Program"):
    """What is run instead of `python -m verl.trainer.main_ppo`, and where."""

    prefix: ClassVar[str] = ""

    entry_point: str | None = verl(
        "Python module or file to run; null: verl.trainer.main_ppo.", key="", kind="path or name"
    )
    folder: str | None = verl(
        "Folder to run it in; modules and relative paths start there. null: that of the run.", key="", kind="path"
    )
    config_name: str | None = verl("Hydra configuration to start from; null: ppo_trainer.", key="")
    config_path: str | None = verl("Folder of that configuration; null: veRL's.", key="")
    config_dir: str | None = verl("Additional folder of configurations.", key="", kind="path")

    @property
    def config(self) -> str | None:
        """veRL's own configuration that the program starts from, below veRL's folder and without `.yaml`; None for a
        program or a folder of configurations that are not veRL's.
        """
        usual = _CONFIGS.get(self.entry_point or MAIN)
        path = (self.config_path or "config").removeprefix("./").rstrip("/")  # from the folder of the program
        if usual is None or path != "config" or self.config_dir:
            return None
        return f"{usual.rpartition('/')[0]}/{self.config_name.removesuffix('.yaml')}" if self.config_name else usual

    @property
    def imports_from(self) -> Path | None:
        """The folder in which Python looks for modules first; None for that of the run."""
        if self.folder is None:
            return None
        entry = self.entry_point or MAIN
        return (Path(self.folder) / entry).parent if entry.endswith(".py") else Path(self.folder)

    @property
    def options(self) -> list[str]:
        """Hydra's options for it."""
        named = (("name", self.config_name), ("path", self.config_path), ("dir", self.config_dir))
        return [f"--config-{name}={value}" for name, value in named if value]

    @property
    def command(self) -> list[str]:
        """The words after the interpreter."""
        entry = self.entry_point or MAIN
        return [entry] if entry.endswith(".py") else ["-m", entry]
