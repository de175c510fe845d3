"""Themes: what the colours mean stays apart for every eye and in 16 colours."""

import itertools
import os
import subprocess
import sys

import pytest
from rich.color import Color as RichColor
from rich.color import ColorSystem
from textual.color import Color
from textual.theme import BUILTIN_THEMES

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
OURS = ("dark", "light", "color-blind")


def states(theme):
    return {"ok": theme.success, "notice": theme.accent, "warn": theme.warning, "critical": theme.error}


def lab(linear):
    """CIE L*a*b* of linear sRGB."""
    red, green, blue = linear
    x = (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505
    y = 0.2126 * red + 0.7152 * green + 0.0722 * blue
    z = (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089
    fx, fy, fz = (v ** (1 / 3) if v > 0.008856 else 7.787 * v + 16 / 116 for v in (x, y, z))
    return 116 * fy - 16, 500 * (fx - fy), 200 * (fy - fz)


def seen(colour, eye):
    values = (channel / 255 for channel in Color.parse(colour).rgb)
    linear = [v / 12.92 if v <= 0.04045 else ((v + 0.055) / 1.055) ** 2.4 for v in values]
    mixed = (sum(part * value for part, value in zip(row, linear, strict=True)) for row in EYES[eye])
    return lab([min(max(value, 0.0), 1.0) for value in mixed])


def nearest(colours, eye):
    """The least Delta E 1976 of two colours; 2 can just be seen, the colours of one role differ by 20 and more."""
    pairs = itertools.combinations([seen(colour, eye) for colour in colours], 2)
    return min(sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) ** 0.5 for one, other in pairs)


def light_of(colour):
    """Relative luminance, 0 to 1."""
    return ((seen(colour, "all")[0] + 16) / 116) ** 3


def slot(colour):
    """The one of 16 colours that is shown for it."""
    return RichColor.parse(colour.removeprefix("ansi_")).downgrade(ColorSystem.STANDARD).number


def test_the_names_in_the_help_are_the_themes_and_no_others_are_taken():
    assert tuple(THEMES) == OUR_THEMES
    with pytest.raises(UserError, match=r"^config\.yaml, line 1: theme: unknown theme 'drak'; did you mean 'dark'"):
        theme_name("drak", "config.yaml, line 1: theme")
    with pytest.raises(UserError, match="did you mean 'color-blind'"):  # its name before 0.3
        theme_name("colour-blind")


@pytest.mark.parametrize("eye", EYES)
@pytest.mark.parametrize("name", OURS)
def test_states_and_curves_stay_apart_for_every_eye(name, eye):
    theme = THEMES[name]
    assert nearest([theme.variables[curve] for curve in CURVES], eye) > 19
    if name == "color-blind" or eye == "all":
        assert nearest(states(theme).values(), eye) > (45 if name == "color-blind" else 25)


@pytest.mark.parametrize("name", THEMES)
def test_sixteen_colours_are_enough(name):
    told, curves = states(THEMES[name]), {slot(THEMES[name].variables[curve]) for curve in CURVES}
    assert len({slot(told[state]) for state in ("ok", "warn", "critical")}) == 3
    assert len(curves) == 4 and not curves & {slot(told["warn"]), slot(told["critical"])}


@pytest.mark.parametrize("name", OURS)
def test_text_can_be_read_and_every_colour_is_one_of_the_256(name):
    theme = THEMES[name]
    for colour in [theme.foreground, theme.variables["dim"], *states(theme).values()]:
        dark, light = sorted((light_of(colour), light_of(theme.background)))
        assert (light + 0.05) / (dark + 0.05) > 4
    colours = {*states(theme).values(), theme.primary, theme.foreground, theme.background, theme.surface}
    for colour in {*colours, *theme.variables.values()}:
        if colour is not None and colour.startswith("#"):
            red, green, blue = Color.parse(colour).rgb
            grey = red == green == blue and (red - 8) % 10 == 0
            assert grey or {red, green, blue} <= {0, 95, 135, 175, 215, 255}, colour


@pytest.mark.parametrize("theme", [*OWN, *BUILTIN_THEMES.values()], ids=lambda theme: theme.name)
def test_no_theme_lacks_a_colour_of_ours(theme):
    needed = {"dim", "faint", *CURVES}
    assert needed <= {*foreign_variables(theme), *theme.variables}
    assert {role for role in ROLES if role.startswith("curve")} == set(CURVES)


SHOW = """
import asyncio
from rich.color import ColorSystem
from launcher.cli.screen import ScreenRequest
from launcher.settings import Settings
from tui.app import PpoTui

async def main():
    app = PpoTui(ScreenRequest(run={run!r}, settings=Settings(theme={theme!r})))
    async with app.run_test() as pilot:
        await pilot.app.workers.wait_for_complete()
        await pilot.pause()
        line = app.screen.query_one("Checklist")
        for role in ("warn", "critical", "ok"):
            style = line.get_component_rich_style(f"role--{{role}}")
            print(style.render("x", color_system=ColorSystem[app.console.color_system.upper()]))

asyncio.run(main())
"""


@pytest.mark.nightly("tui/kit/", every=4)
@pytest.mark.slow
@pytest.mark.parametrize("theme", OUR_THEMES)
def test_warning_and_critical_are_painted_differently_on_sixteen_colours(warned, theme):
    """What Textual writes: run apart, since it asks for the colours of the terminal when it is imported."""
    code = SHOW.format(run=str(warned), theme=theme)
    env = {**os.environ, "TEXTUAL_COLOR_SYSTEM": "standard", "TERM": "xterm"}
    told = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    painted = told.stdout.splitlines()
    assert len(painted) == len(set(painted)) == 3
    assert all("38;" not in line and "\x1b[" in line for line in painted)  # no 256 or true colours
