"""Themes: what the colours mean stays apart for every eye and in 16 colours."""

import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import BUILTIN_THEMES, Theme

from launcher.core.errors import UserError
from launcher.settings import OUR_THEMES
from tui.kit.theme import OWN, foreign_variables, theme_name
from tui.kit.widgets.painted import ROLES

THEMES = {theme.name: theme for theme in OWN}
CURVES = ("curve", "curve-2", "curve-3", "curve-4")
# How the three cones' colours mix without one kind of them: Machado, Oliveira and Fernandes 2009, severity 1.
EYES = {
    "all": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.1523, 1.0526, -0.2049), (0.1145, 0.7863, 0.0992), (-0.0039, -0.0481, 1.0520)),
    "deuteranopia": ((0.3673, 0.8606, -0.2280), (0.2801, 0.6725, 0.0474), (-0.0118, 0.0429, 0.9689)),
    "tritanopia": ((1.2555, -0.0767, -0.1788), (-0.0784, 0.9308, 0.1476), (0.0047, 0.6914, 0.3039)),
}
Triple = tuple[float, float, float]


def states(theme: Theme) -> dict[str, str]:
    found = {"ok": theme.success, "notice": theme.accent, "warn": theme.warning, "critical": theme.error}
    return {name: colour or "" for name, colour in found.items()}


def lab(linear: Triple) -> Triple:
    """CIE L*a*b* of linear sRGB."""
    red, green, blue = linear
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def seen(colour: str, eye: str) -> Triple:
    values = (channel / 255 for channel in Color.parse(colour).rgb)
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    red, green, blue = (
        min(max(sum(part * value for part, value in zip(row, linear, strict=True)), 0.0), 1.0) for row in EYES[eye]
    )
    return lab((red, green, blue))


def distance(one: str, other: str, eye: str) -> float:
    """Delta E 1976; 2 can just be seen, the colours of one role differ by 20 and more."""
    return sum((a - b) ** 2 for a, b in zip(seen(one, eye), seen(other, eye), strict=True)) ** 0.5


def light_of(colour: str) -> float:
    """Relative luminance, 0 to 1."""
    return float(((seen(colour, "all")[0] + 16) / 116) ** 3)


def slot(colour: str) -> int | None:
    """The one of 16 colours that is shown for it."""
    return RichColor.parse(colour.removeprefix("ansi_")).downgrade(ColorSystem.STANDARD).number


def test_the_names_in_the_help_are_the_themes() -> None:
    assert tuple(THEMES) == OUR_THEMES


@pytest.mark.parametrize("eye", EYES)
def test_states_of_the_colour_blind_theme_stay_apart(eye: str) -> None:
    for one, other in itertools.combinations(states(THEMES["color-blind"]).values(), 2):
        assert distance(one, other, eye) > 45


@pytest.mark.parametrize("name", ["dark", "light"])
def test_states_stay_apart_for_most_eyes(name: str) -> None:
    for one, other in itertools.combinations(states(THEMES[name]).values(), 2):
        assert distance(one, other, "all") > 25


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("name", ["dark", "light", "color-blind"])
def test_curves_stay_apart_for_every_eye(name: str, eye: str) -> None:
    for one, other in itertools.combinations([THEMES[name].variables[curve] for curve in CURVES], 2):
        assert distance(one, other, eye) > 19


@pytest.mark.parametrize("name", THEMES)
def test_sixteen_colours_are_enough(name: str) -> None:
    theme = THEMES[name]
    told = states(theme)
    assert len({slot(told[state]) for state in ("ok", "warn", "critical")}) == 3
    curves = {slot(theme.variables[curve]) for curve in CURVES}
    assert len(curves) == 4
    assert not curves & {slot(told["warn"]), slot(told["critical"])}


@pytest.mark.parametrize("name", ["dark", "light", "color-blind"])
def test_every_colour_is_one_of_the_256(name: str) -> None:
    theme = THEMES[name]
    colours = {*states(theme).values(), theme.primary, theme.foreground, theme.background, theme.surface}
    for colour in {*colours, *theme.variables.values()}:
        if colour is not None and colour.startswith("#"):
            red, green, blue = Color.parse(colour).rgb
            grey = red == green == blue and (red - 8) % 10 == 0
            assert grey or {red, green, blue} <= {0, 95, 135, 175, 215, 255}, colour


@pytest.mark.parametrize("name", ["dark", "light", "color-blind"])
def test_text_can_be_read(name: str) -> None:
    theme = THEMES[name]
    for colour in [theme.foreground or "", theme.variables["dim"], *states(theme).values()]:
        dark, light = sorted((light_of(colour), light_of(theme.background or "")))
        assert (light + 0.05) / (dark + 0.05) > 4


@pytest.mark.parametrize("theme", [*OWN, *BUILTIN_THEMES.values()], ids=lambda theme: theme.name)
def test_no_theme_lacks_a_colour_of_ours(theme: Theme) -> None:
    needed = {"dim", "faint", *CURVES}
    assert needed <= {*foreign_variables(theme), *theme.variables}
    assert {role for role in ROLES if role.startswith("curve")} == set(CURVES)


def test_an_unknown_theme_is_told_with_its_place() -> None:
    with pytest.raises(UserError, match=r"^config\.yaml, line 1: theme: unknown theme 'drak'; did you mean 'dark'"):
        theme_name("drak", "config.yaml, line 1: theme")


@pytest.mark.slow
@pytest.mark.parametrize("theme", OUR_THEMES)
def test_warning_and_critical_are_painted_differently_on_sixteen_colours(warned: Path, theme: str) -> None:
    """What Textual writes: run apart, since it asks for the colours of the terminal when it is imported."""
    code = (
        "import asyncio, sys\n"
        "from rich.color import ColorSystem\n"
        "from launcher.cli.screen import ScreenRequest\n"
        "from launcher.settings import Settings\n"
        "from tui.app import PpoTui\n"
        "async def main():\n"
        f"    app = PpoTui(ScreenRequest(run={str(warned)!r}, settings=Settings(theme={theme!r})))\n"
        "    async with app.run_test() as pilot:\n"
        "        await pilot.app.workers.wait_for_complete()\n"
        "        await pilot.pause()\n"
        "        line = app.screen.query_one('Checklist')\n"
        "        for role in ('warn', 'critical', 'ok'):\n"
        "            style = line.get_component_rich_style(f'role--{role}')\n"
        "            print(style.render('x', color_system=ColorSystem[app.console.color_system.upper()]))\n"
        "asyncio.run(main())\n"
    )
    env = {**os.environ, "TEXTUAL_COLOR_SYSTEM": "standard", "TERM": "xterm"}
    told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    painted = told.stdout.splitlines()
    assert len(painted) == len(set(painted)) == 3
    assert all("38;" not in line and "\x1b[" in line for line in painted)  # no 256 or true colours
