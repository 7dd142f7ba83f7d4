"""Every operator that multiplies: the same right number on the CPU and on meta, forward and backward.

Where a kernel exists for one kind of device only, that is said in the last column.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.readers.torch_module import Traced, trace
from suanli.readers.torch_module.operators import COSTS

torch = pytest.importorskip("torch")
nn, F, ATEN = torch.nn, torch.nn.functional, torch.ops.aten
pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:.*Sparse.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.ao.quantization.*:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*quantized tensor creation.*:UserWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.chain_matmul.*:UserWarning"),
]
BF16, FP16, FP8, C64, I8, I32 = (
    torch.bfloat16, torch.float16, torch.float8_e4m3fn, torch.complex64, torch.int8, torch.int32,
)  # fmt: skip


class Call(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def zeros(*size: int, dtype: Any = None) -> Any:
    return torch.zeros(*size, dtype=dtype)


def several(count: int, *size: int, dtype: Any = None) -> Any:
    return lambda: tuple(zeros(*size, dtype=dtype) for _ in range(count))


def mask_of(*wanted: bool) -> Callable[..., Any]:
    """Gradients of a convolution of 8 channels in 4 groups, 3×3, with an output mask."""
    one = [1, 1]
    return lambda g, x, w: ATEN.convolution_backward(g, x, w, [8], one, one, one, False, [0, 0], 4, list(wanted))


Q, HALF = several(3, 2, 4, 64, 32), several(3, 2, 4, 64, 32, dtype=FP16)
LINED = several(3, 2, 64, 4, 32, dtype=FP16)  # [B, T, H, d]
ATTEND = 4 * 2 * 4 * 64 * 64 * 32
CONV_BACK = lambda: (zeros(2, 8, 6, 6), zeros(2, 4, 6, 6), zeros(8, 1, 3, 3))  # noqa: E731
CONV_ONE = 2 * 2 * 36 * 8 * 1 * 9  # one gradient: as much as the forward
OFFSETS = torch.tensor([0, 16, 64], dtype=I32)
STACK = lambda: (zeros(4, 3, 5), zeros(28, 5), zeros(28, 7), zeros(28), zeros(28), zeros(1, 3, 7), zeros(1, 3, 7))  # noqa: E731
STEPS = 2 * 12 * 28 * (5 + 7)  # 12 positions, 4·7 gates
EYE = torch.eye(6)
LAYER = lambda: (zeros(2, 5, 16), zeros(48, 16), zeros(48), zeros(16, 16), zeros(16), zeros(32, 16), zeros(32),  # noqa: E731
                 zeros(16, 32), zeros(16), zeros(16))  # fmt: skip
ENDS = lambda *at: torch.tensor(at, dtype=I32)  # noqa: E731
SPARSE = "values"  # only stored elements are multiplied, and how many there are is a value

# name, function, inputs, forward FLOPs, backward FLOPs (None: torch has no gradient), where it can run
Row = tuple[str, Callable[..., Any], Callable[[], Any], int, int | None, str]
PRODUCTS: list[Row] = [
    ("mm", torch.mm, lambda: (zeros(3, 4), zeros(4, 5)), 2 * 60, 4 * 60, ""),
    ("mm into a given result", lambda a, b: torch.mm(a, b, out=a.new_zeros(3, 5)),
     lambda: (zeros(3, 4), zeros(4, 5)), 2 * 60, None, ""),
    ("addmm", torch.addmm, lambda: (zeros(5), zeros(3, 4), zeros(4, 5)), 2 * 60, 4 * 60, ""),
    ("addmm in place", lambda c, a, b: c.clone().addmm_(a, b), lambda: (zeros(3, 5), zeros(3, 4), zeros(4, 5)),
     2 * 60, 4 * 60, ""),
    ("bmm", torch.bmm, lambda: (zeros(2, 3, 4), zeros(2, 4, 5)), 4 * 60, 8 * 60, ""),
    ("baddbmm", torch.baddbmm, lambda: (zeros(2, 3, 5), zeros(2, 3, 4), zeros(2, 4, 5)), 4 * 60, 8 * 60, ""),
    ("baddbmm in place", lambda c, a, b: c.clone().baddbmm_(a, b),
     lambda: (zeros(2, 3, 5), zeros(2, 3, 4), zeros(2, 4, 5)), 4 * 60, 8 * 60, ""),
    ("addbmm", torch.addbmm, lambda: (zeros(3, 5), zeros(2, 3, 4), zeros(2, 4, 5)), 4 * 60, 8 * 60, ""),
    ("matmul, both sides broadcast", torch.matmul, lambda: (zeros(2, 1, 3, 4), zeros(5, 4, 6)), 2 * 10 * 72,
     4 * 10 * 72, ""),
    ("mv", torch.mv, lambda: (zeros(3, 4), zeros(4)), 24, 24, ""),  # the matrix's gradient is an outer product
    ("addmv", torch.addmv, lambda: (zeros(3), zeros(3, 4), zeros(4)), 24, 24, ""),
    ("addmv in place", lambda c, a, b: c.clone().addmv_(a, b), lambda: (zeros(3), zeros(3, 4), zeros(4)), 24, 24, ""),
    ("dot", torch.dot, several(2, 7), 14, 0, ""),  # back: a number by a vector
    ("vdot, complex", torch.vdot, several(2, 7, dtype=C64), 8 * 7, 0, ""),
    ("addr, rank one", torch.addr, lambda: (zeros(3, 4), zeros(3), zeros(4)), 24, 48, ""),  # back: two by mv
    # nothing is added up: elementwise, as torch runs it
    ("outer", torch.outer, lambda: (zeros(3), zeros(4)), 0, 0, ""),
    ("inner", torch.inner, lambda: (zeros(3, 5), zeros(4, 5)), 120, 240, ""),
    ("tensordot", lambda a, b: torch.tensordot(a, b, 1), lambda: (zeros(2, 3), zeros(3, 4)), 48, 96, ""),
    # in the cheaper order: (3·5·7 + 3·7·2) by 2
    ("chain of three", lambda a, b, c: torch.linalg.multi_dot([a, b, c]),
     lambda: (zeros(3, 5), zeros(5, 7), zeros(7, 2)), 2 * (5 * 7 * 2 + 3 * 5 * 2), 4 * (5 * 7 * 2 + 3 * 5 * 2), ""),
    # W·x₁ for each of 7 outputs, then by x₂
    ("bilinear", F.bilinear, lambda: (zeros(3, 5), zeros(3, 6), zeros(7, 5, 6)), 2 * 3 * 7 * (5 * 6 + 6),
     0, "skip-backward"),
    ("einsum of two", lambda a, b: torch.einsum("bhid,bhjd->bhij", a, b), several(2, 2, 3, 4, 5), 2 * 6 * 80,
     4 * 6 * 80, ""),
    ("einsum of three", lambda a, b, c: torch.einsum("ij,jk,kl->il", a, b, c),
     lambda: (zeros(2, 3), zeros(3, 4), zeros(4, 5)), 2 * (24 + 40), 4 * (24 + 40), ""),
    ("complex mm", torch.mm, lambda: (zeros(3, 4, dtype=C64), zeros(4, 5, dtype=C64)), 8 * 60, 16 * 60, ""),
    ("complex bmm", torch.bmm, lambda: (zeros(2, 3, 4, dtype=C64), zeros(2, 4, 5, dtype=C64)), 16 * 60, 32 * 60, ""),
    ("complex mv", torch.mv, lambda: (zeros(3, 4, dtype=C64), zeros(4, dtype=C64)), 8 * 12, 8 * 12, ""),
    ("complex linear", F.linear, lambda: (zeros(3, 4, dtype=C64), zeros(5, 4, dtype=C64)), 8 * 60, 16 * 60, ""),
    ("int8", torch._int_mm, lambda: (zeros(32, 64, dtype=I8), zeros(64, 16, dtype=I8)), 2 * 32 * 64 * 16, None, ""),
    ("8-bit weights", ATEN._weight_int8pack_mm,
     lambda: (zeros(4, 32, dtype=BF16), zeros(64, 32, dtype=I8), zeros(64, dtype=BF16)), 2 * 4 * 32 * 64, None, ""),
    ("fp8, scaled", lambda a, b, s: torch._scaled_mm(a, b.t(), s, s, out_dtype=BF16),
     lambda: (zeros(16, 32).to(FP8), zeros(48, 32).to(FP8), torch.ones(())), 2 * 16 * 32 * 48, None, ""),
    ("grouped rows", lambda a, b, o: F.grouped_mm(a, b, offs=o),
     lambda: (zeros(64, 32, dtype=BF16), zeros(4, 32, 16, dtype=BF16), ENDS(16, 32, 48, 64)), 2 * 64 * 32 * 16,
     4 * 64 * 32 * 16, ""),
    ("grouped columns", lambda a, b, o: torch._grouped_mm(a, b, offs=o),
     lambda: (zeros(16, 64, dtype=BF16), zeros(64, 32, dtype=BF16), ENDS(16, 32, 48, 64)), 2 * 16 * 64 * 32,
     4 * 16 * 64 * 32, ""),
    ("grouped, equal", torch._grouped_mm, lambda: (zeros(4, 16, 64, dtype=BF16), zeros(4, 64, 32, dtype=BF16)),
     2 * 4 * 16 * 64 * 32, 4 * 4 * 16 * 64 * 32, ""),
    ("grouped fp8, scaled",
     lambda a, b, sa, sb, o: torch._scaled_grouped_mm(a, b.transpose(-2, -1), sa, sb, offs=o, out_dtype=BF16),
     lambda: (zeros(64, 32).to(FP8), zeros(4, 48, 32).to(FP8), torch.ones(64), torch.ones(4, 48), ENDS(16, 32, 48, 64)),
     2 * 64 * 32 * 48, None, "meta"),
]  # fmt: skip
ATTENTION: list[Row] = [
    ("attention", F.scaled_dot_product_attention, Q, ATTEND, 2 * ATTEND, ""),
    ("flash for the CPU", ATEN._scaled_dot_product_flash_attention_for_cpu, Q, ATTEND, 2 * ATTEND, ""),
    ("math", ATEN._scaled_dot_product_attention_math, Q, ATTEND, 2 * ATTEND, ""),
    ("math for mps", ATEN._scaled_dot_product_attention_math_for_mps, Q, ATTEND, None, "meta"),
    ("flash", ATEN._scaled_dot_product_flash_attention, HALF, ATTEND, 2 * ATTEND, "meta"),
    ("flash, causal", lambda *x: ATEN._scaled_dot_product_flash_attention(*x, 0.0, True), HALF, ATTEND, 2 * ATTEND,
     "meta"),
    ("memory-efficient", lambda *x: ATEN._scaled_dot_product_efficient_attention(*x, None, True), HALF, ATTEND,
     2 * ATTEND, "meta"),
    ("cuDNN", lambda *x: ATEN._scaled_dot_product_cudnn_attention(*x, None, True), HALF, ATTEND, 2 * ATTEND, "meta"),
    ("overrideable", ATEN._scaled_dot_product_fused_attention_overrideable, HALF, ATTEND, 2 * ATTEND,
     "meta"),
    ("flash, [B, T, H, d]",
     lambda q, k, v: ATEN._flash_attention_forward(q, k, v, None, None, 64, 64, 0.0, True, False),
     LINED, ATTEND, 2 * ATTEND, "meta"),
    ("efficient, [B, T, H, d]",
     lambda q, k, v: ATEN._efficient_attention_forward(q, k, v, None, None, None, None, None, 0.0, 0), LINED, ATTEND,
     2 * ATTEND, "meta"),
    # sequences of 16 and 48
    ("flash, packed", lambda q, k, v, at: ATEN._flash_attention_forward(q, k, v, at, at, 48, 48, 0.0, False, False),
     lambda: (*several(3, 64, 4, 32, dtype=FP16)(), OFFSETS), 4 * (16**2 + 48**2) * 4 * 32,
     8 * (16**2 + 48**2) * 4 * 32, "meta"),
    ("multi-head attention in one",
     lambda x, w, b, ow, ob: ATEN._native_multi_head_attention(x, x, x, 16, 4, w, b, ow, ob),
     lambda: LAYER()[:5], 8 * 10 * 16 * 16 + 4 * 10 * 5 * 16, None, ""),
    ("encoder layer in one", lambda x, w, b, ow, ob, f1, g1, f2, g2, n: ATEN._transformer_encoder_layer_fwd(
        x, 16, 4, w, b, ow, ob, False, False, 1e-5, n, n, n, n, f1, g1, f2, g2), LAYER,
     8 * 10 * 16 * 16 + 4 * 10 * 5 * 16 + 4 * 10 * 16 * 32, None, ""),
]  # fmt: skip
CONVOLUTIONS: list[Row] = [
    ("gradients of input and kernel", mask_of(True, True, False), CONV_BACK, 2 * CONV_ONE, None, ""),
    ("gradient of the kernel", mask_of(False, True, True), CONV_BACK, CONV_ONE, None, ""),
    ("gradient of the bias: a sum", mask_of(False, False, True), CONV_BACK, 0, None, ""),
    ("transposed, groups", lambda x, w: F.conv_transpose1d(x, w, groups=2), lambda: (zeros(1, 4, 5), zeros(4, 3, 3)),
     2 * 5 * 4 * 3 * 3, 4 * 5 * 4 * 3 * 3, ""),
    ("time first", torch.conv_tbc, lambda: (zeros(9, 2, 3), zeros(3, 3, 4), zeros(4)), 2 * 7 * 2 * 4 * 9,
     4 * 7 * 2 * 4 * 9, ""),
    # torch makes three real convolutions of a complex one
    ("complex", F.conv2d, lambda: (zeros(1, 2, 5, 5, dtype=C64), zeros(3, 2, 3, 3, dtype=C64)), 3 * 2 * 9 * 3 * 18,
     6 * 2 * 9 * 3 * 18, ""),
]  # fmt: skip
RECURRENT: list[Row] = [
    ("mkldnn layer", lambda x, a, b, c, d, h, s: ATEN.mkldnn_rnn_layer(
        x, a, b, c, d, h, s, False, [], 2, 7, 1, True, False, False, False), STACK, STEPS, None, ""),
    ("cuDNN stack", lambda x, a, b, c, d, h, s: ATEN._cudnn_rnn(
        x, [a, b, c, d], 4, None, h, s, 2, 7, 0, 1, False, 0.0, False, False, [], None), STACK, STEPS, None, "meta"),
    ("MIOpen stack", lambda x, a, b, c, d, h, s: ATEN.miopen_rnn(
        x, [a, b, c, d], 4, h, s, 2, 7, 1, False, 0.0, False, False, [], None), STACK, STEPS, None, "meta"),
    ("torch's own stack", lambda x, a, b, c, d, h, s: torch._VF.lstm(
        x, [h, s], [a, b, c, d], True, 1, 0.0, False, False, False), STACK, STEPS, 2 * STEPS, ""),
    ("a cell", lambda x, a, b, c, d, h, s: torch.lstm_cell(x[0], (h[0], s[0]), a, b, c, d), STACK, 2 * 3 * 28 * 12,
     4 * 3 * 28 * 12, ""),
]  # fmt: skip
OTHERS: list[Row] = [
    ("fft of two axes", torch.fft.fft2, several(1, 3, 8, 8, dtype=C64), 3 * 5 * 64 * 6, 3 * 5 * 64 * 6, ""),
    ("real fft of all axes", torch.fft.rfftn, several(1, 4, 8, 8), 5 * 256 * 8 // 2, 0, "skip-backward"),
    ("short-time fft", lambda x: torch.stft(x, 16, return_complex=True, window=torch.ones(16, device=x.device)),
     several(1, 2, 100), 2 * 26 * 5 * 16 * 4 // 2, 0, "skip-backward"),
    ("distances", torch.cdist, lambda: (zeros(2, 5, 3), zeros(2, 7, 3)), 2 * 2 * 35 * 3, 4 * 2 * 35 * 3, ""),
    # more than 25 rows: by a product of augmented matrices, or in one kernel, the same count
    ("many distances", torch.cdist, lambda: (zeros(2, 50, 3), zeros(2, 70, 3)), 2 * 2 * 3500 * 3, 4 * 2 * 3500 * 3, ""),
    ("distances within a set", torch.pdist, several(1, 5, 3), 2 * 10 * 3, 2 * 10 * 3, ""),
    ("power of a matrix", lambda a: torch.linalg.matrix_power(a, 5), several(1, 4, 4), 3 * 128, 6 * 128, ""),
]  # fmt: skip
SPARSE_ROWS: list[Row] = [
    ("sparse by dense", lambda b: torch.sparse.mm(EYE.to_sparse(), b), several(1, 6, 5), 2 * 6 * 5, 2 * 6 * 5, SPARSE),
    ("compressed by dense", lambda b: EYE.to_sparse_csr() @ b, several(1, 6, 5), 2 * 6 * 5, 2 * 6 * 5, SPARSE),
    ("compressed by a vector", lambda b: EYE.to_sparse_csr() @ b, several(1, 6), 2 * 6, 2 * 6, SPARSE),
    ("blocks by dense", lambda b: EYE.to_sparse_bsr((2, 2)) @ b, several(1, 6, 4), 2 * 12 * 4, None, SPARSE),
    ("dense by sparse", lambda b: b @ EYE.to_sparse(), several(1, 5, 6), 2 * 6 * 5, 2 * 6 * 5, SPARSE),
    ("a stack of sparse ones", lambda b: torch.bmm(EYE.repeat(2, 1, 1).to_sparse(), b), several(1, 2, 6, 5),
     2 * 12 * 5, 2 * 12 * 5, SPARSE),
    ("sparse and added", lambda c, b: torch.sparse.addmm(c, EYE.to_sparse(), b), several(2, 6, 5), 2 * 6 * 5, 2 * 6 * 5,
     SPARSE),
    ("sampled", lambda a, b: torch.sparse.sampled_addmm(EYE.to_sparse_csr(), a, b), lambda: (zeros(6, 5), zeros(5, 6)),
     2 * 6 * 5, 4 * 6 * 5, SPARSE),
    # column k of the first meets row k of the second: 1 of a diagonal, 6 where all is stored
    ("sparse by sparse", lambda _: torch.sparse.mm(EYE.to_sparse(), EYE.to_sparse()), several(1, 1), 2 * 6, None,
     SPARSE),
    ("sparse by a full one", lambda _: torch.sparse.mm(EYE.to_sparse(), torch.ones(6, 6).to_sparse()), several(1, 1),
     2 * 36, None, SPARSE),
]  # fmt: skip
ROWS = [*PRODUCTS, *ATTENTION, *CONVOLUTIONS, *RECURRENT, *OTHERS, *SPARSE_ROWS]


def flops(row: Row, device: str, train: bool) -> Traced:
    """The trace of a row, every input that can have a gradient asking for one."""
    inputs = row[2]()
    if train:
        inputs = tuple(
            x.requires_grad_() if (x.is_floating_point() and x.dtype != FP8) or x.is_complex() else x for x in inputs
        )
    found = trace(Call(row[1]), inputs, device=device, train=train)
    assert found.uncounted == ()
    return found


def devices(where: str) -> list[str]:
    return {"": ["cpu", "meta"], "skip-backward": ["cpu", "meta"], SPARSE: ["cpu"]}.get(where, ["meta"])


@pytest.mark.parametrize("row", ROWS, ids=[row[0] for row in ROWS])
def test_forward(row: Row) -> None:
    for device in devices(row[5]):
        assert flops(row, device, False).model_flops == row[3], device


BACK = [row for row in ROWS if row[4] is not None and row[5] != "skip-backward"]


@pytest.mark.parametrize("row", BACK, ids=[row[0] for row in BACK])
def test_backward(row: Row) -> None:
    for device in devices(row[5]):
        ledger = flops(row, device, True).ledger
        assert (ledger.flops("forward"), ledger.flops("backward")) == (row[3], row[4]), device


UNEQUAL = [row for row in ROWS if row[5] == "skip-backward"]


@pytest.mark.parametrize("row", UNEQUAL, ids=[row[0] for row in UNEQUAL])
def test_backward_is_the_same_on_both_devices(row: Row) -> None:
    """Where torch's gradient is made of more steps than a line can tell."""
    found = [flops(row, device, True).ledger.flops("backward") for device in ("cpu", "meta")]
    assert found[0] == found[1] >= row[3]


def test_sparse_products_are_traced_without_being_told() -> None:
    """On meta nobody knows how many elements are stored; the module's own adjacency is used on the CPU instead."""

    class Graph(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("adjacency", torch.eye(6).to_sparse())
            self.up = nn.Linear(5, 7, bias=False)

        def forward(self, x: Any) -> Any:
            return torch.sparse.mm(self.adjacency, self.up(x))

    traced = trace(Graph(), torch.zeros(6, 5), train=True)
    forward = 2 * 6 * 5 * 7 + 2 * 6 * 7
    assert traced.ledger.flops("forward") == forward
    assert traced.ledger.flops("backward") == forward  # the input needs no gradient
    assert any("CPU" in note for note in traced.notes)
    given = trace(Call(torch.sparse.mm), (torch.eye(6).to_sparse(), torch.zeros(6, 5)))
    assert given.model_flops == 2 * 6 * 5


# --- quantised, packed, nested ------------------------------------------------------------------------------------


def dynamic(*layers: Any) -> Any:
    return torch.ao.quantization.quantize_dynamic(nn.Sequential(*layers), {type(layer) for layer in layers})


QUANTISED = [
    ("linear", lambda: dynamic(nn.Linear(5, 7)), (3, 5), 2 * 3 * 5 * 7),
    ("lstm", lambda: dynamic(nn.LSTM(5, 7)), (4, 2, 5), 2 * 8 * 28 * (5 + 7)),
    ("lstm of two layers, both ways", lambda: dynamic(nn.LSTM(5, 7, 2, bidirectional=True)), (4, 2, 5),
     2 * 8 * 2 * 28 * ((5 + 7) + (14 + 7))),
    ("gru", lambda: dynamic(nn.GRU(5, 7)), (4, 2, 5), 2 * 8 * 21 * (5 + 7)),
    ("lstm cell", lambda: dynamic(nn.LSTMCell(5, 7)), (3, 5), 2 * 3 * 28 * (5 + 7)),
    ("gru cell", lambda: dynamic(nn.GRUCell(5, 7)), (3, 5), 2 * 3 * 21 * (5 + 7)),
    ("rnn cell", lambda: dynamic(nn.RNNCell(5, 7)), (3, 5), 2 * 3 * 7 * (5 + 7)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "build", "size", "expected"), QUANTISED, ids=[row[0] for row in QUANTISED])
def test_dynamically_quantised(name: str, build: Any, size: tuple[int, ...], expected: int) -> None:
    traced = trace(build(), torch.zeros(size))
    assert (traced.model_flops, traced.uncounted) == (expected, ())


def test_packed_sequences_of_a_graphics_card() -> None:
    """torch's own function for it, which has no kernel here: on meta the offsets given are remembered."""
    varlen = pytest.importorskip("torch.nn.attention.varlen")
    q = torch.zeros(64, 4, 32, dtype=FP16, requires_grad=True)
    module = Call(lambda q, at: varlen.varlen_attn(q, q, q, at, at, 40, 40))
    traced = trace(module, (q, torch.tensor([0, 10, 50, 64], dtype=I32)), device="meta", train=True)
    once = 4 * (10**2 + 40**2 + 14**2) * 4 * 32
    assert (traced.ledger.flops("forward"), traced.ledger.flops("backward")) == (once, 2 * once)
    assert traced.uncounted == ()


def test_packed_sequences_of_unknown_lengths_are_as_long_as_can_be() -> None:
    """64 positions in three sequences of at most 40: 40 and 24 have the most pairs."""
    varlen = pytest.importorskip("torch.nn.attention.varlen")
    module = Call(lambda q, at: varlen.varlen_attn(q, q, q, at + 0, at + 0, 40, 40))
    inputs = torch.zeros(64, 4, 32, dtype=FP16), torch.tensor([0, 10, 50, 64], dtype=I32)
    assert trace(module, inputs, device="meta").model_flops == 4 * (40**2 + 24**2) * 4 * 32


def test_nested_tensors_are_named_where_their_products_are_not_known() -> None:
    """Jagged ones are made of plain parts and are counted; the older kind has no one shape."""
    parts = [torch.zeros(3, 4), torch.zeros(5, 4)]
    jagged = torch.nested.nested_tensor(parts, layout=torch.jagged)
    assert trace(Call(F.linear), (jagged, torch.zeros(6, 4))).model_flops == 2 * 8 * 4 * 6
    with pytest.warns(UserWarning, match="nested tensors"):
        older = torch.nested.nested_tensor(parts)
    traced = trace(Call(F.linear), (older, torch.zeros(6, 4)))
    assert traced.lower_bound and any("nested" in missing.what for missing in traced.uncounted)


# --- what has no formula ------------------------------------------------------------------------------------------

SOLVERS: list[tuple[str, Callable[..., Any]]] = [
    ("aten._linalg_svd.default", torch.linalg.svd), ("aten._linalg_eigh.default", torch.linalg.eigh),
    ("aten.linalg_eig.default", torch.linalg.eig), ("aten.linalg_qr.default", torch.linalg.qr),
    ("aten.linalg_cholesky_ex.default", torch.linalg.cholesky), ("aten.linalg_inv_ex.default", torch.linalg.inv),
    ("aten._linalg_det.default", torch.linalg.det), ("aten._linalg_slogdet.default", torch.linalg.slogdet),
    ("aten.linalg_lu_factor_ex.default", torch.linalg.lu_factor),
    ("aten._linalg_solve_ex.default", lambda a: torch.linalg.solve(a, a)),
    ("aten.linalg_matrix_exp.default", torch.linalg.matrix_exp),
    ("aten.linalg_pinv.atol_rtol_tensor", torch.linalg.pinv),
]  # fmt: skip


@pytest.mark.parametrize(("name", "solve"), SOLVERS, ids=[name for name, _ in SOLVERS])
def test_solvers_are_listed_with_shapes_and_calls(name: str, solve: Callable[..., Any]) -> None:
    """How many steps they take is the library's affair: no formula, so a lower bound, never a silent zero."""

    def run(a: Any) -> Any:
        solve(a)
        return solve(a @ a)

    for device in ("cpu", "meta"):
        traced = trace(Call(run), torch.eye(4), device=device)
        (missing,) = traced.uncounted
        assert (missing.what, missing.operations, missing.missing) == (name, 2, True)
        assert missing.shapes[0].startswith("4×4")
        assert traced.lower_bound and traced.model_flops == 2 * 64


def test_the_table_of_formulas_knows_its_operators() -> None:
    """A misspelt name would never be met: each of torch's own is one that torch has."""
    names = [name.partition("::")[2] for name in COSTS if name.startswith("aten::")]
    assert [name for name in names if not hasattr(ATEN, name)] == []
