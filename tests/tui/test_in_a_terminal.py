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
def env(home):
    """The environment of a person at a terminal without any wishes."""
    wishes = ("NO_COLOR", "COLORTERM", "SSH_CONNECTION", "SSH_CLIENT", "SSH_TTY", "TMUX")
    kept = [name for name in os.environ if name not in wishes and not name.startswith(("TEXTUAL_", "PPO_TUI_"))]
    return {name: os.environ[name] for name in kept} | {"PPO_TUI_HOME": str(home)}


@pytest.fixture
def terminals(env, warned):
    """`terminals(...)` attaches to the warned run and waits for it, `terminals.open` runs a command."""
    opened = []

    def run(command, env, *size):
        opened.append(Terminal(command, env, *size))
        return opened[-1]

    def attach(*options, run_=warned, shows="▲ WARN KL-4", size=(80, 24), **more):
        terminal = run([*PPO_TUI, *options, "attach", run_.name], env | more, *size)
        terminal.wait_for(lambda text: shows in text)
        return terminal

    attach.open = run
    yield attach
    for terminal in opened:
        terminal.close()


def colours(raw):
    """The colour parameters of every SGR escape."""
    return {
        int(parameter)
        for found in SGR.finditer(raw)
        for parameter in re.split(rb"[;:]", found[1])
        if parameter.isdigit() and int(parameter) in COLOURS
    }


def press(terminal, *pairs):
    """Sends keys, and waits for what each shows."""
    for keys, *shows in pairs:
        terminal.send(keys)
        terminal.wait_for(lambda text, shows=shows: all(word in text for word in shows))


def test_nothing_is_written_while_nothing_changes_and_q_tells_how_to_come_back(terminals, warned):
    terminal = terminals()
    press(terminal, ("l", "following"))
    terminal.send("/")  # a field to type in: no blinking cursor
    terminal.pump(2)
    before = len(terminal.raw)
    terminal.pump(4)
    assert len(terminal.raw) == before
    press(terminal, ("\x1b", "following"), ("\x1b", "q quit"))
    press(terminal, ("q", f"continues; show it with `ppo-tui attach {warned.name}`"))


def test_what_is_typed_after_the_screen_has_left_reaches_the_shell(env, warned, terminals):
    slow = (  # what Textual does at the end lasts, as on a busy machine
        "import time; from textual.drivers.linux_driver import LinuxDriver as D; own = D.disable_input; "
        "D.disable_input = lambda self: (time.sleep(0.5), own(self), time.sleep(0.5)); "
    )
    program = [sys.executable, "-c", slow + PPO_TUI[2], "attach", warned.name]
    script = f"{shlex.join(program)}; echo over; read -r line; echo got:$line:"
    terminal = terminals.open(["sh", "-c", script], env)
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


def test_escape_and_the_key_after_it_are_two_keys(terminals):
    """Over ssh both come in one read: `alt` and that key, to a terminal."""
    terminal = terminals(SSH_TTY="/dev/pts/1", size=(80, 48))
    press(terminal, ("l", "following"), ("\x1b?", "Keys"), ("\x1b", "▲ WARN KL-4"), ("l", "following"))
    for keys, shows in (("\x1bm", "metric"), ("\x1b[B\x1b[A\x1b\x1b", "▲ WARN KL-4")):
        terminal.send(keys)
        terminal.wait_for(lambda text, shows=shows: shows in text and "following" not in text)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_gives_the_terminal_back(terminals, number):
    terminal = terminals("--mouse")
    terminal.process.send_signal(number)
    while terminal.process.poll() is None:  # a terminal goes on taking what is written to it
        terminal.pump()
    assert terminal.process.returncode == 128 + number
    terminal.pump(PATIENCE)  # to the end
    for mode in (b"1049", b"1000", b"1003", b"1004", b"1006", b"2004"):
        switched = [end[0] for end in re.findall(rb"\x1b\[\?%b([hl])" % mode, terminal.raw)]
        assert switched[-1:] == [ord("l")], mode


def test_a_disk_that_hangs_keeps_nobody_on_the_screen(warned, terminals):
    (warned / "gpu.jsonl").unlink(missing_ok=True)
    os.mkfifo(warned / "gpu.jsonl")  # reading it lasts until somebody writes
    terminal = terminals(shows="q quit")
    terminal.send("q")
    assert terminal.process.wait(PATIENCE) == 0


def test_no_color_means_none_and_the_states_can_still_be_read(terminals):
    terminal = terminals(NO_COLOR="1")
    terminal.wait_for(lambda text: "reward" in text and "⡀" in text.replace("⣀", "⡀"))
    press(terminal, ("h", "Unrewarded drift KL-4"), ("h", "step 62/80"), ("?", "Keys"))
    assert SGR.search(terminal.raw), "bold is no colour"
    assert colours(terminal.raw) == set() and terminal.process.poll() is None


def test_colours_are_those_of_the_terminal_where_it_has_sixteen(terminals):
    used = colours(terminals(TEXTUAL_COLOR_SYSTEM="standard").raw)
    assert used and not used & {38, 48}


SSH = {"SSH_CONNECTION": "10.0.0.1 5 10.0.0.2 22"}


@pytest.mark.parametrize(
    ("more", "options", "mouse", "kitty", "reports"),
    [
        ({}, [], True, True, True),
        ({}, ["--no-mouse"], False, True, True),
        (SSH, [], False, False, False),
        ({**SSH, "TEXTUAL_DISABLE_KITTY_KEY": "0"}, ["--mouse"], True, True, False),
    ],
)
def test_what_is_switched_on_over_ssh_types_nothing_into_the_shell_after_a_cut(
    terminals, more, options, mouse, kitty, reports
):
    raw = terminals(*options, **more).raw
    assert (b"\x1b[?1000h" in raw or b"\x1b[?1003h" in raw) == mouse
    assert (re.search(rb"\x1b\[>\d+u", raw) is not None) == kitty
    assert (b"\x1b[?1004h" in raw, b"\x1b[?2048$p" in raw) == (reports, reports)
    assert b"\x1b[?2004h" in raw, "a pasted text is not pressed key by key"


def test_a_wrong_setting_is_an_error_and_a_hint(env, home, terminals):
    (home / "config.yaml").write_text("theme: dark\nmouse: perhaps\n")
    terminal = terminals.open(PPO_TUI, env)
    terminal.process.wait(PATIENCE)
    terminal.pump(0.5)
    assert terminal.process.returncode == 2
    told = "".join(terminal.text().splitlines())
    assert told.endswith("config.yaml, line 2: mouse: 'perhaps' is not allowedhint: use true or false")


def test_a_reader_that_stops_for_seconds_costs_the_run_nothing(env, home, terminals):
    """A stalled link blocks the screen; supervisor and driver are other processes, and go on."""
    log = shutil.copy(LOGS / "cpu-toy.jsonl.gz", home / "toy.jsonl.gz")
    replay = [*PPO_TUI, "demo", str(log), "--speed", "8", "--detach", "--json"]
    run = RunDir(Path(json.loads(subprocess.check_output(replay, env=env, text=True))["dir"]))

    def recorded():
        return int(json.loads(run.attempt(1).steps.read_bytes().splitlines()[-1])["step"])

    def shown(text):
        found = re.findall(r"(?:^ |finished at )step (\d+)", text, re.MULTILINE)
        return max((int(step) for step in found), default=0)

    try:
        terminal = terminals(run_=run.path, shows="step ", size=(160, 48))
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
        wait_until(lambda: terminal.pump() or terminal.process.poll() is not None, terminal.text)
    finally:
        subprocess.run([*PPO_TUI, "stop", run.id, "--wait"], env=env, capture_output=True, check=False)


class Tmux:
    """A shell in a tmux of its own."""

    def __init__(self, env):
        self._server = ["tmux", "-L", f"test{os.getpid()}", "-f", "/dev/null"]
        # pytest-xdist names a size, which would count more than that of the window
        self._env = {**{key: env[key] for key in env if key not in ("LINES", "COLUMNS")}, "TERM": "xterm-256color"}
        self.run("new-session", "-d", "-x", "80", "-y", "24", "bash --norc --noprofile")

    def run(self, *words):
        told = subprocess.run([*self._server, *words], env=self._env, capture_output=True, text=True, check=True)
        return told.stdout

    def wait_for(self, good):
        deadline = time.monotonic() + PATIENCE
        while not good(seen := self.run("capture-pane", "-p")):
            assert time.monotonic() < deadline, seen
            time.sleep(0.1)
        return seen


@pytest.fixture
def tmux(env):
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not installed")
    made = Tmux(env)
    yield made
    made.run("kill-server")


def test_in_tmux_it_suspends_comes_back_and_bears_a_resize(tmux, warned):
    def whole(seen):
        return all(part in seen for part in ("▲ WARN     Unrewarded drift", "reward", "x stop"))

    def charts(seen):
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


def test_a_preflight_draws_the_memory_of_a_phase_on_a_terminal(terminals, env):
    command = [*PPO_TUI, "check", "gsm8k-0.5b-24gb", "--assume", "1x24"]
    terminals.open(command, env, 80, 60).wait_for(lambda text: re.search(r"rollout .* of 23\.6  ▓{9,}░*\|", text))
    piped = subprocess.run(command, env=env, capture_output=True, text=True, check=False).stdout
    assert re.search(r"rollout .* of 23\.6$", piped, re.MULTILINE), piped
