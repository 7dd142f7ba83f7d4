"""Logs of events: read, put in order, and every fault told with its line."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import InputError
from suanli.plan.events import measure_goodput
from suanli.readers.events import KINDS, read_events

HEAD = "start,end,kind,cause\n"


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "events.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_dates_and_lengths(tmp_path: Path) -> None:
    dated = read_events(written(tmp_path, HEAD + "2026-01-01T00:00,2026-01-01T10:00,training,\n"
                                                 "2026-01-01T10:00,2026-01-01T10:30,restart,GPU\n"))  # fmt: skip
    spans = read_events(written(tmp_path, "kind, END ,Start\nrestart,10.5h,10h\nTraining,10h,0s\n"))
    assert [(each.start_s, each.end_s, each.kind) for each in dated] == [
        (each.start_s, each.end_s, each.kind) for each in spans
    ]
    assert [each.cause for each in dated] == ["", "GPU"]


def test_measured(tmp_path: Path) -> None:
    rows = HEAD + "0h,80h,training,\n80h,81h,checkpoint,\n81h,90h,restart,NIC\n90h,92h,replay,\n95h,100h,restart,GPU\n"
    found = measure_goodput(read_events(written(tmp_path, rows)), 8)
    assert found.goodput == pytest.approx(0.80)
    assert found.loss == pytest.approx({"checkpoint": 0.01, "restart": 0.14, "replay": 0.02, "unexplained": 0.03})
    assert sum(entry.fraction for entry in found.account) == pytest.approx(1)
    assert [(each.cause, each.count, each.seconds, each.replay_s, each.fraction) for each in found.causes] == [
        ("NIC", 1, 9 * 3600, 2 * 3600, pytest.approx(0.11)), ("GPU", 1, 5 * 3600, 0, pytest.approx(0.05)),
    ]  # fmt: skip
    assert found.rate is not None
    assert found.rate.gpu_hours == pytest.approx(86 * 8 / 2)  # 100 h less 14 h down, two interrupts
    assert found.mttr_s == 7 * 3600
    assert found.availability == pytest.approx(43 / 50)


def test_replay_goes_to_the_cause_it_names_or_to_the_interrupt_before_it(tmp_path: Path) -> None:
    """One hour replayed after a GPU's failure, another said to be the NIC's, one before any interrupt."""
    rows = (
        HEAD + "0h,1h,replay,\n1h,2h,training,\n2h,3h,restart,GPU\n3h,4h,replay,\n4h,5h,training,\n"
        "5h,6h,restart,\n6h,7h,replay,NIC\n7h,10h,training,\n"
    )
    found = measure_goodput(read_events(written(tmp_path, rows)), None)
    causes = {each.cause: (each.count, each.seconds / 3600, each.replay_s / 3600) for each in found.causes}
    assert causes == {"GPU": (1, 1, 1), "not said": (1, 1, 1), "NIC": (0, 0, 1)}
    badput = sum(each.fraction for each in found.causes)
    assert badput == pytest.approx(found.loss["restart"] + found.loss["replay"])


def test_nothing_failed(tmp_path: Path) -> None:
    found = measure_goodput(read_events(written(tmp_path, HEAD + "0h,5h,training,\n")), None)
    assert (found.goodput, found.rate, found.mttr_s, found.availability) == (1.0, None, None, None)
    assert set(found.reasons.values()) == {"nothing failed: no row of kind restart"}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty in {file}; expected a table with a header."),
        ("a,b\n1,2\n", "no column start or end or kind in {file}; got 'a', 'b'; expected columns start, end, kind and, "
                       "if wanted, cause."),
        ("start,end,kind\n\r0", "not a CSV table in {file}; expected columns start, end, kind and, if wanted, cause."),
        (HEAD, "no events in {file}; expected a line for each span of time."),
        (HEAD + "0h,1h,traning,\n", "unknown kind 'traning' in {file}, line 2; expected one of " + ", ".join(KINDS)
         + "; nearest: training, waiting."),
        (HEAD + "2h,1h,training,\n", "ends before it starts in {file}, line 2; got 2h to 1h; expected an end after the "
                                     "start."),
        (HEAD + "0,1h,training,\n", "start is no time in {file}, line 2; got '0'; expected 2024-07-01T12:00 or a "
                                    "length with its unit, 3.5h."),
        (HEAD + "0h,2h,training,\n1h,3h,restart,\n", "lines 2 and 3 overlap in {file}; expected spans one after the "
                                                     "other."),
    ],
)  # fmt: skip
def test_faults(tmp_path: Path, text: str, message: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(InputError) as caught:
        read_events(path)
    assert str(caught.value) == message.format(file=path)


def test_dates_without_a_zone_are_utc_whatever_the_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    rows = read_events(written(tmp_path, HEAD + "2024-03-31T01:00,2024-03-31T03:00,training,\n"))
    assert rows[0].seconds == 7200


@pytest.mark.parametrize("second", ["0h,5h", "2024-01-02T00:00+00:00,2024-01-03T00:00+00:00"])
def test_times_written_in_two_ways_are_refused(tmp_path: Path, second: str) -> None:
    text = HEAD + f"2024-01-01,2024-01-02,training,\n{second},restart,\n"
    with pytest.raises(InputError, match="times written in more than one way"):
        read_events(written(tmp_path, text))


def test_a_log_of_restarts_alone_has_no_rate(tmp_path: Path) -> None:
    found = measure_goodput(read_events(written(tmp_path, HEAD + "0h,1h,restart,\n1h,2h,restart,\n")), 8)
    assert (found.goodput, found.rate, found.availability) == (0, None, None)
    assert found.mttr_s == 3600
    assert found.reasons["rate"] == "no row but restarts: nothing was up that could fail"


def test_every_fault_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        read_events(written(tmp_path, HEAD + "x,y,z,\n" * 3 + "0h,1h,training\n"))
    assert len(caught.value.faults) == 9


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"not a regular file .* expected a CSV file"):
        read_events(tmp_path)


@settings(max_examples=60)
@given(st.lists(st.tuples(st.integers(1, 10**5), st.integers(0, 10**4), st.sampled_from(list(KINDS))), min_size=1,
                max_size=30))  # fmt: skip
def test_accounts_of_any_log_close(tmp_path_factory: pytest.TempPathFactory, spans) -> None:
    at, lines = 0, []
    for length, gap, kind in spans:
        lines.append(f"{at}s,{at + length}s,{kind},")
        at += length + gap
    found = measure_goodput(read_events(written(tmp_path_factory.mktemp("e"), HEAD + "\n".join(lines))), None)
    assert sum(entry.fraction for entry in found.account) == pytest.approx(1)
    assert 0 <= found.goodput <= 1


@settings(max_examples=60)
@given(st.text(max_size=200))
def test_junk(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.mktemp("j") / "e.csv"
    path.write_bytes((HEAD + text).encode("utf-8", "surrogatepass"))
    with contextlib.suppress(InputError):
        measure_goodput(read_events(path), 3)
