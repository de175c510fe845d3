"""Files that are not used because of their owner or mode, on the screen."""

from pathlib import Path
from types import SimpleNamespace

from pilots import assert_fits, message, until


async def test_files_that_are_not_used_because_of_their_owner_are_named_once(make: SimpleNamespace, home: Path) -> None:
    (home / "queue").mkdir(mode=0o700)
    (entry := home / "queue" / "x.json").touch()
    entry.chmod(0o666)
    app = make.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: f"{entry} is not used" in message(app))
        assert message(app).endswith(f"-w '{entry}'")
        assert_fits(app)
        (config := home / "config.yaml").touch()
        config.chmod(0o666)
        await until(pilot, lambda: f"1 of 2: {entry}" in app.said.text)
        entry.chmod(0o600)
        await until(pilot, lambda: app.said.text.startswith(f"{config} is not used"))  # the old line leaves later
