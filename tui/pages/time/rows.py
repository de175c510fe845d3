"""The time of a step as rows: its lanes over the seconds, its stages, the most useful setting."""

from collections.abc import Iterator, Mapping, Sequence

from launcher.core.format import counted, number
from launcher.runs.watch.startup import NAMES, start_words
from launcher.timing.anatomy import Lane, Piece, StepTime
from launcher.timing.report import Report
from launcher.timing.stages import WAITING
from launcher.timing.words import host_words, limit_line, no_advice, problems, start_problems
from tui.kit.drawing.glyphs import signs
from tui.kit.drawing.rows import Row, Span, crop, labelled, paragraph, put, spread, width

_SIGNS = signs("stage")
_NAME = 11  # cells of a lane's name
_IDLE = 11  # cells of ` idle 53 %` at its end
_BAR = 24  # cells of the longest bar of a stage
_HEAD = 12  # columns of the names of stages
_TEXT = 8  # column of the texts below


def title_row(report: Report, columns: int) -> Row:
    """The step, its duration, and the total of the usual stages."""
    row: Row = [(f" Step {report.step}", "title"), (f"  {number(report.seconds)} s", "text")]
    if report.running:
        row.append(("  running", "live"))
    usual = sum(report.usual.values())
    if usual:
        row.append((f"  stages usually {number(usual)} s", "dim"))
    shares = report.time.idle() if report.time else {}
    idle = sum(shares.values()) / len(shares) if shares else None
    right: Row = [] if idle is None or width(row) + 16 > columns else [(f"GPUs idle {100 * idle:.0f} % ", "text")]
    return spread(row, right, columns)


def lane_rows(time: StepTime, columns: int, rows: int) -> list[Row]:
    """The step's waits, the names of long stages below, as many lanes as fit, and the seconds."""
    idle = time.idle()
    bar = max(columns - _NAME - _IDLE - 1, 8)
    drawn = [_lane("step", time.path, time, bar, None), _names(_cells(time.path, time, bar))]
    lanes = [lane for lane in time.lanes if lane.kind != "trainer"]
    shown = _chosen(lanes, max(rows - 3, 1))
    for lane in shown:
        drawn.append(_lane(lane.name, lane.pieces, time, bar, idle.get(lane.number) if lane.kind == "rank" else None))
    if len(shown) < len(lanes):
        drawn[-1] = spread(drawn[-1], [(f" +{counted(len(lanes) - len(shown), 'lane')}", "dim")], columns)
    return [*drawn, _axis(time.seconds, bar)][: max(rows, 1)]


def _chosen(lanes: Sequence[Lane], most: int) -> list[Lane]:
    """Some lanes of each kind, in order."""
    if len(lanes) <= most:
        return list(lanes)
    kinds = list(dict.fromkeys(lane.kind for lane in lanes))
    each = max(most // len(kinds), 1)
    kept = [lane for kind in kinds for lane in [lane for lane in lanes if lane.kind == kind][:each]]
    return kept[:most]


def _lane(name: str, pieces: Sequence[Piece], time: StepTime, bar: int, idle: float | None) -> Row:
    """The lane's name, its stages over time, and its idle share."""
    row = _bar(name, _cells(pieces, time, bar))
    return row if idle is None else [*row, (f" idle {100 * idle:2.0f} %", "dim")]


def _cells(pieces: Sequence[Piece], time: StepTime, bar: int) -> list[str]:
    """The stage with most of each cell's time; "" while the lane is idle."""
    whole = time.seconds or 1.0
    shares: list[dict[str, float]] = [{} for _ in range(bar)]
    for stage, start, end in pieces:
        first, last = (start - time.start) / whole * bar, (end - time.start) / whole * bar
        for cell in range(max(int(first), 0), min(int(last), bar - 1) + 1):
            part = min(last, cell + 1) - max(first, cell)
            if part > 0:
                shares[cell][stage] = shares[cell].get(stage, 0.0) + part
    return [max(share, key=lambda stage: share[stage]) if sum(share.values()) >= 0.5 else "" for share in shares]


def _bar(name: str, cells: Sequence[str]) -> Row:
    """A solid bar: each stage but a very short one ends with a gap."""
    near = zip(["", *cells], cells, [*cells[1:], ""], strict=False)
    drawn = ["" if before == stage != after else stage for before, stage, after in near]
    return [(f" {name:<{_NAME - 1}}", "text"), *(_sign(stage) if stage else (" ", "text") for stage in drawn)]


def _sign(stage: str) -> Span:
    """Sign and role of a stage of the step, or of the start."""
    return _SIGNS.get(stage, _SIGNS["rollout"])


def _stretch(stages: Mapping[str, float], whole: float, bar: int) -> list[str]:
    """The cells of stages in their order."""
    begun, cells = 0.0, list[str]()
    for stage, seconds in stages.items():
        begun += seconds
        cells += [stage] * (round(begun / (whole or 1.0) * bar) - len(cells))
    return cells


def _names(cells: Sequence[str]) -> Row:
    """Stage names below their starts, first of the longest ranges, if they fit."""
    begins = [at for at, stage in enumerate(cells) if not at or cells[at - 1] != stage]
    lengths = [end - begin for begin, end in zip(begins, [*begins[1:], len(cells)], strict=True)]
    placed: dict[int, str] = {}
    for _, at in sorted(zip(lengths, begins, strict=True), key=lambda stretch: -stretch[0]):
        stage = cells[at]
        free = all(at > other + len(name) or at + len(stage) < other for other, name in placed.items())
        if stage and stage != WAITING and free and at + len(stage) <= len(cells):
            placed[at] = stage
    row: Row = []
    for at in sorted(placed):
        row = put(row, _NAME + at, [(placed[at], _sign(placed[at])[1])])
    return row


def _axis(seconds: float, bar: int) -> Row:
    """The axis: 0 at the left, the step's seconds at the right, half of them between."""
    middle, end = f"{number(seconds / 2, 2)} s", f"{number(seconds, 3)} s"
    row: Row = [(" " * _NAME + "0", "dim")]
    if bar > 30:
        row = put(row, _NAME + bar // 2 - len(middle) // 2, [(middle, "dim")])
    return put(row, _NAME + bar - len(end), [(end, "dim")])


def stage_rows(report: Report, columns: int, rows: int) -> list[Row]:
    """The stages, longest first: a bar, seconds, share of the step, and usual seconds if different."""
    found = sorted(report.stages.items(), key=lambda item: -item[1])
    longest = found[0][1] if found else 0.0
    room = min(_BAR, max(columns - _HEAD - 30, 4))
    drawn: list[Row] = []
    for name, seconds in found[:rows]:
        sign, role = _SIGNS[name]
        cells = max(round(seconds / longest * room), 1) if longest else 0
        share = 100 * seconds / report.seconds if report.seconds else 0.0
        row: Row = [(f" {name:<{_HEAD - 1}}", "text"), (sign * cells, role)]
        row = put(row, _HEAD + room + 1, [(f"{number(seconds):>6} s {share:3.0f} %", "text")])
        usual = report.usual.get(name)
        if usual is not None and abs(usual - seconds) > 0.2 * max(usual, seconds) and seconds > 0.02 * report.seconds:
            row.append((f"  usual {number(usual)}", "dim"))
        drawn.append(crop(row, columns))
    return drawn


def limit_rows(report: Report, columns: int) -> list[Row]:
    """Tokens per second against the GPU's limit, and the stages of the start."""
    drawn = labelled([(" speed", "dim")], limit_line(report.limits), "text", _TEXT, columns)
    if start := start_words(report.start, report.start_attempt):
        drawn += labelled([(" start", "dim")], start, "text", _TEXT, columns)
    return drawn


def advice_block(report: Report, columns: int, rows: int) -> list[Row]:
    """The largest stages, and settings to try."""
    host, found = host_words(report), problems(report)
    drawn = labelled([(" host", "dim")], host, "text", _TEXT, columns) if host else []
    if not found:
        drawn += paragraph(no_advice(report), "dim", columns)
    for problem in [*found, *start_problems(report)]:
        drawn += labelled([(f" {problem.word}", "dim")], problem.what, "text", _TEXT, columns)
        for label, text in problem.rows():
            drawn += labelled([(f" {label}", "dim")], text, "live", _TEXT, columns)
    return drawn[:rows]


def rough_rows(report: Report, columns: int) -> Iterator[Row]:
    """Why there are no lanes, and a bar of the stages in their order."""
    yield from paragraph(f"{report.rough}.", "notice", columns)
    bar = max(columns - _NAME - 2, 8)
    cells = _stretch(report.stages, report.seconds, bar)
    yield crop(_bar("step", cells), columns)
    yield crop(_names(cells), columns)
    yield _axis(report.seconds, bar)


def start_rows(report: Report, columns: int) -> list[Row]:
    """The stages of the start as a bar; no rows without times."""
    whole, bar = sum(report.start.values()), max(columns - _NAME - _IDLE - 1, 8)
    cells = _stretch({NAMES[stage]: seconds for stage, seconds in report.start.items()}, whole, bar)
    return [[], _bar("start", cells), _names(cells), _axis(whole, bar)] if whole else []
