"""Layouts: degrees checked together, what follows from them, stages of uneven sizes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.errors import InputError
from suanli.nouns.layout import Layout, stage_sizes

FAULTS = [
    ({"tp": 0}, "tp is not possible in --tp; got 0; expected a whole number, 1 or more."),
    ({"dp": True}, "dp is not possible in --dp; got True; expected a whole number, 1 or more."),
    ({"zero": 4}, "unknown zero 4 in --zero; expected one of 0, 1, 2, 3."),
    ({"zero": [1]}, "unknown zero [1] in --zero; expected one of 0, 1, 2, 3; nearest: 1."),
    ({"sp": 1}, "sp is not possible in --sp; got 1; expected true or false."),
    ({"recompute": "some"}, "unknown recompute 'some' in --recompute; expected one of none, selective, full; "
                            "nearest: none."),
    ({"schedule": "dual"}, "unknown schedule 'dual' in --schedule; expected one of 1f1b, interleaved, zero-bubble, "
                           "dualpipe; nearest: dualpipe."),
    ({"vpp": 2, "schedule": "interleaved"}, "virtual stages need a pipeline in --vpp; got 2; "
                                            "expected vpp 1, or pp above 1."),
    ({"pp": 2, "vpp": 2}, "virtual stages and the interleaved schedule go together in --schedule; got vpp 2, 1f1b; "
                          "expected interleaved with vpp above 1, another schedule with vpp 1."),
    ({"sp": True}, "sequence parallelism is over tp in --sp; got tp 1; expected tp above 1, or no sp."),
    ({"dp": 8, "ep": 3}, "experts cannot be spread evenly in --ep; got ep 3 · etp 1; "
                         "expected a divisor of tp · cp · dp = 8."),
    ({"recompute_layers": 2}, "layers are recomputed under full recompute only in --recompute-layers; "
                              "got recompute none; expected recompute full."),
    ({"dp": 8, "shards": 3}, "states cannot be sharded evenly in --shards; got 3; expected a divisor of dp · cp = 8."),
    ({"pp": 3, "schedule": "dualpipe"}, "DualPipe pairs the stages from both ends in --pp; got 3; "
                                        "expected an even number."),
]  # fmt: skip


@pytest.mark.parametrize(("given_", "message"), FAULTS)
def test_what_cannot_be(given_: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as problem:
        Layout(**given_)  # type: ignore[arg-type]
    assert str(problem.value) == message


def test_all_faults_are_told_together() -> None:
    with pytest.raises(InputError) as problem:
        Layout(tp=0, zero=9, schedule="x")
    assert [fault.code for fault in problem.value.faults] == ["bad_tp", "unknown_zero", "unknown_schedule"]


def test_what_follows_from_degrees() -> None:
    layout = Layout(tp=4, pp=2, dp=8, cp=2, ep=16, etp=1, micro_batch=2)
    assert layout.gpus == 128
    assert layout.expert_dp == 4  # 4 · 2 · 8 over 16
    assert layout.micro_batches(64) == 4  # 64 over 8 · 2
    with pytest.raises(InputError) as problem:
        layout.micro_batches(60)
    assert str(problem.value) == (
        "the global batch is not whole micro-batches in --global-batch; got 60; "
        "expected a multiple of dp · micro_batch = 16."
    )


def test_in_one_line() -> None:
    assert Layout(tp=8, pp=16, dp=128, zero=2, sp=True).short == "tp8 pp16 dp128 mb1 zero2 recompute none sp 1f1b"
    hybrid = Layout(dp=8, shards=4, zero=3, recompute="full", recompute_layers=3, offload=True)
    assert hybrid.short == "dp8 mb1 zero3 shards4 recompute full 3 offload"


SIZES = [
    (126, 16, (7, *[8] * 14, 7)),  # Llama-3.1-405B, arXiv:2407.21783 §3.3.2: one layer less on both ends
    (61, 16, (3, *[4] * 13, 3, 3)),
    (5, 3, (2, 2, 1)),
    (8, 4, (2, 2, 2, 2)),
    (3, 3, (1, 1, 1)),
]


@pytest.mark.parametrize(("layers", "chunks", "sizes"), SIZES)
def test_stage_sizes(layers: int, chunks: int, sizes: tuple[int, ...]) -> None:
    assert stage_sizes(layers, chunks) == sizes


def test_no_stage_is_empty() -> None:
    with pytest.raises(InputError) as problem:
        stage_sizes(3, 4)
    assert str(problem.value) == (
        "a pipeline stage would be empty in --pp; got 3 layers on 4 stages; expected at least one layer a stage."
    )


@given(layers=st.integers(1, 300), chunks=st.integers(1, 64))
def test_sizes_sum_to_the_layers_and_differ_by_one(layers: int, chunks: int) -> None:
    if layers < chunks:
        return
    sizes = stage_sizes(layers, chunks)
    assert sum(sizes) == layers and len(sizes) == chunks
    assert max(sizes) - min(sizes) <= 1 and min(sizes) >= 1
    assert sizes[-1] == min(sizes)  # the head's stage is never the fuller one
