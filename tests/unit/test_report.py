"""The report of a run: one file that a browser, a printer and a phone show, and that nobody's text can act on."""

import dataclasses
import json
import math
import re
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from chromium import chromium, needs_browser
from commands import call
from playwright.sync_api import Page
from whole_run import whole_run

from launcher.core.errors import UserError
from launcher.record.layout import RunDir
from launcher.record.state import RunState, TrackedRun
from launcher.report.page import render, write
from launcher.report.run_report import gather
from launcher.runs.act.import_logs import import_logs
from launcher.settings import Price

LOGS = Path(__file__).parents[1] / "data" / "logs"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PPO_TUI_HOME", str(tmp_path / "home"))
    return tmp_path


def imported(name: str) -> RunDir:
    """A run from recorded files."""
    files = sorted(map(str, LOGS.glob(f"{name}.*.gz")), reverse=True)
    return import_logs(files)[0]


def text_of(html: str) -> str:
    """What a reader sees, on one line."""
    return " ".join(re.sub(r"<[^>]+>", " ", html.split("</style>")[1]).split())


def test_the_verdict_comes_first_in_one_sentence(home: Path) -> None:
    def first(name: str) -> str:
        found = re.search(r'<p class="lead[^"]*">(.*?)</p>', render([gather(imported(name))]))
        assert found
        return found[1]

    assert first("cpu-toy") == (
        "OK: the run finished after 80 steps in 3m 16s; "
        "the mean reward of 16 steps rose from 0.443 at the start to 0.800 at the end."
    )
    assert first("kl-blowup").startswith(
        "CRITICAL: the run was stopped after 27 steps in 8m 05s; the mean reward of 5 steps went from "
    )
    assert first("kl-blowup").endswith(", which is within its noise.")
    assert first("fail-oom") == "CRITICAL: the run failed: GPU out of memory in the actor update."


def test_a_failed_run_shows_cause_line_and_fixes(home: Path) -> None:
    text = text_of(render([gather(imported("fail-oom"))]))
    assert "What is wrong" in text and "torch.OutOfMemoryError: CUDA out of memory" in text
    assert "lower actor.ppo_micro_batch_size_per_gpu from 512 to 64" in text


def test_a_whole_run_has_samples_settings_time_and_flags(home: Path) -> None:
    run = whole_run(home / "home")
    text = text_of(render([gather(run)]))
    for part in ("Curves", "In numbers", "Time of a usual step", "Health", "Responses", "First, step", "Settings"):
        assert part in text


def test_links_of_trackers_are_of_the_web_only(home: Path) -> None:
    run = imported("cpu-toy")
    state = RunState.read(run.state)
    assert state is not None
    link, odd = TrackedRun("wandb", "https://wandb.ai/x"), TrackedRun("swanlab", "javascript:alert(1)")
    dataclasses.replace(state, trackers=(link, odd)).write(run.state)
    html = render([gather(run)])
    assert 'href="https://wandb.ai/x"' in html and 'href="javascript' not in html


def test_energy_and_cost_are_those_of_the_gpus(home: Path) -> None:
    with tarfile.open(LOGS.parent / "gpu" / "runs.tar.xz") as tar:
        members = [item for item in tar.getmembers() if "7d6e4c-gsm8k-format-reward" in Path(item.name).parts]
        tar.extractall(home / "home", members, filter="data")
    report = gather(RunDir(home / "home" / "runs" / "7d6e4c-gsm8k-format-reward"), Price(2.5, "EUR"))
    use, seconds = report.use, report.facts.duration
    assert use.gpus == 1 and seconds is not None
    assert use.gpu_hours == pytest.approx(seconds / 3600)
    assert use.cost == pytest.approx(seconds / 3600 * 2.5)
    assert use.kwh == pytest.approx(0.0203, rel=0.05)  # 9 minutes at 131 W in the mean
    assert "cost 0.385 EUR" in text_of(render([report]))


def test_text_of_a_run_is_escaped_cleaned_and_without_secrets(home: Path) -> None:
    run = whole_run(home / "home")
    output = "\x1b[31mred \u202e hf_abcdefghijklmnopqrstuvwxyzABCDEF"
    sample = {"input": "<script>alert(1)</script>", "output": output, "gts": "7", "score": 1.0}
    for dump in run.rollouts.glob("*.jsonl"):
        dump.write_text(json.dumps(sample) + "\n")
    html = render([gather(run)])
    assert "<script" not in html and "&lt;script&gt;" in html
    assert "\x1b" not in html and "\u202e" not in html and "hf_abcdef" not in html


def test_several_runs_are_compared_first(home: Path) -> None:
    text = text_of(render([gather(imported("learning")), gather(imported("kl-blowup"))]))
    assert text.index("Compared") < text.index("Curves")
    assert "best score" in text


def test_a_thousand_steps_stay_below_a_megabyte(home: Path, tmp_path: Path) -> None:
    lines = "".join(
        f"step:{step} - critic/score/mean:{math.sin(step / 50) ** 2:.4f} - actor/entropy:{1 / step:.5f} "
        f"- perf/throughput:{900 + step % 7} - actor/kl_loss:{step / 1e4:.5f} "
        f"- response_length/mean:{200 + step % 13}\n"
        for step in range(1, 1001)
    )
    log = tmp_path / "long.log"
    log.write_text(lines)
    assert len(render([gather(import_logs([str(log)])[0])])) < 1_000_000


def test_a_wrong_file_is_refused(home: Path) -> None:
    with pytest.raises(UserError, match="a report is an HTML file"):
        write([imported("learning")], home / "report.pdf")


def test_the_command(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    out, err, code = call(["report", imported("learning").id, "--output", "r.html", "--follow"])
    assert (out, code or 0) == (b"r.html\n", 0), err
    assert call(["report"])[2] == 2


@pytest.fixture
def page(home: Path) -> Iterator[Page]:
    """A browser without network that shows the report of a whole run and of one that failed."""
    target = home / "report.html"
    write([whole_run(home / "home"), imported("kl-blowup")], target)
    with chromium() as browser:
        context = browser.new_context(offline=True, java_script_enabled=True)
        asked = list[str]()
        context.on("request", lambda request: asked.append(request.url))
        found = context.new_page()
        found.goto(f"file://{target}")
        yield found
        assert asked == [f"file://{target}"], "the page asks for other files"


CONTRAST = """() => {
  const channel = value => { value /= 255; return value <= 0.03928 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4 };
  const light = color => { const [r, g, b] = color.match(/\\d+(\\.\\d+)?/g).map(Number);
    return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b) };
  const back = element => { for (let at = element; at; at = at.parentElement) {
    const color = getComputedStyle(at).backgroundColor; if (!/rgba\\(.*, 0\\)|transparent/.test(color)) return color; }
    return 'rgb(255,255,255)' };
  let worst = [99, ''];
  for (const element of document.querySelectorAll('h1,h2,h3,p,td,th,pre,summary,span,code,svg text')) {
    const style = getComputedStyle(element), ink = element.closest('svg') ? style.fill : style.color;
    const [a, b] = [light(ink), light(back(element.closest('svg')?.parentElement ?? element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05); if (ratio < worst[0]) worst = [ratio, element.outerHTML.slice(0, 80)];
  }
  return worst }"""


@needs_browser
@pytest.mark.slow
def test_a_browser_shows_it_offline_in_light_and_dark_with_enough_contrast(page: Page) -> None:
    assert page.locator("svg").count() >= 8
    for scheme in ("light", "dark"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        ratio, where = page.evaluate(CONTRAST)
        assert ratio >= 4.5, f"{scheme}: {ratio:.1f} at {where}"  # WCAG 2.2, 1.4.3
    assert page.locator("svg:not([aria-label])").count() == 0
    assert page.locator("h1").count() == 1
    for width in (1100, 400):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    reached = set()
    for _ in range(12):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.tagName"))
    assert "SUMMARY" in reached


@needs_browser
@pytest.mark.slow
def test_it_prints(page: Page, tmp_path: Path) -> None:
    target = tmp_path / "report.pdf"
    page.pdf(path=str(target))
    if shutil.which("pdftotext"):
        text = subprocess.run(["pdftotext", str(target), "-"], capture_output=True, text=True, check=True).stdout
        assert "the run" in text
    assert target.stat().st_size > 10_000
