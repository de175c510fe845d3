"""The way to every page and dialog of the screen, for tests of all of them."""

from collections.abc import Callable
from typing import Any

from console_logs import diagnosis_of, stored
from pilots import until
from textual.pilot import Pilot
from textual.screen import Screen

from launcher.preset.drafts import open_draft
from launcher.preset.settle import offers
from launcher.record.layout import all_runs
from launcher.runs.watch.reader import RunReader
from launcher.runs.watch.run_diagnosis import Explanation
from tui.kit.charts.lens import Lens
from tui.kit.dialogs.ask import AskScreen
from tui.kit.dialogs.choose import ChooseScreen
from tui.kit.dialogs.paste import PasteScreen
from tui.kit.navigation import RunView
from tui.pages.diagnosis.screen import DiagnosisScreen
from tui.pages.editor.screen import EditorScreen
from tui.pages.launch.screen import LaunchScreen
from tui.pages.queue.screen import QueueScreen

# How a person gets to each screen: keys from the dashboard of a run. A new screen has to be added here,
ROADS: dict[str, tuple[str, ...]] = {
    "OpenedDashboard": (),
    "ChecksScreen": ("h",),
    "CheckDetailScreen": ("enter",),
    "CaseScreen": ("h", "A"),
    "EventsScreen": ("v",),
    "TrialsScreen": ("a t",),
    "MetricsScreen": ("m",),
    "MetricScreen": ("m", "enter"),
    "SamplesScreen": ("s",),
    "SampleDiffScreen": ("s", "c"),
    "EntryScreen": ("s", "enter"),
    "DeviceScreen": ("b", "enter"),
    "LogScreen": ("l",),
    "MachineScreen": ("b",),
    "TimeScreen": ("t",),
    "CompareScreen": ("c",),
    "HelpScreen": ("question_mark",),
    "ReferenceScreen": ("h", "K"),
    "ConfirmScreen": ("x",),
    "ActionsScreen": ("a",),
    "RunsScreen": ("a r",),
}


def diagnosed() -> DiagnosisScreen:
    """The page of a run that ran out of memory."""
    reader = RunReader(all_runs()[0].path)
    found = diagnosis_of(stored("fail-oom"))
    reader.explanation = Explanation(found, offers(found.fixes, None))
    return DiagnosisScreen(RunView(reader, Lens(), False))


# or here, where the road is long.
MAKERS: dict[str, Callable[[], Screen[Any]]] = {
    "AskScreen": lambda: AskScreen("What name?", "mine", lambda text: None if text else "a name is needed"),
    "PasteScreen": lambda: PasteScreen("Import?", "a text\n" * 2, lambda text: None if text else "nothing"),
    "ChooseScreen": lambda: ChooseScreen("Save?", "two values\n" * 30, [("y", "yes"), ("n", "no")]),
    "DiagnosisScreen": diagnosed,
    "EditorScreen": lambda: EditorScreen(open_draft("toy-cpu")),
    "LaunchScreen": lambda: LaunchScreen("toy-cpu"),
    "QueueScreen": lambda: QueueScreen(read_only=False),
}


async def settled(pilot: Pilot[Any]) -> None:
    """Waits for the screen's current work."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def walk(pilot: Pilot[Any], screen: str, looks: int = 1200) -> None:
    """Goes from the dashboard to a screen."""
    if screen in MAKERS:
        pilot.app.push_screen(MAKERS[screen]())
        await pilot.pause(0.3)
    for key in ROADS.get(screen, ()):
        before = pilot.app.screen
        await pilot.press(key)
        await until(pilot, lambda before=before: pilot.app.screen is not before, looks)
        await pilot.pause()
    assert screen in [kind.__name__ for kind in type(pilot.app.screen).__mro__], pilot.app.said


async def back(pilot: Pilot[Any], below: Screen[Any]) -> None:
    """Closes everything over a screen."""
    while pilot.app.screen is not below:
        pilot.app.pop_screen()
        await pilot.pause()
