"""Device curves: laws, arrays, what is scaled from what, messages."""

from __future__ import annotations

import tomllib
from collections.abc import Callable
from dataclasses import replace
from importlib import resources
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suanli.catalog.curves import DeviceCurves, devices_with_curves, find_curves
from suanli.catalog.devices import find_device, list_devices
from suanli.catalog.fabrics import device_fabric, fabric, node_fabric
from suanli.errors import InputError, UnknownNameError
from suanli.nouns.curves import COLLECTIVES, Fabric

H100, A100, B200 = (find_curves(name) for name in ("h100-sxm", "a100-80gb-sxm", "b200"))
HGX = node_fabric("hgx-h100")
EVERY = pytest.mark.parametrize("name", list(devices_with_curves()))
KINDS = pytest.mark.parametrize("kind", COLLECTIVES)
SIZE = st.integers(64, 30_000)

CALLS: list[tuple[str, Callable[..., Any], list[tuple[float, ...]]]] = [
    ("matmul", H100.matmul_s, [(8192, 4096, 4096, 1), (1000, 333, 77, 12), (1, 1, 1, 1), (65536, 8192, 28672, 1)]),
    ("fp8", lambda *a: H100.matmul_s(*a, dtype="fp8"), [(8192, 4096, 4096, 1), (129, 257, 1024, 3)]),
    ("grouped", H100.grouped_matmul_s, [(65536, 8, 28672, 4096), (1000, 256, 2048, 7168)]),
    ("routing", H100.routing_s, [(4096, 8, 4096, 7168, 2048), (1, 1, 1, 128, 128)]),
    ("attention", H100.attention_s, [(1, 32, 8, 8192, 8192, 128, 128), (4, 128, 128, 4096, 4096, 192, 128)]),
    ("memory", H100.memory_s, [(1e9,), (4096.0,), (0.0,)]),
]


@pytest.mark.parametrize(("call", "shapes"), [pytest.param(*rest, id=name) for name, *rest in CALLS])
def test_arrays_give_what_scalars_give(call: Callable[..., Any], shapes: list[tuple[float, ...]]) -> None:
    arrays = [np.array(column, dtype=np.float64) for column in zip(*shapes, strict=True)]
    assert np.allclose(call(*arrays), [call(*shape) for shape in shapes], rtol=1e-12, atol=0)


@KINDS
def test_collectives_take_arrays(kind: str) -> None:
    """Groups inside a node, across nodes, of one rank, and one rank a node, all in one array."""
    sizes, ranks, local = [1e4, 1e8, 1e9, 1e9, 5e6], [8, 64, 1, 16, 4], [8, 8, 1, 1, 2]
    if kind == "p2p":
        ranks, local = [2, 2, 1, 2, 2], [2, 1, 1, 1, 2]
    together = H100.collective_s(kind, *(np.array(each, float) for each in (sizes, ranks)), HGX, np.array(local))
    one_by_one = [H100.collective_s(kind, *each[:2], HGX, each[2]) for each in zip(sizes, ranks, local, strict=True)]
    assert np.allclose(together, one_by_one, rtol=1e-12, atol=0)
    assert together[2] == 0


def test_arrays_broadcast() -> None:
    seconds = H100.matmul_s(np.array([[1024.0], [8192.0]]), np.array([1024.0, 2048.0, 4096.0]), 4096)
    assert seconds.shape == (2, 3)
    assert seconds[1, 2] == pytest.approx(H100.matmul_s(8192, 4096, 4096), rel=1e-12)


# -- laws --------------------------------------------------------------------------------------------------------------


@EVERY
def test_every_device_computes(name: str) -> None:
    """Between the peak and a fiftieth of it for a large product, in every dtype it has."""
    curves = find_curves(name)
    assert "bf16" in curves.matmul_dtypes
    for dtype in curves.matmul_dtypes:
        shape = (16384, 8192, 8192)
        seconds = curves.matmul_s(*shape, dtype=dtype)
        rate = 2 * shape[0] * shape[1] * shape[2] / seconds
        own = curves.file.stands_for.get(dtype, dtype)
        peak = curves._peak(own)
        assert peak is not None
        assert peak / 50 < rate < peak
    assert 0 < curves.launch_s < 1e-4
    assert curves.attention_s(1, 32, 8, 4096, 4096, 128, 128) > 0


@EVERY
@given(SIZE, SIZE, SIZE, st.integers(0, 2), st.integers(1, 20_000))
def test_a_larger_product_is_never_faster(name: str, m: int, n: int, k: int, which: int, more: int) -> None:
    curves, shape = find_curves(name), [m, n, k]
    shape[which] += more
    assert curves.matmul_s(*shape) >= curves.matmul_s(m, n, k) * (1 - 1e-12)


@given(st.integers(1, 64), st.integers(1, 128), st.integers(128, 60_000), st.integers(1, 5000))
def test_longer_attention_is_never_faster(batch: int, heads: int, seq: int, more: int) -> None:
    short, long = (H100.attention_s(batch, heads, 1, s, s, 128, 128) for s in (seq, seq + more))
    assert long >= short * (1 - 1e-12)


@given(st.integers(128, 30_000), st.integers(1, 30_000))
def test_a_window_never_slows_attention(seq: int, window: int) -> None:
    whole, part = (H100.attention_s(1, 16, 4, seq, seq, 128, 128, window=w) for w in (None, window))
    assert part <= whole * (1 + 1e-12)


def test_causal_attention_takes_less_than_all_pairs_and_backward_more_than_forward() -> None:
    shape = (2, 32, 8, 8192, 8192, 128, 128)
    causal, full = (H100.attention_s(*shape, causal=mask) for mask in (True, False))
    assert 1.5 < full / causal <= 2.1
    assert H100.attention_s(*shape, backward=True) == pytest.approx(causal * 2.5 / 0.863)


@KINDS
@given(st.floats(1, 1e10), st.floats(1, 1e10), st.integers(2, 512), st.integers(1, 8))
def test_more_bytes_are_never_faster(kind: str, size: float, more: float, ranks: int, local: int) -> None:
    count = 2 if kind == "p2p" else ranks
    little, much = (H100.collective_s(kind, s, count, HGX, local) for s in (size, size + more))
    assert much >= little * (1 - 1e-12)


@KINDS
@given(st.floats(1, 1e10), st.integers(2, 512), st.integers(1, 8), st.floats(1, 10))
def test_more_bandwidth_is_never_slower(kind: str, size: float, ranks: int, local: int, factor: float) -> None:
    count = 2 if kind == "p2p" else ranks
    assert HGX.nics_bytes_per_s is not None
    for better in (
        replace(HGX, link_bytes_per_s=HGX.link_bytes_per_s * factor),
        replace(HGX, nics_bytes_per_s=HGX.nics_bytes_per_s * factor),
    ):
        slow, fast = (H100.collective_s(kind, size, count, each, local) for each in (HGX, better))
        assert fast <= slow * (1 + 1e-12)


@KINDS
def test_one_rank_takes_no_time(kind: str) -> None:
    assert H100.collective_s(kind, 1e9, 1, HGX) == 0


def test_an_all_reduce_costs_at_least_its_two_halves_bandwidth() -> None:
    """Across nodes it moves twice what an all-gather moves."""
    gather, reduce = (H100.collective_s(kind, 8e9, 64, HGX) for kind in ("all_gather", "all_reduce"))
    assert 1.8 < reduce / gather <= 2.05


def test_a_ring_over_whole_nodes_gets_every_adapter() -> None:
    """16 GiB over 8 nodes of 8: 2·S·63/64 at 0.95·400 GB/s, and little else."""
    size = 2**34
    expected = 2 * size * 63 / 64 / (0.95 * 400e9)
    assert H100.collective_s("all_reduce", size, 64, HGX) == pytest.approx(expected, rel=0.05)


def test_one_rank_a_node_has_an_eighth_of_the_adapters() -> None:
    size = 2**34
    expected = size * 7 / 8 / (0.95 * 400e9 / 8)
    assert H100.collective_s("all_gather", size, 8, HGX, ranks_per_node=1) == pytest.approx(expected, rel=0.01)


def test_the_same_group_is_faster_inside_a_node() -> None:
    for kind in COLLECTIVES:
        count = 2 if kind == "p2p" else 8
        inside, spread = (H100.collective_s(kind, 2**28, count, HGX, local) for local in (8, 1))
        assert inside < spread


def test_switches_add_up_for_large_groups_only() -> None:
    """On 8 H100 445 GB/s of bus bandwidth at 512 MiB, on 4 what a ring reaches: 350."""
    size = 2**29
    bus = {n: 2 * size * (n - 1) / n / H100.collective_s("all_reduce", size, n, HGX) for n in (4, 8)}
    assert bus[8] == pytest.approx(445e9, rel=0.05)
    assert bus[4] == pytest.approx(350e9, rel=0.06)


# -- relatives ---------------------------------------------------------------------------------------------------------


def test_h800_computes_as_h100_and_talks_at_its_own_links() -> None:
    h800 = find_curves("h800-sxm")
    assert (h800.extrapolated, h800.note) == (
        "h100-sxm",
        "the same chip with NVLink cut to 400 GB/s, both directions",
    )
    assert h800.matmul_s(8192, 8192, 8192) == H100.matmul_s(8192, 8192, 8192)
    own = device_fabric(h800.device, gpus_per_node=8, nics_bytes_per_s=400e9)
    assert own.link_bytes_per_s == 200e9
    ratio = h800.collective_s("all_gather", 2**30, 8, own) / H100.collective_s("all_gather", 2**30, 8, HGX)
    assert ratio == pytest.approx(450 / 200, rel=0.02)


def test_every_relative_is_a_device_without_curves_of_its_own() -> None:
    text = resources.files("suanli.catalog").joinpath("curves", "relatives.toml").read_text(encoding="utf-8")
    scaled = {name for name, own in devices_with_curves().items() if not own}
    assert set(tomllib.loads(text)) == scaled


def test_a_relative_is_scaled_by_its_own_peaks() -> None:
    """H100 NVL: 835.5 of 989.4 TFLOP/s on as many multiprocessors; a large product is that much slower."""
    nvl = find_curves("h100-nvl")
    shape = (16384, 16384, 16384)
    assert nvl.matmul_s(*shape) / H100.matmul_s(*shape) == pytest.approx(989.4 / 835.5, rel=0.02)


def test_measured_devices_say_so() -> None:
    measured = {name for name, own in devices_with_curves().items() if own}
    files = {path.name.removesuffix(".toml") for path in resources.files("suanli.catalog").joinpath("curves").iterdir()}
    assert measured == files - {"networks", "relatives"}
    assert len(measured) >= 10
    assert all((find_curves(name).extrapolated is None) == own for name, own in devices_with_curves().items())


def test_curves_name_their_data() -> None:
    file = A100.file
    assert "aiconfigurator @095f58a" in file.data
    assert file.command == "python scripts/fit_curves.py --kernels DIR"
    assert file.matmul["bf16"].fit.n > 500


def test_sustained_lowers_the_rate() -> None:
    slow = A100.at_sustained(0.8)
    shape = (16384, 8192, 8192)
    assert slow.matmul_s(*shape) / A100.matmul_s(*shape) == pytest.approx(1 / 0.8, rel=0.02)
    assert slow.memory_s(1e9) == A100.memory_s(1e9)
    with pytest.raises(InputError, match=r"^not a fraction of a rate; got 1.2; expected above 0 and at most 1\.$"):
        A100.at_sustained(1.2)


# -- messages ----------------------------------------------------------------------------------------------------------


def test_a_device_without_curves_names_the_nearest() -> None:
    with pytest.raises(UnknownNameError) as caught:
        find_curves("tpu-v5p")
    (fault,) = caught.value.faults
    assert fault.message == "no kernel times are known for tpu-v5p"
    assert fault.nearest
    assert fault.hint is not None and fault.hint.startswith("Measure it and run scripts/fit_curves.py")


def test_an_unknown_device_is_not_guessed() -> None:
    with pytest.raises(UnknownNameError, match="unknown device 'h1000'"):
        find_curves("h1000")


def test_every_other_device_is_refused() -> None:
    known = devices_with_curves()
    for device in list_devices():
        if device.id not in known:
            with pytest.raises(UnknownNameError, match="no kernel times are known"):
                find_curves(device)


MESSAGES: list[tuple[Callable[[], Any], str]] = [
    (
        lambda: A100.matmul_s(8, 8, 8, dtype="fp8"),
        r"^a100-80gb-sxm has no curve for dtype of a matrix product 'fp8' in dtype; expected one of bf16, fp16.*",
    ),
    (
        lambda: H100.matmul_s(8, 8, 8, dtype="mxfp8"),
        r"^h100-sxm has no curve for dtype of a matrix product 'mxfp8' in dtype; expected one of bf16, fp8, fp8_block, "
        r"fp16; nearest: fp8.*\.$",
    ),
    (
        lambda: H100.collective_s("allreduce", 1, 8, HGX),
        r"^unknown collective 'allreduce' in kind; expected one of 5 known; nearest: all_reduce.*",
    ),
    (
        lambda: H100.attention_s(1, 1, 1, 8, 8, 64, 64, causal=False, window=4),
        r"^a window without a causal mask has no curve\. Give causal=True, or no window\.$",
    ),
    (
        lambda: H100.collective_s("all_reduce", 1, 0, HGX, ranks_per_node=16),
        r"^a group without ranks in ranks; got 0\.\n"
        r"not a number of ranks in a node of hgx-h100, infiniband in ranks_per_node; got 16; expected 1 to 8\.$",
    ),
    (
        lambda: find_curves("arc-pro-b60").collective_s("all_reduce", 1, 2, HGX),
        r"^arc-pro-b60 has no curve for all_reduce\. No collectives were measured on it\.$",
    ),
    (
        lambda: find_curves("gb200").collective_s("all_reduce", 1, 144, node_fabric("gb200-nvl72")),
        r"^a group leaves its node, and the adapters of gb200-nvl72, infiniband are not known in "
        r"--fabric\. Give the rate of all adapters of a node, one direction, like 8x450GB/s\+400GB/s\.$",
    ),
]


@pytest.mark.parametrize(("call", "message"), MESSAGES)
def test_messages(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()


def test_mxfp8_stands_for_block_scales_on_blackwell() -> None:
    assert B200.matmul_s(8192, 8192, 8192, dtype="mxfp8") == B200.matmul_s(8192, 8192, 8192, dtype="fp8_block")
    assert "mxfp8" in B200.matmul_dtypes


def test_a_node_of_known_size_needs_no_adapters() -> None:
    inside = node_fabric("gb200-nvl72")
    assert find_curves("gb200").collective_s("all_reduce", 2**30, 64, inside) > 0


def test_fp16_computes_as_bf16_on_every_measured_device() -> None:
    for curves in (A100, H100, B200):
        assert curves.matmul_s(4096, 4096, 4096, dtype="fp16") == curves.matmul_s(4096, 4096, 4096)


def test_a_typed_fabric_serves_as_a_catalogued_one() -> None:
    typed: Fabric = fabric(name="mine", gpus_per_node=8, link_bytes_per_s=450e9, nics_bytes_per_s=400e9)
    curves: DeviceCurves = find_curves(find_device("h100-sxm"))
    assert curves.collective_s("all_reduce", 1e9, 64, typed) == curves.collective_s("all_reduce", 1e9, 64, HGX)
