"""Devices and the users of their memory, in rows of text. A device is a GPU of a sample, or the host."""

from launcher.core.format import amount, counted, gib, number
from launcher.core.text import clean
from launcher.record.machine import GpuSample, MachineSample
from tui.kit.drawing.glyphs import CURSOR, DOT, FILL, FILL_OTHERS, FILL_REST, WARN
from tui.kit.drawing.rows import Row, fit, packed, paragraph, width

Device = GpuSample
HOST = "host"
TIGHT, FULL = 0.93, 0.97  # shares of the memory from which a bar changes its role
NEAR = 5  # °C below the limit from which a temperature is a warning
_BAR, _LEAST_BAR = 30, 6  # cells
_NAME = 16  # cells of a name
_ROOMY = 70  # columns from which the processes have all of their names
_HIDDEN = 1 << 30  # bytes in use from which an empty list of processes cannot be true
_WHOSE = {"run": ("this run", "live"), "others": ("other", "warn"), "unknown": ("unknown", "dim")}
_KINDS = {"ray::": "ray", "VLLM::": "engine", "sglang::": "engine"}  # beginnings of the names of other processes


def devices(sample: MachineSample | None) -> list[Device]:
    """The GPUs of a sample, then the host as a device of the same shape; on a cluster, node after node."""
    if sample is None:
        return []
    if sample.nodes:
        found = []
        for node in sample.nodes:
            found += [gpu for gpu in sample.gpus if str(gpu.index).startswith(f"{node.name}/")]
            found.append(GpuSample(f"{HOST} {node.name}", used=node.used, total=node.total, run_used=node.run_used))
        return found
    host = sample.host
    util = round(100 * host.busy / host.cores) if host.cores and host.busy is not None else None
    return [*sample.gpus, GpuSample(HOST, used=host.used, total=host.total, util=util, run_used=sample.run.rss)]


def fullest(sample: MachineSample | None) -> Device | None:
    """The GPU with the least free memory; the host if there is no GPU."""
    found = devices(sample)
    gpus = [device for device in found if not is_host(device) and device.total and device.used is not None]
    return max(gpus, key=used_share, default=found[-1] if found else None)


def used_share(device: Device) -> float:
    """Share of used memory, 0 to 1; 0 if unknown."""
    return min(device.used / device.total, 1.0) if device.used is not None and device.total else 0.0


def device_name(device: Device) -> str:
    """`GPU 0`, `GPU 1:0` for a slice, `host`; in a cluster `box-1/0`, `host box-1`."""
    index = clean(str(device.index))
    return index if is_host(device) or "/" in index else f"GPU {index}"


def is_host(device: Device) -> bool:
    """Whether it is a machine's memory."""
    return str(device.index).partition(" ")[0] == HOST


def short_name(device: Device) -> str:
    """`RTX 4090`."""
    return clean(device.name).removeprefix("NVIDIA ").removeprefix("GeForce ")


def device_row(device: Device, columns: int, chosen: bool, longest: int = 0) -> Row:
    """`❯GPU 0  RTX 4090  19.7/24.0 GiB   97 %  312 W  71 °C  ▓▓▓▓▓▒░░░`, cut to fit; `longest`: the longest name."""
    memory = f"{gib(device.used):>5}/{gib(device.total)} GiB"
    row: Row = [
        (CURSOR if chosen else " ", "live"),
        (f"{device_name(device):<{max(8, longest + 1)}}", "title" if chosen else "text"),
    ]
    named = columns >= len(memory) + 64
    if named:
        row.append((f"{short_name(device)[:_NAME]:<{_NAME + 1}}", "dim"))
    row.append((f"{memory:<16}", "text"))
    hot = _hot(device)
    figures = ((device.util, "%", "text"), (device.temp, "°C", "warn" if hot else "text"), (device.power, "W", "text"))
    for value, unit, role in figures:
        said = " " * (6 + len(unit)) if value is None else f"{value:>5} {unit}"
        if width(row) + len(said) + _LEAST_BAR + 4 <= columns:
            row.append((said, role))
    sign: Row = [(f" {WARN}", "warn")] if hot or _held_back(device) else [("  ", "text")]
    return [*row, *sign, *share_bar(device, columns - width(row) - 4)]


def share_bar(device: Device, room: int) -> Row:
    """A bar of the memory: the run's part, other processes, free."""
    cells = min(room, _BAR)
    used, total, run = device.used, device.total, device.run_used
    if cells < _LEAST_BAR or used is None or not total:
        return []
    share = used_share(device)
    full = round(share * cells)
    ours = full if run is None else min(round(run / total * cells), full)
    role = "critical" if share >= FULL else "warn" if share >= TIGHT else "bar"
    spans: Row = [
        (FILL * ours, role),
        (FILL_OTHERS * (full - ours), "notice"),
        (FILL_REST * (cells - full), "bar-rest"),
    ]
    return [(" ", "text"), *(span for span in spans if span[0])]


def split_parts(device: Device) -> list[Row]:
    """`▓ run 17.2`, `▒ driver 1.1`, `░ free 5.7 of 24.0 GiB`."""
    used, total, run = device.used, device.total, device.run_used
    if used is None or not total:
        return [[("memory not reported", "dim")]]
    free: Row = [(f"{FILL_REST} ", "bar-rest"), (f"free {gib(total - used)} of {gib(total)} GiB", "text")]
    if run is None:
        return [[(f"{FILL} ", "bar"), (f"used {gib(used)}", "text")], free]
    alone = device.holders and all(each.whose == "run" for each in device.holders)
    others = "others and shared" if is_host(device) else "driver" if alone else "other programs, driver"
    return [
        [(f"{FILL} ", "bar"), (f"run {gib(min(run, used))}", "text")],
        [(f"{FILL_OTHERS} ", "notice"), (f"{others} {gib(max(used - run, 0))}", "text")],
        free,
    ]


def state_words(device: Device) -> list[tuple[str, str]]:
    """Utilization, power and temperature with their limits, as far as reported."""
    said = []
    if (util := device.util) is not None:
        said.append((f"{util} % busy", "text"))
    if (power := device.power) is not None:
        limit = device.power_limit
        said.append((f"{power} of {limit} W" if limit else f"{power} W", "text"))
    if (temp := device.temp) is not None:
        limit = device.slow_at
        words = f"{temp} °C" + (f", throttles at {limit}" if limit else "")
        said.append((words, "warn" if _hot(device) else "text"))
    if slowed := device.slowed:
        words = f"slowed by {', '.join(clean(word) for word in slowed)}"
        said.append((f"{WARN} {words}", "warn") if _held_back(device) else (words, "dim"))
    return said


def holder_rows(device: Device, columns: int, room: int) -> list[Row]:
    """Users of a GPU's memory, largest first, in at most `room` rows."""
    holders = device.holders
    if not holders:
        return paragraph(_no_holders(device), "dim", columns, indent=2)[:room]
    ranked = sorted(holders, key=lambda each: -(each.used or 0))
    shown = ranked if len(ranked) <= room else ranked[: max(room - 1, 0)]
    rows = []
    roomy = columns >= _ROOMY
    for each in shown:
        whose, role = _WHOSE.get(each.whose, _WHOSE["unknown"])
        name = clean(each.name or "not visible")
        if each.whose == "others":
            whose = next((kind for begin, kind in _KINDS.items() if name.startswith(begin)), whose)
        user = clean(each.user or "")
        row: Row = [(f"  {whose:<9}", role), (f"{gib(each.used):>6} GiB ", "text")]
        if roomy:
            row += [(" ", "text"), *fit([(name, "text")], 22), *fit([(user, "dim")], 14), (f" pid {each.pid}", "dim")]
        else:
            row += [*fit([(name, "text")], 16), (" ", "text"), *fit([(user, "dim")], 6), (f" {each.pid}", "dim")]
        rows.append(row)
    if len(shown) < len(ranked) and room:
        rest = ranked[len(shown) :]
        held = gib(sum(each.used or 0 for each in rest))
        rows.append([(f"  {len(rest)} more, {held} GiB in total", "dim")])
    return rows


def _no_holders(device: Device) -> str:
    if device.holders is None:
        return "the driver does not report which processes hold the memory"
    if (device.used or 0) > _HIDDEN:
        return "the processes that hold it are not visible; a container shows only its own"
    return "no process holds memory"


def host_words(sample: MachineSample) -> list[tuple[str, str]]:
    """The load of the host's CPUs, and free space on the checkpoints' disk."""
    host, load, disk, room, said = sample.host, sample.host_load, sample.disk, sample.room, list[tuple[str, str]]()
    role = "warn" if load is not None and load.crowded else "text"
    if host.load is not None and host.cores:
        said.append((f"load {number(host.load, 2)} on {counted(host.cores, 'core')}", role))
    if load is not None:
        said.append((f"other processes use {number(load.others, 2)}", role))
    if host.waiting is not None:
        said.append((f"tasks wait {100 * host.waiting:.0f} % of the time", role))
    if disk is not None:
        said.append((f"disk {amount(disk.free)} free of {amount(disk.total)}", "warn" if disk.full else "text"))
    if room is not None and sample.saved is not None:
        words = f"room for {counted(room, 'more checkpoint')} of {amount(sample.saved.newest)}"
        said.append((words, "text" if room else "warn"))
    return said


def _hot(device: Device) -> bool:
    temp, limit = device.temp, device.slow_at
    return temp is not None and limit is not None and temp >= limit - NEAR


def _held_back(device: Device) -> bool:
    """Whether a GPU is slowed by more than its usual power limit."""
    return any(word != "power limit" for word in device.slowed)


def detail_rows(
    device: Device, columns: int, rows: int, missing: str | None, sample: MachineSample | None = None
) -> list[Row]:
    """The details of one device, a host's by `sample`; `missing`: why there are no GPU metrics, if it matters."""
    head: Row = [(f" {device_name(device)} {short_name(device)}".rstrip(), "title")]
    first, *others = packed([head, *split_parts(device)], columns - 2)
    drawn = [first, *([("  ", "text"), *row] for row in others)]
    said = state_words(device) if not is_host(device) else host_words(sample) if sample and not sample.nodes else []
    drawn += [[("  ", "text"), *row] for row in packed([[words] for words in said], columns - 2, f" {DOT} ")]
    if is_host(device):
        return drawn + paragraph(missing or "", "dim", columns, indent=2)
    return [*drawn, *holder_rows(device, columns, rows - len(drawn))]
