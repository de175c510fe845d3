"""Every key of the screen in one table, by the page or widget that has it.

A letter has one meaning on all pages, which `LETTERS` gives it. Classes bind their part of `KEYS`,
`config.yaml` moves keys by their ids, `ppo-tui keys` lists them: for that no screen is imported. The footer shows
those of `_shown`; help and palette have all.
"""

from dataclasses import replace

from textual.binding import Binding

LETTERS: dict[str, str] = {  # meaning -> keys, wherever a page has it
    "add": "I",
    "checks": "h",
    "compare": "c",
    "copy": "y",
    "devices": "b",
    "diagnosis": "d",
    "edit": "e",
    "editor": "o",
    "evaluate": "V",
    "events": "v",
    "export": "E",
    "fields": "z",
    "fix": "F",
    "fork": "Y",
    "import": "i",
    "log": "l",
    "log scale": "L",
    "merge": "H",
    "metrics": "m",
    "move down": "J",
    "move up": "K",
    "mute": "M",
    "newest": "f",
    "next match": "n",
    "note": "T",
    "order": "O",
    "path": "P",
    "pause": "Z",
    "pin": "p",
    "prepare data": "B",
    "previous match": "N",
    "queue": "Q",
    "recipe": "C",
    "redo": "U",
    "remove": "D",
    "resume": "R",
    "runs": "r",
    "samples": "s",
    "save": "w",
    "save as": "A",
    "smooth": "a",
    "start": "S",
    "stop": "x",
    "trials": "X",
    "undo": "u",
    "wrap": "W",
    "x axis": "t",
}
"""`k`, `j`, `g` and `G` move, `q` leaves a page, the list ends the program. Two exceptions: in dialogs letters are
answers, and in the log `e` goes to the cause of the failure, where nothing is edited."""


def _shown(
    id: str, keys: str, action: str, words: str, tip: str, display: str | None = None, *, priority: bool = False
) -> Binding:
    """`keys` is a meaning of LETTERS, or names of keys that are no letters."""
    return Binding(_named(keys), action, words, key_display=display, priority=priority, tooltip=tip, id=id)


def _hidden(
    id: str, keys: str, action: str, words: str, tip: str, display: str | None = None, *, priority: bool = False
) -> Binding:
    shown = _shown(id, keys, action, words, tip, display, priority=priority)
    return replace(shown, show=False)


def _named(keys: str) -> str:
    return ",".join(LETTERS.get(each, each) for each in keys.split(","))


_MOVES = {
    "up": ("up,k", "↑↓", "Up, down"),
    "down": ("down,j", "↑↓", "Up, down"),
    "page_up": ("pageup,ctrl+u", "pgup pgdn", "Page up, page down (ctrl+u, ctrl+d)"),
    "page_down": ("pagedown,ctrl+d", "pgup pgdn", "Page up, page down (ctrl+u, ctrl+d)"),
    "first": ("home,g", "g G", "First line, last line"),
    "last": ("end,G", "g G", "First line, last line"),
}


def _moves(*, letters: bool = True, **actions: str) -> list[Binding]:
    """An action each for up, down, page_up, page_down, first, last.

    One id each for all pages, `move.page-up`: a user who moves it moves it everywhere. `letters` are k, j, g and G,
    for what stands beside no field to type in.
    """
    found = []
    for name, action in actions.items():
        keys, display, tip = _MOVES[name]
        keys = keys if letters else keys.partition(",")[0]
        found.append(_hidden(f"move.{name.replace('_', '-')}", keys, action, "", tip, display))
    return found


def _back(id: str, action: str = "dismiss", also: str = "") -> Binding:
    """One step back; `also` is the letter that opened the page."""
    return _shown(id, f"escape,q,backspace{also and ','}{also}", action, "back", "Go back one step", "esc")


_TEXT = _moves(
    up="scroll(-1)",
    down="scroll(1)",
    page_up="scroll(-10)",
    page_down="scroll(10)",
    first="scroll(-100000)",
    last="scroll(100000)",
)
_LIST = _moves(
    up="move(-1)", down="move(1)", page_up="move(-8)", page_down="move(8)", first="move(-100000)", last="move(100000)"
)


def _charts(*, footer: bool = False) -> list[Binding]:
    """The keys of a `ChartScreen`; `footer`: it has room for the most important ones."""
    shown = _shown if footer else _hidden
    point, zoom, pan = "Read the values at a step; esc closes", "Show fewer steps, more steps", "Earlier, later steps"
    return [
        shown("chart.cursor-left", "left", "point(-1)", "values", point, "←→"),
        _hidden("chart.cursor-right", "right", "point(1)", "", point, "←→"),
        shown("chart.zoom-in", "plus,equals_sign", "zoom(0.5)", "zoom", zoom, "+ -"),
        _hidden("chart.zoom-out", "minus", "zoom(2)", "", zoom, "+ -"),
        _hidden("chart.pan-left", "comma", "pan(-1)", "", pan, ", ."),
        _hidden("chart.pan-right", "full_stop", "pan(1)", "", pan, ", ."),
        shown("chart.smooth", "smooth", "smooth", "smooth", "Smooth the curves: off, 0.6, 0.9, 0.97"),
        _hidden("chart.log", "log scale", "log_scale", "log scale", "Logarithmic value axis"),
        _hidden("chart.x-axis", "x axis", "across", "x axis", "Steps, training time or tokens on the x axis"),
        _hidden("chart.fit", "newest", "fit", "newest", "End at the newest step, or leave room for the next ones"),
        _hidden("chart.usual", "0,home", "usual_view", "reset charts", "Reset the view of the charts", "0"),
    ]


_FORK = _hidden(
    "dashboard.fork", "fork", "fork", "fork", "Fork: a new run from a checkpoint of this one, with changed settings"
)

KEYS: dict[str, list[Binding]] = {
    "app": [
        _shown("app.help", "question_mark", "help", "help", "Show the keys of this page and the signs", "?"),
        _shown("app.palette", "colon", "command_palette", "palette", "Find an action, run, preset or metric", ":"),
        _hidden("app.suspend", "ctrl+z", "suspend_process", "suspend", "Suspend to the shell; fg resumes"),
    ],
    "ask": [_shown("ask.cancel", "escape", "dismiss(None)", "cancel", "Cancel")],
    "choose": [
        _shown("choose.cancel", "escape", "dismiss(None)", "cancel", "Cancel"),
        *_moves(letters=False, up="scroll(-1)", down="scroll(1)"),
    ],
    "confirm": [
        _shown("confirm.yes", "y", "close(True)", "yes", "Confirm"),
        _shown("confirm.no", "n,escape", "close(False)", "no", "Cancel"),
        *_moves(letters=False, up="scroll(-1)", down="scroll(1)", page_up="scroll(-10)", page_down="scroll(10)"),
    ],
    "paste": [
        _shown("paste.submit", "f2", "submit", "continue", "Use the text"),
        _hidden("paste.enter", "enter", "submit", "end", "Use a path; in other texts begin a line"),
        _shown("paste.cancel", "escape", "dismiss(None)", "cancel", "Cancel"),
    ],
    "help": [_shown("help.close", "escape,q,question_mark", "dismiss", "close", "Close the help"), *_TEXT],
    "runs": [
        _hidden("runs.jump", "tab", "jump", "runs/presets", "Jump between runs and presets", "tab"),
        _shown("runs.mark", "space", "mark", "mark", "Mark a run to compare, stop or delete several"),
        _shown("runs.compare", "compare", "compare", "compare", "Compare the marked runs"),
        _shown("runs.edit", "edit", "edit", "edit", "Edit the preset, or a new preset from the run's settings"),
        _shown("runs.filter", "slash", "find", "filter", "Filter by name, state, verdict or tag", "/", priority=True),
        _hidden("runs.order", "order", "order", "order", "Order: newest, best, longest, by name, preset or tag"),
        _hidden("runs.stop", "stop", "stop", "stop", "Stop the run, or the marked runs; asks first"),
        _hidden(
            "runs.delete", "remove", "delete", "delete", "Delete the run, the marked runs or the preset; asks first"
        ),
        _hidden("runs.export", "export", "export", "export", "Export a run: csv, jsonl, parquet, TensorBoard, svg"),
        _hidden("runs.note", "note", "note", "note", "Edit the note and the tags of a run"),
        _hidden("runs.copy", "copy", "preset('copy')", "copy", "Copy a preset"),
        _hidden("runs.rename", "f2", "preset('rename')", "rename", "Rename one of your presets"),
        _hidden("runs.import", "import", "import", "import", "Import a veRL command, a script or a log"),
        _hidden("runs.queue", "queue", "queue", "queue", "The queue: runs that wait for their GPUs"),
        _hidden("runs.data", "prepare data", "prepare_data", "prepare data", "Prepare training data for the presets"),
        _hidden("runs.leave", "escape,backspace", "leave", "back", "Clear the filter"),
        _shown("runs.quit", "q", "app.quit", "quit", "Quit; runs continue"),
    ],
    "list": _LIST,
    "run table": [_shown("runs.open", "enter", "choose", "open", "Open the run, or start the preset", "enter")],
    "queue": [
        _back("queue.back", also="queue"),
        _shown("queue.start", "start", "start", "start", "Start the run now, even if its GPUs are in use"),
        _shown("queue.pause", "pause", "pause", "pause", "Pause the run, or resume it; a skipped run is tried again"),
        _shown("queue.up", "move up", "place(-1)", "move", "Move the run up, down", "K J"),
        _hidden("queue.down", "move down", "place(1)", "", "Move the run up, down", "K J"),
        _shown("queue.remove", "remove", "remove", "delete", "Remove the run from the queue; asks first"),
        _hidden("queue.pause-all", "asterisk", "pause_all", "pause all", "Pause the whole queue, or resume it", "*"),
    ],
    "dashboard": [
        _hidden(
            "dashboard.explain", "enter", "explain", "open check", "Open the selected check, or the worst one", "enter"
        ),
        _hidden("dashboard.next-check", "down,j", "choose(1)", "select check", "Select a check", "↑↓"),
        _hidden("dashboard.previous-check", "up,k", "choose(-1)", "", "Select a check", "↑↓"),
        _hidden("dashboard.page", "tab", "page", "pinned", "Pinned charts, or the standard four"),
        _shown(
            "dashboard.diagnosis", "diagnosis", "diagnosis", "diagnosis", "Why the run failed, or what its errors mean"
        ),
        _shown("dashboard.stop", "stop", "stop", "stop", "Stop the run; asks first"),
        _shown("dashboard.resume", "resume", "resume", "resume", "Resume the run from one of its checkpoints"),
        _shown("dashboard.back", "escape,q,backspace", "back", "back", "Go back one step: to the list", "q"),
        *_charts(),
    ],
    "run pages": [
        _shown("dashboard.checks", "checks", "checks", "checks", "Health checks with their figures"),
        _shown("dashboard.events", "events", "events", "events", "Events with their times"),
        _shown("dashboard.metrics", "metrics", "metrics", "metrics", "All metrics: find, chart, pin"),
        _hidden(
            "dashboard.compare", "compare", "compare", "compare", "Compare with the marked runs, or the previous run"
        ),
        _hidden("dashboard.samples", "samples", "samples", "samples", "Samples: responses of the model at each step"),
        _shown("dashboard.log", "log", "log", "log", "Console log"),
        _hidden("dashboard.gpu", "devices", "gpu", "devices", "GPUs and host: memory, utilisation, processes"),
        _hidden("dashboard.edit", "edit", "edit", "edit", "Edit the run's settings as a new preset"),
        _hidden("dashboard.export", "export", "export", "export", "Export: csv, jsonl, parquet, TensorBoard, svg"),
        _hidden("dashboard.note", "note", "note", "note", "Edit the note and the tags of the run"),
        _hidden("dashboard.evaluate", "evaluate", "evaluate", "evaluate", "Score a checkpoint on the test split"),
        _FORK,
        _hidden("dashboard.trials", "trials", "trials", "trials", "Trials of fixes and their results"),
        _hidden("dashboard.merge", "merge", "merge", "merge", "Turn a checkpoint into a Hugging Face model"),
        _hidden("dashboard.runs", "runs", "runs", "runs", "List of runs and presets"),
        _hidden("dashboard.older", "left_square_bracket", "neighbour(1)", "older run", "Previous run", "["),
        _hidden("dashboard.newer", "right_square_bracket", "neighbour(-1)", "newer run", "Next run", "]"),
    ],
    "check": [
        _back("check.back"),
        _shown("check.previous", "left", "neighbour(-1)", "other checks", "Another check", "←→"),
        _hidden("check.next", "right", "neighbour(1)", "", "Another check", "←→"),
        *_TEXT,
        _shown("check.diagnosis", "diagnosis", "diagnosis", "diagnosis", "What the errors in the log mean"),
        _shown("check.edit", "edit", "edit", "edit", "Edit the run's settings as a new preset, at the first fix"),
        _FORK,
        _shown("check.mute", "mute", "mute", "mute", "Mute the check in this run's verdict, or unmute it"),
    ],
    "trials": [
        _back("trials.back", also="trials"),
        _shown("trials.start", "start", "start", "start", "Try the fixes of the run's first flag"),
        _shown("trials.edit", "edit", "edit", "edit", "Edit the run's settings with this fix as a new preset"),
    ],
    "checks": [_back("checks.back", also="checks"), _FORK],
    "items": [_shown("checks.explain", "enter", "choose", "open", "Open the check", "enter"), *_LIST],
    "diagnosis": [
        _back("diagnosis.back", also="diagnosis"),
        _shown("diagnosis.edit", "edit", "edit", "edit", "Edit the run's settings with the fix as a new preset"),
        _FORK,
        _shown("diagnosis.log", "log", "log", "log", "Console log"),
    ],
    "diagnosis list": [
        _shown(
            "diagnosis.open", "enter", "choose", "open", "Open the line in the log, or the field of the fix", "enter"
        ),
        *_LIST,
    ],
    "events": [
        _back("events.back", also="events"),
        _shown("events.narrow", "right,tab", "narrow(1)", "filter", "All events, or one kind", "←→"),
        _hidden("events.narrow-back", "left,shift+tab", "narrow(-1)", "", "All events, or one kind", "←→"),
    ],
    "metrics": [
        _shown("metrics.filter", "slash", "filter", "filter", "Filter by name, unit or meaning", "/", priority=True),
        _shown("metrics.pin", "pin", "pin", "pin", "Pin the metric to the dashboard, or unpin it"),
        _back("metrics.back", "back", also="metrics"),
        *_moves(letters=False, up="move(-1)", down="move(1)"),
    ],
    "metric table": [_shown("metrics.chart", "enter", "choose", "chart", "Chart of the metric, full screen", "enter")],
    "metric": [
        _back("metric.back", "back"),
        _shown("metric.previous", "up,k", "neighbour(-1)", "other metrics", "Another metric", "↑↓"),
        _hidden("metric.next", "down,j", "neighbour(1)", "", "Another metric", "↑↓"),
        _shown("metric.pin", "pin", "pin", "pin", "Pin the metric to the dashboard, or unpin it"),
        *_charts(footer=True),
    ],
    "compare": [
        _shown("compare.page", "tab", "page", "results", "Which is better and the settings that differ, or the charts"),
        *(move for move in _TEXT if move.id not in ("move.first", "move.last")),  # home resets the charts
        _back("compare.back", "leave", also="compare"),
        *_charts(footer=True),
    ],
    "samples": [
        _back("samples.back", "leave", also="samples"),
        _shown("samples.earlier", "left", "step(-1)", "step", "Previous step, next step", "←→"),
        _hidden("samples.later", "right", "step(1)", "", "Previous step, next step", "←→"),
        _shown("samples.kind", "tab", "kind", "rollout/validation", "Rollout or validation samples"),
        _shown("samples.order", "order", "order", "order", "Order: as in the file, best, worst or longest first"),
        _shown("samples.diff", "compare", "diff", "other steps", "Compare with the responses of other steps"),
        _shown("samples.find", "slash", "find", "find", "Only samples that contain a text", "/", priority=True),
        *_moves(page_up="read(-1)", page_down="read(1)"),
    ],
    "diff": [
        _shown("diff.older", "left", "move(1)", "older", "Compare with an older response", "←"),
        _shown("diff.newer", "right", "move(-1)", "newer", "Compare with a newer response", "→"),
        *_moves(page_up="read(-1)", page_down="read(1)"),
        _back("diff.back", also="compare"),
    ],
    "responses": [*_moves(up="move(-1)", down="move(1)", first="move(-100000)", last="move(100000)")],
    "log": [
        _back("log.back", "leave", also="log"),
        _shown("log.follow", "newest,end,G", "follow", "newest", "Follow the newest line"),
        _shown("log.search", "slash", "ask('search')", "search", "Search for a text", "/", priority=True),
        _shown("log.next", "next match", "again(True)", "next", "Next match"),
        _hidden("log.previous", "previous match", "again(False)", "", "Previous match"),
        _shown("log.cause", "e", "cause", "cause", "Cause of the failure; n and N then step through the errors"),
        _shown("log.only", "ampersand", "only", "matches only", "Show only matching lines", "&"),
        _hidden("log.wrap", "wrap", "wrap", "wrap", "Wrap long lines"),
        _hidden("log.go", "number_sign", "ask('go')", "go to", "Go to a step, or to a line (:812)", "#", priority=True),
        _hidden("log.source", "tab", "source", "source", "Source: all, driver, workers or engine"),
        _hidden("log.mark", "space", "mark", "mark", "Start a selection to copy"),
        _shown("log.copy", "copy", "copy", "copy", "Copy the selected lines"),
        _hidden("log.older", "left_square_bracket", "attempt(-1)", "older", "Log of the previous attempt", "["),
        _hidden("log.newer", "right_square_bracket", "attempt(1)", "newer", "Log of the next attempt", "]"),
        _hidden("log.path", "path", "path", "path", "Show the path of the log"),
    ],
    "log view": [
        *_moves(up="move(-1)", down="move(1)", page_up="leaf(-1)", page_down="leaf(1)", first="first"),
        _hidden("log.left", "left", "sideways(-1)", "scroll", "Scroll long lines sideways", "←→"),
        _hidden("log.right", "right", "sideways(1)", "", "Scroll long lines sideways", "←→"),
    ],
    "gpu": [
        _back("gpu.back", "back", also="devices"),
        *(key for key in _charts(footer=True) if key.id != "chart.smooth"),  # samples are no steps
    ],
    "devices": [*_moves(up="move(-1)", down="move(1)", first="move(-1000)", last="move(1000)")],
    "editor": [
        _shown("editor.pages", "tab", "page(1)", "pages", "Next page: form, plan, findings, changes, command"),
        _hidden("editor.page-back", "shift+tab", "page(-1)", "", "Previous page"),
        _shown("editor.find", "slash", "find", "find", "Find a field by name, veRL key or meaning", "/", priority=True),
        _hidden("editor.undo", "undo", "undo", "undo", "Undo the last change"),
        _hidden("editor.redo", "redo,ctrl+r", "redo", "redo", "Redo the change", "U"),
        _hidden("editor.recipe", "recipe", "recipe", "recipe", "Take the published settings of an algorithm"),
        _hidden("editor.against", "compare", "against", "compare", "Compare with the parent, or with the last run"),
        _hidden("editor.outside", "editor", "outside", "$EDITOR", "Edit the file in $EDITOR"),
        _shown("editor.save", "save", "save", "save", "Save the preset"),
        _hidden("editor.save-as", "save as", "save_as", "save as", "Save as another preset"),
        _shown("editor.run", "start", "launch", "start", "Check and start a run with these settings"),
        _shown("editor.to-field", "enter", "to_field", "go to field", "Go to the field of the selected finding"),
        _shown("editor.leave", "escape,q", "leave", "back", "Go back one step; asks when changes are not saved", "esc"),
    ],
    "form": [
        _hidden(
            "editor.reset", "backspace,delete", "reset", "reset", "Reset to the parent's value or the default", "del"
        ),
        _hidden("editor.add", "add", "add", "add", "Add a veRL key without a field, or env.NAME"),
        _shown("editor.everything", "fields", "everything", "all fields", "All fields, or the essential ones"),
    ],
    "form lines": [
        _shown("editor.edit", "enter", "choose", "edit", "Type a value, or choose one", "enter"),
        _shown("editor.more", "right,plus", "step(True)", "step", "Next or previous value; - and + too", "←→"),
        _hidden("editor.less", "left,minus", "step(False)", "", "Next or previous value; - and + too", "←→"),
    ],
    "value box": [
        _shown("editor.cancel", "escape", "close", "cancel", "Keep the old value"),
        _shown("editor.take", "enter", "take", "accept", "Accept the choice, or the typed text", priority=True),
        _shown("editor.complete", "tab", "complete", "complete", "Fill in the choice", priority=True),
        _shown("editor.choose", "down", "choose(1)", "choose", "Select one of the choices", "↑↓", priority=True),
        _hidden("editor.choose", "up", "choose(-1)", "", "Select one of the choices", "↑↓", priority=True),
    ],
    "launch": [
        _shown("launch.start", "start", "start", "start", "Start the run; it outlives this screen"),
        _shown("launch.force", "exclamation_mark", "force", "force", "Start despite the errors found; asks first", "!"),
        _shown("launch.queue", "queue", "queue", "queue", "Add the run to the queue; it starts when its GPUs are free"),
        _shown("launch.rehearse", "percent_sign", "rehearse", "rehearse", "Try two small steps on the CPU", "%"),
        _shown("launch.edit", "edit", "edit", "edit", "Edit the preset, with the fixes applied here"),
        _shown("launch.copy", "copy", "copy", "copy", "Copy the command"),
        _hidden("launch.command", "tab", "app.focus_next", "command", "Go to the command, or back"),
        _back("launch.cancel", "cancel"),
    ],
    "findings": [*_LIST, _shown("findings.fix", "fix", "fix", "fix", "Apply the fix of the finding")],
}
TOGETHER: dict[str, tuple[str, ...]] = {  # a page -> others whose keys work on the same screen
    "dashboard": ("run pages",),
    "runs": ("run table", "list"),
    "queue": ("list",),
    "checks": ("items",),
    "diagnosis": ("diagnosis list",),
    "events": ("items",),
    "trials": ("items",),
    "metrics": ("metric table", "list"),
    "samples": ("responses",),
    "diff": ("responses",),
    "log": ("log view",),
    "gpu": ("devices",),
    "editor": ("form", "findings"),
    "launch": ("findings",),
}
"""The keys of the application work on all of them."""
