"""The section `traces` of `verify`: on files of our own making, and on the samples where they are."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from made_trace import EXAMPLE

import suanli
from suanli.catalog.trace_claims import Samples, TraceClaim, samples, trace_claims
from suanli.errors import InputError
from suanli.explain.verdicts import FOLDER, explained, figure_of, verify_traces
from suanli.nouns.claim import DIFFERS, FAILS, HOLDS, REPRODUCED, Verification
from suanli.report import document_of
from suanli.report.text import document_text


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder with the made trace, and a text that is none."""
    folder = tmp_path / FOLDER
    folder.mkdir(parents=True)
    shutil.copy(EXAMPLE, folder / "step.json")
    (folder / "letter.json").write_text("dear all", encoding="utf-8")
    return tmp_path


def claim(figure: str, expected: float, **more: object) -> TraceClaim:
    given = {"file": "step.json", "within": 1e-9, "source": "by hand", "unit": "s", **more}
    return TraceClaim(figure=figure, expected=expected, **given)  # type: ignore[arg-type]


# products 3 × (1150 + 1100) µs; of a step 520 µs of all-reduce 260 without compute beside it; six products known
@pytest.mark.parametrize(
    ("figure", "value"),
    [
        ("matmul_s", 6750e-6),
        ("communication_s", 1560e-6),
        ("exposed_communication_s", 780e-6),
        ("copies_s", 480e-6),
        ("attributed share", 1.0),
        ("recomputed convolutions", 0.0),
        ("exposed communication", 780 / 11185),  # of the window
        ("steps_communication_s", 1040e-6),  # without the last of three
    ],
)
def test_figures_by_hand(figure: str, value: float) -> None:
    assert figure_of(explained(EXAMPLE), figure) == pytest.approx(value)


def test_what_is_not_there_is_none() -> None:
    assert figure_of(explained(EXAMPLE), "idle_s of device 1") is None


def test_verdicts(data: Path) -> None:
    claims = (
        claim("matmul_s", 6750e-6),
        claim("matmul_s", 6751e-6, source="wrong"),
        claim("copies_s", 480e-6, orientation="a prototype's"),
        claim("copies_s", 470e-6, orientation="a prototype's", source="far"),
        claim("attributed share", 0.5, unit="fraction", at_least=True),
        claim("idle_s of device 1", 1.0, source="none"),
        claim("idle_s", 1.0, file="letter.json", source="unread"),
    )
    found = verify_traces(data, claims=claims, known=Samples(("step.json",), {"letter.json": "no trace"}))
    rows = {(row.source, row.quantity or row.statement): row for row in found.claims}
    assert [row.status for row in found.claims if row.quantity] == [
        HOLDS, FAILS, REPRODUCED, DIFFERS, HOLDS, FAILS, FAILS,
    ]  # fmt: skip
    assert rows["samples read or refused", "step.json is read"].status == HOLDS
    assert rows["samples read or refused", "letter.json is refused, with the reason"].status == HOLDS
    assert rows["accounts close", "4 accounts of step.json close"].got == pytest.approx(0, abs=1e-12)
    assert rows["far", "copies_s"].why == "a prototype's"
    assert rows["none", "idle_s of device 1"].got is None
    assert {row.source: (row.n, row.failed) for row in found.summary}["wrong"] == (1, 1)


def test_a_file_that_should_be_refused_and_is_read_fails(data: Path) -> None:
    known = Samples(("letter.json",), {"step.json": "chakra"})
    found = verify_traces(data, claims=(), known=known)
    assert [(row.statement, row.status) for row in found.claims if row.unit == "files"] == [
        ("letter.json is read", FAILS),
        ("step.json is refused, with the reason", FAILS),
    ]


def test_a_file_that_is_absent_fails_and_says_so(data: Path) -> None:
    found = verify_traces(data, claims=(), known=Samples(("gone.json",), {}))
    assert (found.claims[0].status, found.holds) == (FAILS, False)
    assert "No such file" in found.claims[0].why


def test_progress_is_told_of_each_file(data: Path) -> None:
    said: list[tuple[int, int, str]] = []
    verify_traces(data, lambda *told: said.append(told), (), Samples(("step.json",), {"letter.json": "no trace"}))
    assert said == [(0, 2, "step.json"), (1, 2, "letter.json")]


NEEDED = (
    "expected a folder with traces/INDEX.csv and the files it lists in traces/files. Name it with --data, or in the "
    "variable SUANLI_DATA."
)


def test_without_data_it_says_what_it_needs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("suanli.api.verifying.outside_data", lambda _: None)
    with pytest.raises(InputError) as problem:
        suanli.verify("traces")
    assert str(problem.value) == f"the traces to check are not part of the project in --only traces; {NEEDED}"
    monkeypatch.undo()
    with pytest.raises(InputError) as problem:
        suanli.verify("traces", data=tmp_path)
    assert str(problem.value) == (
        f"the traces to check are not part of the project in --only traces; got {tmp_path}, without them; {NEEDED}"
    )


def test_traces_may_lie_beside_the_data(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (data / "data").mkdir()
    seen: list[Path] = []
    nothing = Verification((), ())
    monkeypatch.setattr("suanli.api.verifying.verify_samples", lambda folder, _: seen.append(folder) or nothing)
    notes = suanli.verify("traces", data=data / "data").notes
    suanli.verify("traces", data=str(data))
    assert seen == [data, data]
    assert notes == (f"traces: {data}",)


def test_data_of_no_section_is_refused() -> None:
    with pytest.raises(InputError) as problem:
        suanli.verify("articles", data="/tmp")
    assert str(problem.value) == (
        "outside data are of a section that needs them in --data; got '/tmp'. Add --only serving or --only traces."
    )


def test_the_table_names_its_samples_once() -> None:
    known = samples()
    assert len(set(known.read) | set(known.refused)) == 45 == len(known.read) + len(known.refused)
    assert {each.file for each in trace_claims()} <= set(known.read)
    assert len({(each.file, each.figure) for each in trace_claims()}) == len(trace_claims()) == 61


@pytest.mark.shared
def test_every_public_figure_holds(shared: Path) -> None:
    result = suanli.verify("traces", data=str(shared))
    assert result.ok, [row.statement for row in result.failed]
    counts = result.by_status()
    assert counts == {HOLDS: 120, REPRODUCED: 22, DIFFERS: 6}
    text = document_text(document_of(result), 120)
    for said in (
        "samples read or refused: 45 of 45",
        "accounts close: 42 of 42",
        "307.200 µs",
        "recomputed convolutions",
    ):
        assert said in text
