"""The group of a preset about the program that is run, where that is not veRL's own."""

from typing import ClassVar

from launcher.preset.fields import Group, verl


class Program(Group, title="Program"):
    """What is run instead of `python -m verl.trainer.main_ppo`, and where."""

    prefix: ClassVar[str] = ""

    entry_point: str | None = verl(
        "Python module or file to run; null: verl.trainer.main_ppo.", key="", kind="path or name"
    )
    folder: str | None = verl(
        "Folder to run it in, from which its modules and relative paths are meant; null: that of the run.",
        key="",
        kind="path",
    )
    config_name: str | None = verl("Hydra configuration to start from; null: ppo_trainer.", key="")
    config_path: str | None = verl("Folder of that configuration; null: veRL's.", key="")
    config_dir: str | None = verl("Additional folder of configurations.", key="", kind="path")

    @property
    def is_foreign(self) -> bool:
        """Whether keys are not those of veRL's own configuration."""
        given = (self.entry_point, self.config_path, self.config_dir, self.config_name)
        return any(each not in (None, "verl.trainer.main_ppo", "ppo_trainer", "ppo_trainer.yaml") for each in given)

    @property
    def options(self) -> list[str]:
        """Hydra's options for it."""
        named = (("name", self.config_name), ("path", self.config_path), ("dir", self.config_dir))
        return [f"--config-{name}={value}" for name, value in named if value]

    @property
    def command(self) -> list[str]:
        """The words after the interpreter."""
        entry = self.entry_point or "verl.trainer.main_ppo"
        return [entry] if entry.endswith(".py") else ["-m", entry]
