import math

from hypothesis import given
from hypothesis import strategies as st

from launcher.metrics.merge import GRACE, Merger, merge
from launcher.metrics.records import StepRecord, parse_record


def test_the_files_digits_win_and_a_consoles_nan_or_inf_beats_the_files_null() -> None:
    console = {"a": 0.123, "b": math.inf, "c": math.nan, "only-console": 1.0}
    file = {"a": 0.1234567, "b": math.nan, "c": math.nan, "d": math.nan, "only-file": 2.0}
    merged = merge(console, file)
    assert merged["a"] == 0.1234567 and merged["b"] == math.inf
    assert math.isnan(merged["c"]) and math.isnan(merged["d"])
    assert merged["only-console"] == 1.0 and merged["only-file"] == 2.0


def test_a_null_of_the_file_logger_is_nan_and_text_is_dropped() -> None:
    record = parse_record(b'{"step": 3, "data": {"a": null, "b": "text", "c": [1], "d": 2, "e": true}}')
    assert record is not None
    step, data = record
    assert step == 3 and math.isnan(data["a"]) and data["d"] == 2.0 and data["e"] == 1.0
    assert "b" not in data and "c" not in data


def test_bare_nan_words_of_old_writers_are_read() -> None:
    record = parse_record(b'{"step": 1, "data": {"a": NaN, "b": -Infinity}}')
    assert record is not None and math.isnan(record[1]["a"]) and record[1]["b"] == -math.inf


def test_broken_lines_are_no_records() -> None:
    for line in (
        b"",
        b"{",
        b"[1]",
        b'{"step": "1", "data": {}}',
        b'{"step": 1}',
        b"\xff\xfe",
        b'{"step": 99999999999, "data": {}}',
        b'{"step": -1, "data": {}}',
        b'{"step": true, "data": {}}',
    ):
        assert parse_record(line) is None


def test_a_step_goes_when_both_sources_have_it_and_alone_after_the_grace() -> None:
    merger = Merger(both=True)
    merger.file(1, {"a": 1.0}, now=0.0)
    assert merger.take(now=1.0) == []
    merger.console(1, {"a": 0.9, "b": 2.0}, offset=70, now=1.0)
    (record,) = merger.take(now=1.0)
    assert (record.step, record.log_offset, record.data) == (1, 70, {"a": 1.0, "b": 2.0})
    merger.file(2, {"a": 3.0}, now=2.0)  # the console lost this one
    assert merger.take(now=2.0 + GRACE - 0.1) == []
    (record,) = merger.take(now=2.0 + GRACE)
    assert record.log_offset is None and record.data == {"a": 3.0}
    merger.console(2, {"a": 9.0}, offset=99, now=9.0)  # too late: a step goes once
    assert merger.take() == []


def test_a_later_step_waits_for_an_earlier_one() -> None:
    merger = Merger(both=True)
    merger.file(1, {"a": 1.0}, now=0.0)
    merger.file(2, {"a": 2.0}, now=0.1)
    merger.console(2, {}, offset=5, now=0.2)
    assert merger.take(now=1.0) == []
    assert [r.step for r in merger.take(now=GRACE)] == [1, 2]


def test_without_a_file_logger_nothing_waits() -> None:
    merger = Merger(both=False)
    merger.console(4, {"a": 1.0}, offset=0, now=0.0)
    assert [r.step for r in merger.take(now=0.0)] == [4]


def test_a_step_number_that_no_run_can_have_is_ignored() -> None:
    merger = Merger(both=False)
    merger.console(10**12, {"a": 1.0}, offset=0, now=0.0)
    assert merger.take() == []


@given(st.dictionaries(st.text(max_size=8), st.floats(allow_nan=True, allow_infinity=True), max_size=8))
def test_a_record_survives_its_line(data: dict[str, float]) -> None:
    back = StepRecord.from_line(StepRecord(7, 1.5, None, data).to_line())
    assert back is not None and back.data.keys() == data.keys()
    for key, value in data.items():
        assert back.data[key] == value or (math.isnan(value) and math.isnan(back.data[key]))


def test_a_clock_that_is_set_back_holds_no_step_back() -> None:
    merger = Merger(both=True)
    merger.console(1, {"a": 1.0}, 0, 5000.0)
    assert merger.take(5001.0) == []
    assert [record.step for record in merger.take(1400.0)] == [1]
