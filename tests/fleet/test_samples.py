"""Every real trace of the shared folder as a rank of its own: summarised and read back, or refused with a reason."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from suanli.explain.fleet.whole import explain_fleet
from suanli.fleet.job import Job, summarise_job
from suanli.fleet.store import source_of
from suanli.nouns.result import Result
from suanli.readers.summaries import read_summary

FOLDER = Path(__file__).resolve().parents[2].parent / "shared" / "traces" / "files"
BYTES_A_ROW, BYTES_AT_MOST_BESIDE = 7, 50_000


@pytest.mark.shared
@pytest.mark.full
@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*")) or ["none"])
def test_every_sample(shared: Path, tmp_path: Path, name: str) -> None:
    done = summarise_job(Job(source_of(shared / "traces" / "files" / name)))
    if done.content is None:
        assert done.faults[0].code == "no_times", done.faults  # graphs of operators, which have no times
        return
    (tmp_path / "x.parquet").write_bytes(done.content)
    summary = read_summary(tmp_path / "x.parquet")
    assert len(done.content) <= BYTES_A_ROW * len(summary) + BYTES_AT_MOST_BESIDE
    report = explain_fleet([summary])
    assert sum(each.seconds for each in report.account) == pytest.approx(report.peak_s, rel=1e-9)
    assert report.peak_s == pytest.approx(sum(each.usage.window_s for each in summary.about.devices))
    assert (summary.columns["duration_ns"] >= 0).all() and np.isfinite(report.peak_s)
    Result(kind="explain", inputs={}, result=report).to_json()  # refuses NaN and infinities


@pytest.mark.shared
def test_the_aims_of_size(shared: Path) -> None:
    """0.05 to 0.2 MB for a trace of 55 MB; this one has 62 MB and 8,066 kernels."""
    done = summarise_job(Job(source_of(shared / "traces" / "files" / "tl_mi300_xdit_sd35.json.gz")))
    assert done.content is not None and len(done.content) < 80_000
