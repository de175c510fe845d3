"""The screen in a real pseudo terminal: which bytes it writes, and what it bears."""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from terminal import Terminal
from waiting import PATIENCE, wait_until

from launcher.record.layout import RunDir
from tui.entry import main

LOGS = Path(__file__).parents[1] / "data" / "logs"
PPO_TUI = [sys.executable, "-c", f"from {main.__module__} import main; main()"]
SGR = re.compile(rb"\x1b\[([0-9;:]*)m")
COLOURS = {*range(30, 39), *range(40, 49), *range(90, 98), *range(100, 108)}  # 39 and 49: the terminal's own


@pytest.fixture
def env(home: Path) -> dict[str, str]:
    """The environment of a person at a terminal without any wishes."""
    wishes = ("NO_COLOR", "COLORTERM", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "TMUX")
    return {
        name: value
        for name, value in os.environ.items()
        if name not in wishes and not name.startswith(("TEXTUAL_", "PPO_TUI_"))
    } | {"PPO_TUI_HOME": str(home)}


@pytest.fixture
def terminals() -> Iterator[list[Terminal]]:
    opened: list[Terminal] = []
    yield opened
    for terminal in opened:
        terminal.close()


def attach(
    terminals: list[Terminal], run: Path, env: Mapping[str, str], *options: str, columns: int = 80, rows: int = 24
) -> Terminal:
    terminal = Terminal([*PPO_TUI, *options, "attach", run.name], env, columns, rows)
    terminals.append(terminal)
    return terminal


def colours(raw: bytes) -> set[int]:
    """The colour parameters of every SGR escape."""
    return {
        int(parameter)
        for found in SGR.finditer(raw)
        for parameter in re.split(rb"[;:]", found[1])
        if parameter.isdigit() and int(parameter) in COLOURS
    }


def test_leaving_a_run_that_goes_on_tells_how_to_come_back(
    env: dict[str, str], warned: Path, terminals: list[Terminal]
) -> None:
    terminal = attach(terminals, warned, env)
    terminal.wait_for(lambda text: "q quit" in text)
    terminal.send("q")
    terminal.wait_for(lambda text: f"continues; show it with `ppo-tui attach {warned.name}`" in text)


def test_what_is_typed_after_the_screen_has_left_reaches_the_shell(
    env: dict[str, str], warned: Path, terminals: list[Terminal]
) -> None:
    slow = (  # what Textual does at the end lasts, as on a busy machine
        "import time; from textual.drivers.linux_driver import LinuxDriver as D; own = D.disable_input; "
        "D.disable_input = lambda self: (time.sleep(0.5), own(self), time.sleep(0.5)); "
    )
    program = [sys.executable, "-c", slow + PPO_TUI[2], "attach", warned.name]
    terminal = Terminal(["sh", "-c", f"{shlex.join(program)}; echo over; read -r line; echo got:$line:"], env)
    terminals.append(terminal)
    terminal.wait_for(lambda text: "q quit" in text)
    terminal.send("q")
    while b"\x1b[?1049l" not in terminal.raw:
        terminal.pump(0.01)
    typed = ""
    while b"over" not in terminal.raw:
        terminal.send(more := f"{len(typed)}.")
        typed += more
        terminal.pump(0.01)
    terminal.send("\n")
    terminal.wait_for(lambda text: f"got:{typed}:" in text.replace("\n", ""))


def test_escape_and_the_key_after_it_are_two_keys(env: dict[str, str], warned: Path, terminals: list[Terminal]) -> None:
    """Over ssh both come in one read: `alt` and that key, to a terminal."""
    terminal = attach(terminals, warned, env | {"SSH_TTY": "/dev/pts/1"}, rows=48)
    terminal.wait_for(lambda text: "▲ WARN KL-4" in text)
    for keys, shows in (("l", "following"), ("\x1b?", "Keys"), ("\x1b", "▲ WARN KL-4"), ("l", "following")):
        terminal.send(keys)
        terminal.wait_for(lambda text, shows=shows: shows in text)
    for keys, shows in (("\x1bm", "metric"), ("\x1b[B\x1b[A\x1b\x1b", "▲ WARN KL-4")):
        terminal.send(keys)
        terminal.wait_for(lambda text, shows=shows: shows in text and "following" not in text)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(
    env: dict[str, str], warned: Path, terminals: list[Terminal], number: signal.Signals
) -> None:
    terminal = attach(terminals, warned, env, "--mouse")
    terminal.wait_for(lambda text: "q quit" in text)
    terminal.process.send_signal(number)
    while terminal.process.poll() is None:  # a terminal goes on taking what is written to it
        terminal.pump()
    assert terminal.process.returncode == 128 + number
    terminal.pump(PATIENCE)  # to the end
    for mode in (b"1049", b"1000", b"1003", b"1004", b"1006", b"2004"):
        switched = [end[0] for end in re.findall(rb"\x1b\[\?%b([hl])" % mode, terminal.raw)]
        assert switched[-1:] == [ord("l")], mode


def test_a_disk_that_hangs_keeps_nobody_on_the_screen(
    env: dict[str, str], warned: Path, terminals: list[Terminal]
) -> None:
    (warned / "gpu.jsonl").unlink(missing_ok=True)
    os.mkfifo(warned / "gpu.jsonl")  # reading it lasts until somebody writes
    terminal = attach(terminals, warned, env)
    terminal.wait_for(lambda text: "q quit" in text)
    terminal.send("q")
    assert terminal.process.wait(PATIENCE) == 0


def test_no_color_means_none_and_the_states_can_still_be_read(
    env: dict[str, str], warned: Path, terminals: list[Terminal]
) -> None:
    terminal = attach(terminals, warned, {**env, "NO_COLOR": "1"})
    terminal.wait_for(lambda text: "▲ WARN KL-4" in text and "reward" in text and "⡀" in text.replace("⣀", "⡀"))
    for key, shows in (("h", "Unrewarded drift KL-4"), ("h", "step 62/80"), ("?", "Keys")):
        terminal.send(key)
        terminal.wait_for(lambda text, shows=shows: shows in text)
    assert SGR.search(terminal.raw), "bold is no colour"
    assert colours(terminal.raw) == set()
    assert terminal.process.poll() is None


def test_colours_are_those_of_the_terminal_where_it_has_sixteen(
    env: dict[str, str], warned: Path, terminals: list[Terminal]
) -> None:
    terminal = attach(terminals, warned, {**env, "TEXTUAL_COLOR_SYSTEM": "standard"})
    terminal.wait_for(lambda text: "▲ WARN KL-4" in text)
    used = colours(terminal.raw)
    assert used and not used & {38, 48}


@pytest.mark.parametrize(
    ("more", "options", "taken"),
    [
        ({}, [], True),
        ({}, ["--no-mouse"], False),
        ({"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}, [], False),
        ({"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}, ["--mouse"], True),
    ],
)
def test_the_mouse_is_taken_only_where_it_is_wanted(
    env: dict[str, str], warned: Path, terminals: list[Terminal], more: dict[str, str], options: list[str], taken: bool
) -> None:
    terminal = attach(terminals, warned, env | more, *options)
    terminal.wait_for(lambda text: "▲ WARN KL-4" in text)
    assert (b"\x1b[?1000h" in terminal.raw or b"\x1b[?1003h" in terminal.raw) == taken


@pytest.mark.parametrize(
    ("more", "kitty", "reports"),
    [
        ({}, True, True),
        ({"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}, False, False),
        ({"SSH_TTY": "/dev/pts/1"}, False, False),
        ({"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22", "TEXTUAL_DISABLE_KITTY_KEY": "0"}, True, False),
    ],
)
def test_over_ssh_nothing_is_switched_on_that_types_into_the_shell_after_a_cut(
    env: dict[str, str], warned: Path, terminals: list[Terminal], more: dict[str, str], kitty: bool, reports: bool
) -> None:
    terminal = attach(terminals, warned, env | more)
    terminal.wait_for(lambda text: "▲ WARN KL-4" in text)
    assert (re.search(rb"\x1b\[>\d+u", terminal.raw) is not None) == kitty
    assert (b"\x1b[?1004h" in terminal.raw, b"\x1b[?2048$p" in terminal.raw) == (reports, reports)
    assert b"\x1b[?2004h" in terminal.raw, "a pasted text is not pressed key by key"


def test_nothing_moves_and_nothing_is_written_while_nothing_changes(
    env: dict[str, str], warned: Path, terminals: list[Terminal]
) -> None:
    terminal = attach(terminals, warned, env)
    terminal.wait_for(lambda text: "▲ WARN KL-4" in text)
    terminal.send("l")
    terminal.wait_for(lambda text: "following" in text)
    terminal.send("/")  # a field to type in: no blinking cursor
    terminal.pump(2)
    before = len(terminal.raw)
    terminal.pump(4)
    assert len(terminal.raw) == before


def test_a_wrong_setting_is_an_error_and_a_hint(env: dict[str, str], home: Path) -> None:
    (home / "config.yaml").write_text("theme: dark\nmouse: perhaps\n")
    terminal = Terminal([*PPO_TUI], env)
    terminal.process.wait(PATIENCE)
    terminal.pump(0.5)
    assert terminal.process.returncode == 2
    told = "".join(terminal.text().splitlines())
    assert told.endswith("config.yaml, line 2: mouse: 'perhaps' is not allowedhint: use true or false")


def test_a_reader_that_stops_for_seconds_costs_the_run_nothing(
    env: dict[str, str], home: Path, terminals: list[Terminal]
) -> None:
    """A stalled link blocks the screen; supervisor and driver are other processes, and go on."""
    log = shutil.copy(LOGS / "cpu-toy.jsonl.gz", home / "toy.jsonl.gz")
    told = subprocess.run(
        [*PPO_TUI, "replay", str(log), "--speed", "8", "--detach", "--json"],
        env=env,
        capture_output=True,
        text=True,
        check=True,
    )
    run = RunDir(Path(json.loads(told.stdout)["dir"]))

    def recorded() -> int:
        return int(json.loads(run.attempt(1).steps.read_bytes().splitlines()[-1])["step"])

    def shown(text: str) -> int:
        found = re.findall(r"(?:^ |finished at )step (\d+)", text, re.MULTILINE)
        return max((int(step) for step in found), default=0)

    try:
        terminal = attach(terminals, run.path, env, columns=160, rows=48)
        terminal.wait_for(lambda text: shown(text) >= 3)
        before = recorded()
        for _ in range(40):  # nobody reads the terminal, and more is painted than Textual keeps waiting (30)
            terminal.send("hh")
            time.sleep(0.15)
        wait_until(lambda: recorded() >= min(before + 10, 80))
        during = recorded()
        terminal.wait_for(lambda text: shown(text) >= during)
        assert terminal.process.poll() is None
        terminal.send("\x11")  # ctrl+q
        deadline = time.monotonic() + PATIENCE
        while terminal.process.poll() is None:
            assert time.monotonic() < deadline, terminal.text()
            terminal.pump()
    finally:
        subprocess.run([*PPO_TUI, "stop", run.id, "--wait"], env=env, capture_output=True, check=False)


class Tmux:
    """A shell in a tmux of its own."""

    def __init__(self, env: Mapping[str, str]) -> None:
        self._server = ["tmux", "-L", f"test{os.getpid()}", "-f", "/dev/null"]
        # pytest-xdist names a size, which would count more than that of the window
        self._env = {**{key: env[key] for key in env if key not in ("LINES", "COLUMNS")}, "TERM": "xterm-256color"}
        self.run("new-session", "-d", "-x", "80", "-y", "24", "bash --norc --noprofile")

    def run(self, *words: str) -> str:
        told = subprocess.run([*self._server, *words], env=self._env, capture_output=True, text=True, check=True)
        return told.stdout

    def wait_for(self, good: Callable[[str], bool]) -> str:
        deadline = time.monotonic() + PATIENCE
        while not good(seen := self.run("capture-pane", "-p")):
            assert time.monotonic() < deadline, seen
            time.sleep(0.1)
        return seen


@pytest.fixture
def tmux(env: dict[str, str]) -> Iterator[Tmux]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    made = Tmux(env)
    yield made
    made.run("kill-server")


def test_in_tmux_it_suspends_comes_back_and_bears_a_resize(tmux: Tmux, warned: Path) -> None:
    def whole(seen: str) -> bool:
        """With the limits of the rules."""
        return all(part in seen for part in ("▲ WARN KL-4", "NOTICE ≥ 0.500", "reward", "x stop"))

    def charts(seen: str) -> list[str]:
        return seen.splitlines()[2:15]

    tmux.run("send-keys", f"{shlex.join(PPO_TUI)} attach {warned.name}", "Enter")
    tmux.wait_for(whole)
    time.sleep(1)  # tmux may have been in the middle of a frame
    first = tmux.wait_for(whole)
    tmux.run("send-keys", "C-z")
    tmux.wait_for(lambda seen: seen.rstrip()[-1:] in "#$")
    tmux.run("send-keys", "fg", "Enter")
    tmux.wait_for(lambda seen: whole(seen) and charts(seen) == charts(first))
    tmux.run("resize-window", "-x", "40", "-y", "12")
    tmux.wait_for(lambda seen: "running" in seen and "q quit" not in seen)
    tmux.run("resize-window", "-x", "80", "-y", "24")
    tmux.wait_for(whole)
    tmux.run("send-keys", "C-q")
    tmux.wait_for(lambda seen: seen.rstrip()[-1:] in "#$")


@pytest.mark.skipif(shutil.which("mosh-server") is None, reason="mosh is not installed")
def test_behind_mosh_the_picture_is_the_same(env: dict[str, str], warned: Path, terminals: list[Terminal]) -> None:
    plain = attach(terminals, warned, env)
    plain.wait_for(lambda text: "NOTICE ≥ 0.500" in text)
    env = {**env, "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TERM": "xterm-256color"}
    server = ["mosh-server", "new", "-i", "127.0.0.1", "-c", "256", "--"]
    told = subprocess.run([*server, *PPO_TUI, "attach", warned.name], env=env, capture_output=True, check=True)
    words = (told.stdout + told.stderr).decode()
    port, key = re.findall(r"MOSH CONNECT (\d+) (\S+)", words)[0]
    pid = int(re.findall(r"pid = (\d+)", words)[0])
    behind = Terminal(["mosh-client", "127.0.0.1", port], {**env, "MOSH_KEY": key})
    terminals.append(behind)
    try:
        plain.pump(1)
        below = plain.text().splitlines()[1:]  # the first line has a clock
        behind.wait_for(lambda text: text.splitlines()[1:] == below)
    finally:
        os.kill(pid, signal.SIGTERM)
