"""Every key of the screen in one table, by the page or widget that has it.

Classes bind their part of it, `config.yaml` moves keys by their ids, `ppo-tui keys` lists them: for that no screen
is imported. The footer shows those of `_shown`; help and palette have all.
"""

from textual.binding import Binding


def _shown(
    id: str, keys: str, action: str, words: str, tip: str, display: str | None = None, *, priority: bool = False
) -> Binding:
    return Binding(keys, action, words, key_display=display, priority=priority, tooltip=tip, id=id)


def _hidden(id: str, keys: str, action: str, words: str, tip: str, display: str | None = None) -> Binding:
    return Binding(keys, action, words, show=False, key_display=display, tooltip=tip, id=id)


_MOVES = {
    "up": ("up,k", "↑↓", "Up, down"),
    "down": ("down,j", "↑↓", "Up, down"),
    "page_up": ("pageup", "pgup pgdn", "A page up, a page down"),
    "page_down": ("pagedown", "pgup pgdn", "A page up, a page down"),
    "first": ("home", "home end", "To the first, to the last"),
    "last": ("end", "home end", "To the first, to the last"),
}


def _moves(*, letters: bool = True, **actions: str) -> list[Binding]:
    """An action each for up, down, page_up, page_down, first, last.

    One id each for all pages, `move.page-up`: a user who moves it moves it everywhere. `letters` are k and j, for
    what stands beside no field to type in.
    """
    found = []
    for name, action in actions.items():
        keys, display, tip = _MOVES[name]
        keys = keys if letters else keys.partition(",")[0]
        found.append(_hidden(f"move.{name.replace('_', '-')}", keys, action, "", tip, display))
    return found


def _charts(*, footer: bool = False) -> list[Binding]:
    """The keys of a `ChartScreen`; `footer`: it has room for the most important ones."""
    shown = _shown if footer else _hidden
    point, zoom, pan = "Read the values at a step; esc ends it", "Fewer steps, more steps", "Earlier, later"
    return [
        shown("chart.cursor-left", "left", "point(-1)", "values", point, "←→"),
        _hidden("chart.cursor-right", "right", "point(1)", "", point, "←→"),
        shown("chart.zoom-in", "plus,equals_sign", "zoom(0.5)", "zoom", zoom, "+ -"),
        _hidden("chart.zoom-out", "minus", "zoom(2)", "", zoom, "+ -"),
        _hidden("chart.pan-left", "comma", "pan(-1)", "", pan, ", ."),
        _hidden("chart.pan-right", "full_stop", "pan(1)", "", pan, ", ."),
        shown("chart.smooth", "w", "smooth", "smooth", "Curves as averages: not, 0.6, 0.9, 0.97", "w"),
        _hidden("chart.log", "y", "log_scale", "log scale", "A logarithmic value axis", "y"),
        _hidden("chart.x-axis", "t", "across", "x axis", "Steps, training time or tokens on the x axis", "t"),
        _hidden("chart.fit", "f", "fit", "fit", "To the newest step, or with room for the next ones", "f"),
        _hidden("chart.usual", "0,home", "usual_view", "usual charts", "Charts as usual again", "0"),
    ]


_LIST = _moves(
    up="move(-1)", down="move(1)", page_up="move(-8)", page_down="move(8)", first="move(-100000)", last="move(100000)"
)

KEYS: dict[str, list[Binding]] = {
    "app": [
        _shown("app.help", "question_mark", "help", "help", "Show every key and sign", "?"),
        _hidden("app.suspend", "ctrl+z", "suspend_process", "suspend", "Back to the shell; fg returns"),
    ],
    "ask": [_shown("ask.leave-it", "escape", "dismiss(None)", "leave it", "Answer nothing")],
    "choose": [
        _shown("choose.leave-it", "escape", "dismiss(None)", "leave it", "Choose none of them"),
        *_moves(letters=False, up="scroll(-1)", down="scroll(1)"),
    ],
    "confirm": [
        _shown("confirm.yes", "y", "close(True)", "yes", "Do it"),
        _shown("confirm.no", "n,escape", "close(False)", "no", "Leave everything as it is"),
        *_moves(letters=False, up="scroll(-1)", down="scroll(1)", page_up="scroll(-10)", page_down="scroll(10)"),
    ],
    "paste": [
        _shown("paste.submit", "f2", "submit", "go on", "Take the text", priority=True),
        _shown("paste.leave-it", "escape", "dismiss(None)", "leave it", "Answer nothing", priority=True),
    ],
    "help": [_shown("help.close", "escape,q,question_mark", "dismiss", "close", "Close the help")],
    "runs": [
        _shown("runs.mark", "space", "mark", "mark", "Mark a run for a comparison"),
        _shown("runs.compare", "c", "compare", "compare", "The marked runs side by side"),
        _shown("runs.edit", "e", "edit", "edit", "Edit the preset, or a new run out of the run's settings"),
        _shown(
            "runs.filter",
            "slash",
            "find",
            "filter",
            "Only runs and presets of a name, a state or a verdict",
            "/",
            priority=True,
        ),
        _hidden("runs.order", "o", "order", "order", "Newest, best score, longest first, by name"),
        _hidden(
            "runs.delete",
            "d",
            "delete",
            "delete",
            "Delete a run with its checkpoints, or a preset of yours; asks first",
        ),
        _hidden("runs.export", "E", "export", "export", "A run to csv, jsonl, parquet, TensorBoard events or svg"),
        _hidden("runs.copy", "y", "preset('copy')", "copy", "Copy a preset"),
        _hidden("runs.rename", "n", "preset('rename')", "rename", "Give a preset of yours another name"),
        _hidden("runs.import", "i", "import", "import", "A preset out of a pasted veRL command or of a script"),
        _shown("runs.back", "r", "back", "back", "Back to the run you came from"),
        _hidden("runs.leave", "escape", "leave", "", "All runs again, or back"),
        _shown("runs.quit", "q", "app.quit", "quit", "Close the screen; runs go on"),
    ],
    "list": _LIST,
    "run table": [
        _shown("runs.open", "enter", "choose", "open", "Open the run, or start the preset after a question", "enter")
    ],
    "dashboard": [
        _hidden(
            "dashboard.explain",
            "enter",
            "explain",
            "explain a check",
            "Explain the chosen check, or the worst",
            "enter",
        ),
        _hidden("dashboard.next-check", "down,j", "choose(1)", "choose a check", "Choose a check", "↑↓"),
        _hidden("dashboard.previous-check", "up,k", "choose(-1)", "", "Choose a check", "↑↓"),
        _hidden("dashboard.calm", "escape", "calm", "", "Leave the note, the values, the chosen check"),
        _hidden("dashboard.page", "tab", "page", "pinned", "The pinned charts, or the four of every run"),
        _shown("dashboard.diagnosis", "d", "diagnosis", "diagnosis", "Why it failed, or what its errors mean"),
        _shown("dashboard.stop", "x", "stop", "stop", "Stop the run; asks first"),
        _shown("dashboard.stop", "x", "refuse", "read-only", "This is `ppo-tui watch`: it never stops a run"),
        _shown("dashboard.quit", "q", "leave", "leave running", "Close the screen; the run goes on"),
        _shown("dashboard.quit", "q", "app.quit", "quit", "Close the screen"),
        *_charts(),
    ],
    "run pages": [
        _shown("dashboard.checks", "h", "checks", "checks", "All health checks, with their figures"),
        _shown("dashboard.events", "v", "events", "events", "What happened, with times"),
        _shown("dashboard.metrics", "m", "metrics", "metrics", "Every metric: find, chart, pin one"),
        _hidden("dashboard.compare", "c", "compare", "compare", "Beside the marked runs, or the one before"),
        _hidden("dashboard.samples", "s", "samples", "samples", "What the model answers, step by step"),
        _shown("dashboard.log", "l", "log", "log", "The console of the run, full screen"),
        _hidden("dashboard.gpu", "g", "gpu", "gpu", "GPU and host memory: now, who holds it, over the steps"),
        _hidden("dashboard.edit", "e", "edit", "edit", "Edit and relaunch: a new run out of this one's settings"),
        _hidden("dashboard.export", "E", "export", "export", "To csv, jsonl, parquet, TensorBoard events or svg"),
        _shown("dashboard.runs", "r", "runs", "runs", "The list of runs and presets"),
        _hidden("dashboard.older", "left_square_bracket", "neighbour(1)", "older run", "The run before this one", "["),
        _hidden("dashboard.newer", "right_square_bracket", "neighbour(-1)", "newer run", "The run after this one", "]"),
    ],
    "check": [
        _shown("check.back", "escape,backspace,q", "dismiss", "back", "Back to where you came from", "esc"),
        _shown("check.previous", "left", "neighbour(-1)", "other checks", "Another check", "←→"),
        _hidden("check.next", "right", "neighbour(1)", "", "Another check", "←→"),
        _shown("move.up", "up,k", "scroll(-1)", "scroll", "Up, down", "↑↓"),
        *_moves(down="scroll(1)", page_up="scroll(-8)", page_down="scroll(8)"),
        _shown("check.diagnosis", "d", "diagnosis", "diagnosis", "What the errors in the log mean"),
        _shown("check.edit", "e", "edit", "edit", "The run's settings as a new preset, at the first thing to try"),
        _shown("check.mute", "m", "mute", "mute", "Leave it out of this run's verdict, or in again"),
    ],
    "checks": [_shown("checks.back", "escape,h,q", "dismiss", "back", "Back to the dashboard", "h")],
    "items": [_shown("checks.explain", "enter", "choose", "explain", "Explain the check", "enter"), *_LIST],
    "diagnosis": [
        _shown("diagnosis.back", "escape,backspace,d,q", "dismiss", "back", "Back to where you came from", "d"),
        _shown("diagnosis.edit", "e", "edit", "edit", "The run's settings as a new preset, with the fix applied"),
        _shown("diagnosis.log", "l", "log", "log", "The console of the run, full screen"),
    ],
    "diagnosis list": [
        _shown("diagnosis.open", "enter", "choose", "open", "The line in the log, or the field of the fix", "enter"),
        *_LIST,
    ],
    "events": [
        _shown("events.back", "escape,backspace,v,q", "dismiss", "back", "Back to the dashboard", "v"),
        _shown("events.narrow", "right,f,tab", "narrow(1)", "narrow", "All events, or some kinds", "←→"),
        _hidden("events.narrow-back", "left,shift+tab", "narrow(-1)", "", "All events, or some kinds", "←→"),
    ],
    "metrics": [
        _shown("metrics.filter", "slash", "filter", "filter", "Look for a name, a unit, a meaning", "/", priority=True),
        _shown("metrics.pin", "p", "pin", "pin", "Put the metric on the dashboard, or take it off"),
        _hidden("metrics.leave", "escape", "back", "", "Empty the filter, or go back"),
        _shown("metrics.back", "m,backspace,q", "dismiss", "back", "Back to the dashboard", "m"),
        *_moves(letters=False, up="move(-1)", down="move(1)"),
    ],
    "metric table": [_shown("metrics.chart", "enter", "choose", "chart", "The metric's chart, full screen", "enter")],
    "metric": [
        _shown("metric.back", "escape,backspace,q,m", "back", "back", "Back to where you came from", "esc"),
        _shown("metric.previous", "up,k", "neighbour(-1)", "other metrics", "Another metric", "↑↓"),
        _hidden("metric.next", "down,j", "neighbour(1)", "", "Another metric", "↑↓"),
        _shown("metric.pin", "p", "pin", "pin", "Put the metric on the dashboard, or take it off"),
        *_charts(footer=True),
    ],
    "compare": [
        _shown("compare.page", "tab", "page", "settings", "The settings in which the runs differ, or the charts"),
        *_moves(up="scroll(-1)", down="scroll(1)", page_up="scroll(-10)", page_down="scroll(10)"),
        _shown("compare.back", "escape,c,backspace,q", "leave", "back", "Back to where you came from", "c"),
        *_charts(footer=True),
    ],
    "samples": [
        _shown("samples.back", "s,backspace,q", "dismiss", "back", "Back to the dashboard", "s"),
        _hidden("samples.leave", "escape", "leave", "", "End the search, or go back"),
        _shown("samples.earlier", "left", "step(-1)", "step", "The step before, the step after", "←→"),
        _hidden("samples.later", "right", "step(1)", "", "The step before, the step after", "←→"),
        _shown("samples.kind", "v", "kind", "rollout/validation", "Answers of training, or of the validation"),
        _shown("samples.order", "o", "order", "order", "As dumped, best, worst, longest first"),
        _shown("samples.diff", "d", "diff", "other steps", "The answers to this prompt at other steps, word by word"),
        _shown("samples.find", "slash", "find", "find", "Only those that contain a text", "/", priority=True),
        _hidden("samples.page-up", "pageup", "read(-1)", "read", "Read on", "pgup pgdn"),
        _hidden("samples.page-down", "pagedown", "read(1)", "", "Read on", "pgup pgdn"),
    ],
    "diff": [
        _shown("diff.older", "left", "move(1)", "older", "Against an older answer", "←"),
        _shown("diff.newer", "right", "move(-1)", "newer", "Against a newer answer", "→"),
        _hidden("diff.page-up", "pageup", "read(-1)", "read", "Read on", "pgup pgdn"),
        _hidden("diff.page-down", "pagedown", "read(1)", "", "Read on", "pgup pgdn"),
        _shown("diff.back", "d,escape,backspace,q", "dismiss", "back", "Back to the answers of the step", "d"),
    ],
    "responses": [*_moves(up="move(-1)", down="move(1)", first="move(-100000)", last="move(100000)")],
    "log": [
        _shown("log.back", "l,q", "dismiss", "back", "Back to the dashboard", "l"),
        _hidden("log.leave", "escape", "leave", "leave", "End search or selection, or go back"),
        _shown("log.follow", "f,end", "follow", "follow", "Follow the newest line", "f"),
        _shown("log.search", "slash", "ask('search')", "search", "Search for a text", "/", priority=True),
        _shown("log.next", "n", "again(True)", "next", "The next place where the text is"),
        _hidden("log.previous", "N", "again(False)", "", "The place before"),
        _shown("log.next-error", "e", "error(True)", "error", "The next error"),
        _hidden("log.previous-error", "E", "error(False)", "", "The error before"),
        _shown("log.go", "g", "ask('go')", "go to", "Go to a step, or with : to a line", priority=True),
        _shown("log.source", "s", "source", "source", "Lines of all, the driver, workers, or the engine"),
        _hidden("log.mark", "space", "mark", "mark", "Begin a selection to copy"),
        _shown("log.copy", "c", "copy", "copy", "Copy the chosen line, or from the mark to it"),
        _hidden("log.older", "left_square_bracket", "attempt(-1)", "older", "The log of the attempt before", "["),
        _hidden("log.newer", "right_square_bracket", "attempt(1)", "newer", "The log of the attempt after", "]"),
        _hidden("log.path", "p", "path", "path", "Tell the path of the log"),
    ],
    "log view": [
        *_moves(up="move(-1)", down="move(1)", page_up="leaf(-1)", page_down="leaf(1)", first="first"),
        _hidden("log.left", "left", "sideways(-1)", "sideways", "Move long lines sideways", "←→"),
        _hidden("log.right", "right", "sideways(1)", "", "Move long lines sideways", "←→"),
    ],
    "gpu": [
        _shown("gpu.back", "escape,g,q", "back", "back", "Back to the dashboard", "g"),
        *(key for key in _charts(footer=True) if key.id != "chart.smooth"),  # samples are no steps
    ],
    "devices": [*_moves(up="move(-1)", down="move(1)", first="move(-1000)", last="move(1000)")],
    "editor": [
        _shown("editor.pages", "tab", "page(1)", "pages", "Form, plan, findings, changes, command"),
        _hidden("editor.page-back", "shift+tab", "page(-1)", "", "The page before"),
        _shown(
            "editor.find", "slash", "find", "find", "Look for a field by name, veRL key or meaning", "/", priority=True
        ),
        _hidden("editor.undo", "u", "undo", "undo", "Take the last change back"),
        _hidden("editor.redo", "U,ctrl+r", "redo", "redo", "Make the change again", "U"),
        _hidden("editor.against", "c", "against", "compare", "Changes against the parent, or against the last run"),
        _hidden("editor.outside", "o", "outside", "$EDITOR", "The text in your own editor"),
        _shown("editor.save", "w", "save", "save", "Write the file"),
        _hidden("editor.save-as", "W", "save_as", "save as", "Write another file"),
        _shown("editor.run", "r", "launch", "run", "Start a run with these settings; asks first"),
        _shown("editor.to-field", "enter", "to_field", "its field", "The field that the chosen finding is about"),
        _shown(
            "editor.leave", "escape,q", "leave", "back", "Back; asks when there are changes that are not saved", "esc"
        ),
    ],
    "form": [
        _hidden(
            "editor.reset", "backspace,delete", "reset", "reset", "Reset: what the parent has, or the default", "del"
        ),
        _hidden("editor.add", "a", "add", "add", "Add a veRL key that has no field, or env.NAME"),
        _shown("editor.everything", "m", "everything", "more", "All fields, or the essential ones"),
    ],
    "form lines": [
        _shown("editor.edit", "enter", "choose", "edit", "Type a value, or choose one", "enter"),
        _shown(
            "editor.more",
            "right,plus",
            "step(True)",
            "step",
            "The value before or after on its scale; - and + too",
            "←→",
        ),
        _hidden(
            "editor.less", "left,minus", "step(False)", "", "The value before or after on its scale; - and + too", "←→"
        ),
    ],
    "value box": [
        _shown("editor.leave-it", "escape", "close", "leave it", "Leave the value as it was"),
        _shown("editor.take", "enter", "take", "take it", "Take the choice, else the text", priority=True),
        _shown("editor.complete", "tab", "complete", "complete", "Fill in the choice", priority=True),
        _shown("editor.choose", "down", "choose(1)", "choose", "One of what is offered", "↑↓"),
        _hidden("editor.choose", "up", "choose(-1)", "", "One of what is offered", "↑↓"),
    ],
    "launch": [
        _shown("launch.start", "s", "start", "start", "Start the run; it outlives this screen"),
        _shown(
            "launch.force",
            "exclamation_mark",
            "force",
            "force",
            "Start it although the preflight finds an error; asks first",
            "!",
        ),
        _shown("launch.edit", "e", "edit", "edit", "Edit the preset, with what F has changed so far"),
        _shown("launch.copy", "c", "copy", "copy", "Copy the command"),
        _shown("launch.command", "tab", "app.focus_next", "command", "To the command, or back"),
        _shown("launch.cancel", "escape,q", "cancel", "cancel", "Back; nothing is started", "esc"),
    ],
    "findings": [*_LIST, _shown("findings.fix", "F", "fix", "fix it", "Apply the change that the finding names", "F")],
}
TOGETHER: dict[str, tuple[str, ...]] = {  # a page -> others whose keys work on the same screen
    "dashboard": ("run pages",),
    "runs": ("run table", "list"),
    "checks": ("items",),
    "diagnosis": ("diagnosis list",),
    "events": ("items",),
    "metrics": ("metric table", "list"),
    "samples": ("responses",),
    "diff": ("responses",),
    "log": ("log view",),
    "gpu": ("devices",),
    "editor": ("form", "findings"),
    "launch": ("findings",),
}
"""The keys of the application work on all of them."""
