"""What requests have in common: defaults that are said, notes on lengths, policies, the model as it was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from suanli.api.parts import (
    as_asked,
    as_text,
    assumed_line,
    chooses_positions,
    length_notes,
    read_convention,
    read_device,
    read_model_of,
    read_recompute,
    read_workload,
)
from suanli.api.request import Request
from suanli.errors import InputError, UnknownNameError
from suanli.nouns.arch import Arch, Module, Stream
from suanli.nouns.workload import Workload
from suanli.readers.model import read_model


def net(max_positions: int | None = None, length: int | None = None) -> Arch:
    return Arch(
        name="net", root=Module(name="", children=()), streams=(Stream(name="tokens", length=length, decodes=True),),
        max_positions=max_positions,
    )  # fmt: skip


@pytest.mark.parametrize(("value", "text"), [(None, None), (140, "140"), ("140TFLOPS", "140TFLOPS"), (0, "0")])
def test_as_text(value: Any, text: str | None) -> None:
    assert as_text(value) == text


# --- words --------------------------------------------------------------------------------------------------------


def test_a_convention_is_causal_unless_given() -> None:
    request = Request()
    found = read_convention(request, None)
    assert found is not None and found.name == "causal"
    assert request.assumed == {"convention": "causal"}
    named = read_convention(request, "palm")
    assert named is not None and named.name == "palm"
    assert request.given == {"convention": "palm"}
    assert read_convention(request, "plam") is None
    with pytest.raises(UnknownNameError, match="unknown convention 'plam' in --convention"):
        request.check()


def test_a_device_is_never_assumed() -> None:
    request = Request()
    assert read_device(request, None) is None
    assert (request.given, request.assumed) == ({}, {})
    found = read_device(request, "h100-sxm")
    assert found is not None and found.short_id == "h100-sxm"
    assert request.given == {"gpu": "h100-sxm"}


@pytest.mark.parametrize("policy", ["none", "selective", "selective-published", "full"])
def test_policies(policy: str) -> None:
    request = Request()
    assert read_recompute(request, policy) == policy
    assert request.errors == []


def test_an_unknown_policy_names_those_there_are() -> None:
    request = Request()
    assert read_recompute(request, None) == "none"
    assert request.assumed == {"recompute": "none"}
    assert read_recompute(request, "ful") == "ful"
    with pytest.raises(UnknownNameError) as caught:
        request.check()
    assert str(caught.value) == (
        "unknown recompute policy 'ful' in --recompute; expected one of 4 known; nearest: full. "
        "Policies: none, selective, selective-published, full."
    )


def test_a_model_for_another_picture() -> None:
    request = Request()
    found = read_model_of(request, "vit-b16", "384x384")
    assert found is not None and found.streams[0].length == 577
    assert request.given == {"image": "384x384"}
    assert read_model_of(Request(), "vit-b16").streams[0].length == 197  # type: ignore[union-attr]


def test_a_bad_model_and_a_bad_picture_are_said_together() -> None:
    request = Request()
    read_model_of(request, "nobody", "axb")
    assert [fault.code for error in request.errors for fault in error.faults] == ["bad_image", "unknown_model"]


# --- workloads ----------------------------------------------------------------------------------------------------

# longest of the model, what is typed: positions, whether they are assumed
LENGTHS = [
    (None, None, 2048, True),
    (1024, None, 1024, True),  # its own, where shorter
    (131_072, None, 2048, True),
    (1024, "4Ki", 4096, False),
    (1024, 7, 7, False),
]


@pytest.mark.parametrize(("longest", "typed", "seq", "assumed"), LENGTHS)
def test_positions(longest: int | None, typed: Any, seq: int, assumed: bool) -> None:
    request = Request()
    found = read_workload(request, net(longest), {"seq": typed})
    assert found is not None and found.seq == seq
    assert ("seq" in request.assumed, "seq" in request.given) == (assumed, not assumed)


def test_positions_of_a_picture_are_not_assumed() -> None:
    """They are fixed: the default is read and not said."""
    request = Request()
    found = read_workload(request, net(197, length=197), {"seq": None})
    assert found is not None and found.seq == 197
    assert request.assumed == {}


def test_without_a_model_the_default_is_2048() -> None:
    found = read_workload(Request(), None, {"seq": None})
    assert found is not None and found.seq == 2048


TYPED = {"seq": None, "batch": None, "phase": None, "kv_len": None, "dtype": None, "kv_dtype": None, "optimizer": None,
         "recompute": None}  # fmt: skip


def test_defaults_are_assumed_by_name() -> None:
    request = Request()
    assert read_workload(request, net(), TYPED) == Workload(seq=2048)
    assert request.assumed == {
        "seq": 2048, "batch": 1, "phase": "forward", "dtype": "bf16", "optimizer": "adamw", "recompute": "none",
    }  # fmt: skip


def test_what_is_typed_is_given() -> None:
    request = Request()
    typed = {"seq": "1K", "batch": "2", "phase": "decode", "kv_len": "3K", "dtype": "fp8", "kv_dtype": "int8",
             "optimizer": "lion", "recompute": "full"}  # fmt: skip
    assert read_workload(request, net(), typed) == Workload(
        seq=1000, batch=2, phase="decode", kv_len=3000, dtype="fp8", kv_dtype="int8", optimizer="lion",
        recompute="full",
    )  # fmt: skip
    assert request.given == typed
    assert request.assumed == {}


def test_what_a_verb_fixes_is_neither() -> None:
    request = Request()
    found = read_workload(request, net(), {"seq": 5}, {"phase": "train"})
    assert found == Workload(seq=5, phase="train")
    assert (request.given, request.assumed) == ({"seq": 5}, {})


def test_a_bad_number_does_not_hide_the_other_faults() -> None:
    request = Request()
    assert read_workload(request, net(), {**TYPED, "seq": "abc", "phase": "sleep", "dtype": "bf17"}) is None
    with pytest.raises(InputError) as caught:
        request.check()
    codes = [fault.code for fault in caught.value.faults]
    assert codes[1:] == ["unknown_phase", "unknown_dtype"]
    assert len(codes) == 3


# --- what is said -------------------------------------------------------------------------------------------------


def test_the_line_of_what_was_assumed() -> None:
    request = Request()
    assert assumed_line(request) == ()
    request.assumed = {"convention": "causal", "seq": 131_072, "kv_len": 1}
    assert assumed_line(request) == ("assumed: convention causal, seq 131,072, kv len 1",)


PAST = "seq 1,025 is past the model's 1,024 positions; the arithmetic holds, the model may not"
FIXED = "--seq changes nothing: the positions of net are fixed by its input"

# model, positions of the workload, what was typed: notes
NOTES = [
    (net(1024), 1024, 1024, ()),
    (net(1024), 1025, 1025, (PAST,)),
    (net(1024), 1025, None, (PAST,)),
    (net(None), 10**6, 10**6, ()),
    (net(197, length=197), 197, None, ()),
    (net(197, length=197), 512, 512, (FIXED,)),
    (net(197, length=197), 512, None, ()),
]


@pytest.mark.parametrize(("arch", "seq", "typed", "notes"), NOTES)
def test_notes_on_lengths(arch: Arch, seq: int, typed: int | None, notes: tuple[str, ...]) -> None:
    assert length_notes(arch, Workload(seq=seq), typed) == notes


CHOOSES = [("gpt2", True), ("t5-small", True), ("whisper-small", True), ("clip-vit-b32", True), ("vit-b16", False),
           ("resnet-50", False)]  # fmt: skip


@pytest.mark.parametrize(("name", "chooses"), CHOOSES)
def test_whose_length_is_the_users_to_say(name: str, chooses: bool) -> None:
    assert chooses_positions(read_model(name)) is chooses


class Configured:
    name = "configured"


class Nameless:
    pass


@pytest.mark.parametrize(
    ("model", "asked"),
    [
        ("gpt2", "gpt2"),
        ({"model_type": "gpt2"}, {"model_type": "gpt2"}),
        (net(), "net"),
        (Configured(), "configured"),
        (Nameless(), "Nameless"),
        (3, "int"),
    ],
)
def test_the_model_as_it_was_asked_for(model: Any, asked: Any) -> None:
    assert as_asked(model) == asked
