"""A workload lists everything that is wrong with it at once."""

from __future__ import annotations

import pytest

from suanli.errors import InputError
from suanli.nouns.workload import Workload, option


def test_defaults() -> None:
    work = Workload()
    assert (work.phase, work.batch, work.seq, work.dtype, work.recompute) == ("forward", 1, 2048, "bf16", "none")
    assert work.keys == 2048
    assert Workload(kv_len=7).keys == 7


def test_all_faults_together() -> None:
    with pytest.raises(InputError) as caught:
        Workload(phase="inference", batch=0, seq=-1, dtype="bf17", recompute="some", optimizer="adamv", kv_len=0)
    codes = {fault.code for fault in caught.value.faults}
    assert codes == {
        "unknown_phase", "bad_batch", "bad_seq", "unknown_dtype", "unknown_recompute", "unknown_optimizer", "bad_kv_len"
    }  # fmt: skip


@pytest.mark.parametrize("value", [0, -1, 1.5, True, None, "8", float("nan"), 10**13])
def test_impossible_lengths(value: object) -> None:
    with pytest.raises(InputError, match=r"batch is not a possible length in --batch; got .*whole number from 1 to"):
        Workload(batch=value)  # type: ignore[arg-type]


def test_a_near_miss_is_named() -> None:
    with pytest.raises(InputError, match=r"unknown dtype 'bf61' in --dtype; expected one of .*nearest: bf16"):
        Workload(dtype="bf61")


def test_option_names() -> None:
    assert option("kv_len") == "--kv-len"
