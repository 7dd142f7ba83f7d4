"""Links and curves of devices that nobody measured: taken from data sheets, and said so."""

from __future__ import annotations

import pytest

import suanli
from suanli.catalog.devices import find_device, list_devices
from suanli.errors import InputError
from suanli.plan.serving.links import NODE, PCIE, device_notes, node_of, serving_curves
from suanli.plan.serving.precision import product_flop_per_s


def test_one_gpu_needs_no_links() -> None:
    assert node_of(find_device("m2").id, 1) is None


@pytest.mark.parametrize(
    ("gpu", "rate"),
    [("h100-sxm", 450e9), ("l40s", PCIE[4]), ("t4", PCIE[3]), ("rtx-5090", PCIE[5])],
)
def test_links_are_the_catalogues_or_those_of_the_slot(gpu: str, rate: float) -> None:
    found = node_of(find_device(gpu).id, 4)
    assert found is not None and found.link_bytes_per_s == rate and found.gpus_per_node == NODE


def test_a_link_that_is_given_goes_first() -> None:
    for gpu in ("l40s", "h100-sxm", "m2"):
        found = node_of(find_device(gpu).id, 16, 56e9)
        assert found is not None and found.link_bytes_per_s == 56e9 and found.gpus_per_node == 16


def test_no_link_is_said() -> None:
    with pytest.raises(InputError, match="the links between gaudi-3 are not known in --gpu; got 8 of them"):
        node_of(find_device("gaudi-3").id, 8)


def test_an_unmeasured_device_takes_anothers_shape_and_its_own_rates() -> None:
    tpu, like = serving_curves(find_device("tpu-v5e").id), serving_curves(find_device("a100-80gb-sxm").id)
    assert tpu.extrapolated == "a100-80gb-sxm"
    large = 1e12  # bytes: the start of a kernel is nothing beside it
    ratio = like.device.memory_bytes_per_s / tpu.device.memory_bytes_per_s
    assert tpu.memory_s(large) / like.memory_s(large) == pytest.approx(ratio, rel=1e-3)


def test_a_device_without_measured_collectives_has_some() -> None:
    assert "all_reduce" in serving_curves(find_device("arc-pro-b60").id).file.collectives


def test_what_was_assumed_is_told() -> None:
    assert device_notes(find_device("h100-sxm"), 8) == ()
    assert device_notes(find_device("l40s"), 1) == ()
    assert device_notes(find_device("l40s"), 2) == (
        "links of l40s are taken as PCI Express 4, 32 GB/s each way: with bridges give --link",
    )
    assert device_notes(find_device("l40s"), 2, 56e9) == ()
    assert device_notes(find_device("tpu-v5e"), 1) == (
        "passes over memory and collectives on tpu-v5e are those of a100-80gb-sxm, scaled: no kernel of its own was "
        "measured",
    )


def test_a_measured_device_without_a_sourced_peak_has_that_of_its_curves() -> None:
    assert product_flop_per_s(find_device("rtx-pro-6000-server"), "bf16") == 503.8e12
    assert product_flop_per_s(find_device("rtx-pro-6000-server"), "fp4") == 2015.2e12


def _known(device: object) -> bool:
    """Whether the catalogue has what an answer cannot do without."""
    found = find_device(device.id)  # type: ignore[attr-defined]
    return bool(found.memory_bytes_per_torch_device and found.memory_bytes_per_s_per_torch_device)


@pytest.mark.parametrize("gpu", [each.short_id for each in list_devices() if _known(each)])
def test_every_device_with_memory_and_a_rate_is_answered_for(gpu: str) -> None:
    """Or lacks a peak, and says so."""
    try:
        found = suanli.infer("smollm-135m", gpu=gpu, concurrency=4)
    except InputError as problem:
        assert problem.faults[0].code == "no_peak"
        return
    bound = found.weights.read_per_rank / find_device(gpu).memory_bytes_per_s_per_torch_device
    assert bound <= found.ideal.tpot_s <= found.tpot_s
