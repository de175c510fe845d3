"""Figures of a run written into files from the screen; and what the screen says in passing."""

import csv
import json

import pytest
from pilots import assert_fits, picture

from tui.kit.dialogs.choose import ConfirmScreen
from tui.kit.widgets import message_line


async def asked(user, *keys):
    """The field that asks for the file, opened by keys."""
    for key in keys:
        await user("...", key)  # reading the run, or the list of runs
    await user("AskScreen", lambda: user.screen.query("Input"))
    return user.one("Input")


def wrong(user):
    return str(user.one("#wrong").content)


async def test_the_ending_of_the_file_is_the_format_and_what_cannot_be_written_is_said(
    make, warned, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    async with make.open(warned, read_only=True) as user:  # a copy changes nothing of the run
        field = await asked(user, "a", "e")
        assert field.value == f"{warned.name}.csv" and ".parquet" in wrong(user)
        await user("enter", lambda: "Exported" in user.message, "DashboardScreen")
        assert str(tmp_path / field.value) in user.message
        heads, *rows = csv.reader((tmp_path / field.value).open())
        assert heads[:2] == ["step", "attempt"] and len(rows) == 63
        field = await asked(user, "a", "e")
        field.value = str(tmp_path / "x.xlsx")
        await user("enter", lambda: "use .csv" in wrong(user))
        field.value = str(tmp_path / "nowhere" / "x.csv")
        await user("enter", lambda: "Not exported" in user.message)
        assert "No such file" in user.message and "--output" not in user.message


async def test_files_are_written_from_the_list_and_replaced_only_when_told_so(make, warned, tmp_path):
    there, report = tmp_path / "x.jsonl", tmp_path / "r.html"
    there.write_text("mine")
    async with make.open(warned) as user:
        for page in ("DashboardScreen", "RunsScreen"):
            field = await asked(user, *(["escape"] if page == "RunsScreen" else []), "a", "h")
            field.value = "report.pdf"
            await user("enter", lambda: "HTML file" in wrong(user))
            field.value = str(report)
            await user("enter", page, lambda: "Report: " in user.message and report.exists())
            assert "<h2" in report.read_text()
            report.unlink()
        for answer in "ny":
            field = await asked(user, "a", "e")
            field.value = str(there)
            await user("enter", "ConfirmScreen", answer)
            if answer == "n":  # another name can be given
                await user("AskScreen", "escape", "RunsScreen")
                assert there.read_text() == "mine"
        await user("RunsScreen", "...", lambda: there.read_text() != "mine")
        assert json.loads(there.read_text().splitlines()[1])["step"] == 1


async def test_a_bundle_is_written_from_the_dashboard(make, warned, tmp_path):
    (there := tmp_path / "b.zip").write_text("mine")
    async with make.open(warned, size=(20, 5)) as user:
        field = await asked(user, "a", "b")
        await user(lambda: 0 < field.region.y < 4)  # where there is hardly room a question shows its field
        await user.resize_terminal(80, 24)
        assert field.value.endswith("-bundle.zip")
        for name, told in (("b.tar", "ZIP file"), ("~no-such-user/b.zip", "home directory")):
            field.value = name
            await user("enter", lambda told=told: told in wrong(user))
        for answer in "ny":
            field.value = str(there)
            await user("enter", "ConfirmScreen", answer)
            if answer == "n":
                assert there.read_text() == "mine"
                field = await asked(user, "a", "b")
        await user(lambda: "Bundle: " in user.message)
        assert there.read_bytes().startswith(b"PK")


@pytest.mark.parametrize("size", [(80, 24), (20, 5), (160, 48)])
async def test_the_newest_message_alone_stands_over_the_footer(make, size):
    async with make.open(size=size) as user:
        for _ in range(3):
            user.app.notify("the same thing", severity="warning")
        user.app.notify("[b]bold[/] and \x1b[2J newer")
        user.app.notify("a[1] long one " * 40, title="Not done", severity="error", markup=False)
        await user(lambda: user.message.startswith("Not done: a[1] long one"))
        (line,) = user.screen.query("MessageLine")
        await user(lambda: line.region.height)
        assert line.region.bottom == size[1] and line.region.height <= max(size[1] // 5, 1)
        shown, lines = picture(user.app)[line.region.y], picture(user.app)
        assert shown.startswith(" ✖ Not done:") and "the same" not in "".join(lines)
        assert "…" in shown if line.region.height == 1 else lines[-1].rstrip().endswith("…")


async def test_a_message_goes_with_a_key_or_its_time_and_follows_to_the_screen_that_is_up(make, monkeypatch):
    async with make.open(make.run()) as user:
        below = user.screen
        user.app.notify("▲ WARN KL-4")
        await user(lambda: user.message, "down")
        assert user.message == "▲ WARN KL-4"  # not before it can be read
        assert sum(line.startswith(" ▲ WARN KL-4") for line in picture(user.app)) == 1  # its own sign, once
        await user.app.push_screen(ConfirmScreen("Sure?", "", "y  yes"))
        await user(lambda: user.message == "▲ WARN KL-4" and not below.query("MessageLine"))
        user.app.notify("said above")
        await user(lambda: user.message == "said above")
        user.app.pop_screen()
        await user(lambda: user.screen is below and user.message == "said above")
        monkeypatch.setattr(message_line, "_READ", 0.0)
        await user("down", lambda: not user.message)
        assert user.one("KeyBar").region.bottom == 24
        user.app.notify("soon gone", timeout=1)
        await user(lambda: user.app.said, lambda: not user.message)


async def test_ctrl_c_names_the_key_that_quits_and_the_footer_enter_while_a_field_is_typed_in(make):
    async with make.open() as user:
        await user("ctrl+c", lambda: user.message == "q quits; runs continue")
        assert "accept" not in user.one("KeyBar").labels
        await user("slash", lambda: user.one("KeyBar").labels[:1] == ["accept"], "enter")
        await user(lambda: "accept" not in user.one("KeyBar").labels)


async def test_files_that_are_not_used_because_of_their_owner_are_named_once(make, home):
    (home / "queue").mkdir(mode=0o700)
    (entry := home / "queue" / "x.json").touch()
    entry.chmod(0o666)
    async with make.open() as user:
        await user(lambda: f"{entry} is not used" in user.message)
        assert user.message.endswith(f"-w '{entry}'")
        assert_fits(user.app)
        (config := home / "config.yaml").touch()
        config.chmod(0o666)
        await user(lambda: f"1 of 2: {entry}" in user.app.said.text)
        entry.chmod(0o600)
        await user(lambda: user.app.said.text.startswith(f"{config} is not used"))  # the old line leaves later
