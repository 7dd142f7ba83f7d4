"""Arguments stand where torch's schemas have them, and FLOPs are those of torch's own registry on the same shapes.

Differences from torch's counter, all meant: it charges attention for every pair, a causal mask or not (asked for here
with `full_pairs`); it charges the kernel's gradient of a grouped convolution as if it had no groups. Operators that it
does not register (cudnn_convolution_backward_weight, _int_mm, _grouped_mm) are checked by hand in their own tests.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from torch.utils import flop_counter  # noqa: E402

from suanli.explain.ops import attention, convolutions  # noqa: E402
from suanli.explain.ops.call import Call  # noqa: E402
from suanli.explain.ops.table import RULES, cost_of  # noqa: E402
from suanli.nouns.trace import OpDetail  # noqa: E402
from suanli.readers.traces import read_trace  # noqa: E402

pytestmark = pytest.mark.torch


def schema(name: str) -> list[str] | None:
    """Names of an operator's arguments in this torch; None where it has no such operator."""
    packet = getattr(torch.ops.aten, name.removeprefix("aten::"), None)
    if packet is None:
        return None
    overload = "default" if "default" in packet.overloads() else packet.overloads()[0]
    return [argument.name for argument in getattr(packet, overload)._schema.arguments]


@pytest.mark.parametrize("name", [name for name in convolutions.FORWARD if name.startswith("aten::")])
def test_places_of_convolutions(name: str) -> None:
    arguments, places = schema(name), convolutions.FORWARD[name]
    if arguments is None:
        pytest.skip(f"this torch has no {name}")
    assert arguments[1] == "weight"
    for field in ("stride", "padding", "dilation", "transposed", "groups"):
        at = getattr(places, field)
        assert at < 0 or arguments[at] == field, field


@pytest.mark.parametrize("name", [name for name in attention.FUSED if name.startswith("aten::")])
def test_places_of_attention(name: str) -> None:
    arguments, places = schema(name), attention.FUSED[name]
    if arguments is None:
        pytest.skip(f"this torch has no {name}")
    assert arguments[places.query : places.query + 3] == ["query", "key", "value"]
    assert arguments[places.causal] == ("custom_mask_type" if places.kinds else "is_causal")
    assert places.offsets < 0 or arguments[places.offsets].startswith(("cum_seq_q", "cu_seqlens_q"))
    assert places.window < 0 or arguments[places.window].startswith("window_size")


def test_places_of_the_backward_of_convolutions() -> None:
    arguments = schema("aten::convolution_backward")
    assert arguments is not None
    assert arguments[:3] == ["grad_output", "input", "weight"]
    assert (arguments[7], arguments[10]) == ("transposed", "output_mask")


@pytest.mark.parametrize("name", [name for name in RULES if name.startswith("aten::")])
def test_a_rule_of_aten_is_an_operator_of_some_torch(name: str) -> None:
    """Names that no torch has now are those of older ones, listed here."""
    old = ("backward_input", "backward_weight", "thnn_conv2d", "_padded_dense_to_jagged_forward")
    assert schema(name) is not None or name.endswith(old) or name in ("aten::mkldnn_convolution", "aten::_int_mm")


# --- FLOPs ------------------------------------------------------------------------------------------------------


def by_torch(call: Call) -> int | None:
    """What torch's counter says of the same shapes; None where it has no formula, or a value is missing."""
    name, shapes = call.name.removeprefix("aten::"), call.detail.dims or ()
    if name in ("mm", "bmm", "_scaled_mm"):
        formula = {"mm": flop_counter.mm_flop, "bmm": flop_counter.bmm_flop}.get(name, flop_counter._scaled_mm_flop)
        return int(formula(*((shapes[0], shapes[1]) if name != "_scaled_mm" else (shapes[0], shapes[1], None, None))))
    if name in ("addmm", "baddbmm"):
        return int(getattr(flop_counter, f"{name}_flop")(shapes[0], shapes[1], shapes[2]))
    if name in ("convolution", "_convolution"):
        transposed, out = call.flag(6), convolution_output(call)
        return None if out is None else int(flop_counter.conv_flop_count(shapes[0], shapes[1], out, transposed))
    if name == "convolution_backward":
        return convolution_backward(call)
    return attention_flops(name, shapes)


def attention_flops(name: str, shapes: tuple[Any, ...]) -> int | None:
    if not name.startswith("_scaled_dot_product"):
        return None
    if name.endswith("_backward"):
        return int(flop_counter.sdpa_backward_flop_count(*shapes[:4]))
    return int(flop_counter.sdpa_flop_count(*shapes[:3]))


def convolution_output(call: Call) -> tuple[int, ...] | None:
    """The shape torch itself gives, on the meta device."""
    dims, stride = call.detail.dims or (), call.wholes(3)
    if stride is None:
        return None
    x, weight = (torch.empty(shape, device="meta") for shape in dims[:2])
    out = torch.ops.aten.convolution(
        x, weight, None, stride, call.wholes(4), call.wholes(5), call.flag(6), call.wholes(7), call.whole(8)
    )
    return tuple(out.shape)


def convolution_backward(call: Call) -> int | None:
    dims, mask = call.detail.dims or (), call.flags(10)
    if mask is None:
        return None
    grad, x, weight = dims[:3]
    given = [x if mask[0] else None, weight if mask[1] else None, None]
    formula = flop_counter.conv_backward_flop
    return int(
        formula(grad, x, weight, None, None, None, None, call.flag(7), None, call.whole(9), list(mask), out_val=given)
    )


def same(call: Call) -> bool:
    """Whether both counters had something to say; they must say the same."""
    expected, ours = by_torch(call), cost_of(call)
    if expected is None or ours is None or ours.flops is None:
        return False
    assert ours.flops == expected, (call.name, call.detail.dims, call.detail.concrete)
    return True


SAMPLES = ("tl_h100_bert_small", "tl_h100_qwen05b", "tl_mi300_ddp_resnet18", "tl_mi300_resnet_actckpt",
           "tl_mi300_xdit_sd35", "tl_mi300_compile_triton", "tl_sglang_prefilldecode", "hta_diff_control_a100",
           "hta_diff_test_v100", "hta_sampled_rank0", "hta_mi250_rocm62_toy", "tl_vllm_decode_graph")  # fmt: skip
KINDS = {
    "tl_h100_bert_small": {"addmm", "_scaled_dot_product_flash_attention"},
    "tl_h100_qwen05b": {"mm", "addmm", "bmm", "_scaled_dot_product_flash_attention"},
    "tl_mi300_ddp_resnet18": {"convolution", "_convolution", "convolution_backward", "mm", "addmm"},
    "tl_mi300_resnet_actckpt": {"convolution", "convolution_backward", "mm", "addmm"},
    "tl_mi300_xdit_sd35": {"mm", "addmm", "bmm", "convolution", "_scaled_dot_product_flash_attention"},
    "hta_diff_control_a100": {"mm", "addmm", "bmm"},
}


@pytest.mark.shared
@pytest.mark.parametrize("sample", SAMPLES)
def test_every_operator_of_a_sample_counts_as_torch_does(shared: Path, sample: str) -> None:
    trace = read_trace(shared / "traces" / "files" / f"{sample}.json.gz")
    pairs = set(zip(trace.host.name.tolist(), trace.host.detail.tolist(), strict=True))
    calls = [Call(trace.names[n], trace.details[d], full_pairs=True) for n, d in pairs if d >= 0]
    compared = {call.name.removeprefix("aten::") for call in calls if same(call)}
    assert compared >= KINDS.get(sample, {"mm"})


SIZES = st.integers(1, 5)


@given(SIZES, SIZES, SIZES, SIZES, st.integers(1, 3), st.integers(0, 2), st.integers(1, 2), st.booleans())
@settings(max_examples=60, deadline=None)
def test_any_convolution(
    batch: int, half_in: int, half_out: int, kernel: int, stride: int, padding: int, groups: int, transposed: bool
) -> None:
    inputs, outputs, size = 2 * half_in, 2 * half_out, 9
    weight = (inputs, outputs // groups, kernel, kernel) if transposed else (outputs, inputs // groups, kernel, kernel)
    if transposed and (size - 1) * stride - 2 * padding + kernel <= 0:
        return
    values = ("", "", "", f"[{stride}, {stride}]", f"[{padding}, {padding}]", "[1, 1]", str(transposed), "[0, 0]",
              str(groups))  # fmt: skip
    call = Call("aten::convolution", OpDetail(dims=((batch, inputs, size, size), weight), concrete=values))
    assert same(call)
    out = convolution_output(call)
    if groups > 1:
        return
    back = ("", "", "", "[0]", *values[3:], "[True, True, False]")
    assert same(Call("aten::convolution_backward", OpDetail(dims=(out, *(call.detail.dims or ())), concrete=back)))


def test_torch_forgets_the_groups_in_the_kernels_gradient() -> None:
    """Depthwise, 2 channels, 9·9 positions, a window of 1: a gradient is 2·81·2; torch takes the second twice."""
    values = ("", "", "", "[0]", "[1, 1]", "[0, 0]", "[1, 1]", "False", "[0, 0]", "2", "[True, True, False]")
    dims = ((1, 2, 9, 9), (1, 2, 9, 9), (2, 1, 1, 1))
    call = Call("aten::convolution_backward", OpDetail(dims=dims, concrete=values))
    ours = cost_of(call)
    assert ours is not None
    assert ours.flops == 2 * (2 * 81 * 2)
    assert by_torch(call) == 3 * (2 * 81 * 2)


@given(SIZES, SIZES, SIZES, SIZES, SIZES, SIZES, st.integers(1, 3))
def test_any_attention(
    batch: int, kv_heads: int, queries: int, keys: int, width: int, v_width: int, group: int
) -> None:
    heads = kv_heads * group
    q, k, v = (batch, heads, queries, width), (batch, kv_heads, keys, width), (batch, kv_heads, keys, v_width)
    for kind in ("flash", "efficient", "cudnn"):
        name = f"aten::_scaled_dot_product_{kind}_attention"
        assert same(Call(name, OpDetail(dims=(q, k, v)), full_pairs=True))
        grad = (batch, heads, queries, v_width)
        assert same(Call(f"{name}_backward", OpDetail(dims=(grad, q, k, v)), full_pairs=True))
