"""Entries of the command palette: actions of the page, runs, presets, metrics, topics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from textual import on
from textual.command import CommandList, CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.content import Content
from textual.widgets import Input, OptionList

from launcher.core.text import clean
from launcher.search import Words, score
from tui.kit.navigation import RunView, navigation
from tui.kit.page import Page

if TYPE_CHECKING:
    from launcher.runs.watch.reader import RunReader


class Palette(CommandPalette, Page[None]):
    """Textual's palette, in which a second `enter` does not run the choice again."""

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def only_once(self, event: Input.Submitted | OptionList.OptionSelected) -> None:
        """Drops events after the choice."""
        if self.left:
            event.stop()
            event.prevent_default()

    async def ready(self, key: str) -> None:
        """Waits for the matching entries, so that `enter` after a fast text chooses one."""
        while key != "escape" and any(worker.node is self and worker.is_running for worker in self.app.workers):
            await asyncio.sleep(0.02)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disables page up and down until the list has a size, because Textual's list would fail."""
        return action != "command_list" or bool(self.query_one(CommandList).scrollable_content_region)


class _Place(NamedTuple):
    """A target: its name, description, opener, and other search words."""

    words: str
    help: str
    go: Callable[[], object]
    finds: Words | None = None


_BEHIND = 0.06  # weight by which a text comes after an action, run or metric of its name
FEW = 5  # entries of each kind before typing


class _Places(Provider):
    """Finds places by the words of `ppo-tui help`; `places` lists them, in a thread."""

    async def startup(self) -> None:
        self._listing = asyncio.create_task(asyncio.to_thread(lambda: list(self.places())))

    async def listed(self) -> list[_Place]:
        """Waits for the places; cancelling the waiting search does not cancel the listing."""
        return await asyncio.shield(self._listing)

    def places(self) -> Iterator[_Place]:
        raise NotImplementedError

    async def discover(self) -> Hits:
        for place in (await self.listed())[:FEW]:
            yield DiscoveryHit(Content(clean(place.words)), place.go, place.words, clean(place.help))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for place in await self.listed():
            if (fit := score(query, place.finds or Words(place.words, meaning=place.help))) > 0:
                yield Hit(fit, matcher.highlight(clean(place.words)), place.go, help=clean(place.help))


class ActionPlaces(Provider):
    """Actions of the page, with their keys."""

    async def discover(self) -> Hits:
        for name, about, act, _ in sorted(self.app.get_system_commands(self.screen), key=lambda each: each.title):
            yield DiscoveryHit(name, act, help=about)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, about, act, _ in self.app.get_system_commands(self.screen):
            if (fit := score(query, Words(name, meaning=about))) > 0:
                yield Hit(fit, matcher.highlight(name), act, help=about)


class RunPlaces(_Places):
    """Runs, the newest first; choosing one opens its dashboard."""

    def places(self) -> Iterator[_Place]:
        from launcher.record.layout import all_runs
        from launcher.record.state import current

        page, read_only = cast("Page[Any]", self.screen), bool(getattr(self.screen, "read_only", False))
        show = partial(navigation(self.app).show_run, page=page, read_only=read_only)
        for run in all_runs():
            yield _Place(f"Run {run.id}", current(run, checks=False).state, partial(show, run.path))


class PresetPlaces(_Places):
    """Presets; choosing one opens it in the editor."""

    def places(self) -> Iterator[_Place]:
        from launcher.preset.files import available
        from tui.kit.actions.editing import edit_preset

        read_only = bool(getattr(self.screen, "read_only", False))
        for name, path in available().items():
            yield _Place(f"Preset {name}", str(path), partial(edit_preset, self.app, name, read_only=read_only))


class MetricPlaces(_Places):
    """Metrics of the open run, or the one chosen in the list; choosing one opens its chart."""

    def places(self) -> Iterator[_Place]:
        from launcher.metrics.glossary import describe
        from tui.kit.charts.lens import Lens
        from tui.pages.metrics.metric import MetricScreen

        reader: RunReader | None = getattr(self.screen, "reader", None)
        chosen: Path | None = getattr(self.screen, "chosen_run", None)
        if chosen is not None:
            reader = _read(chosen)
        if reader is None:
            return
        keys = sorted(reader.series.keys())
        run = RunView(reader, getattr(self.screen, "lens", None) or Lens(), False)

        def show(key: str) -> None:
            self.app.push_screen(MetricScreen(run, key, keys, follow=chosen is not None))

        for key in keys:
            yield _Place(f"Metric {key}", describe(key).meaning, partial(show, key))


class TopicPlaces(_Places):
    """Topics of the reference; choosing one opens its text. Lists them only after the user types."""

    def places(self) -> Iterator[_Place]:
        from launcher.topics import topics

        explain = navigation(self.app).explain
        for each in topics():
            meaning, weight = f"{each.words.meaning} reference", each.words.weight - _BEHIND
            words = each.words._replace(meaning=meaning, weight=weight)
            yield _Place(f"Reference {each.name}", each.about, partial(explain, each.name), words)

    async def discover(self) -> Hits:
        for place in (await self.listed())[:0]:
            yield DiscoveryHit(place.words, place.go)


PROVIDERS = (ActionPlaces, RunPlaces, PresetPlaces, MetricPlaces, TopicPlaces)


def _read(run: Path) -> RunReader | None:
    """The current data of a run; None if unreadable."""
    from launcher.core.errors import UserError
    from launcher.runs.watch.reader import RunReader

    try:
        reader = RunReader(run)
        reader.poll()
    except (OSError, UserError):
        return None
    return reader
