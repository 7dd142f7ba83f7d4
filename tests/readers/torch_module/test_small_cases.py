"""Small modules and operators with known answers, the same on the CPU, on meta, with gradients and without.

Answers are worked out by hand beside each; the public reports they come from are named where there is one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from suanli.readers.torch_module import Traced, trace

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:LSTM with projections")]

Function = Callable[..., Any]


class Call(nn.Module):
    """A function as a module, with the parts it uses."""

    def __init__(self, function: Function, **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


def attend(**options: Any) -> Call:
    return Call(lambda _, q, k, v: F.scaled_dot_product_attention(q, k, v, **options))


def twice(module: nn.Module) -> Call:
    return Call(lambda self, x: self.b(self.a(x)), a=module, b=module)


def zeros(*size: int, dtype: Any = None) -> Any:
    return torch.zeros(*size, dtype=dtype)


Q = lambda: (zeros(1, 12, 64, 64),) * 3  # noqa: E731
RAW = nn.Parameter(torch.zeros(256, 256))
MHA = lambda *a: nn.MultiheadAttention(*a, batch_first=True)  # noqa: E731
A, B = (8, 64, 32), (8, 32, 64)
ENCODER = lambda: nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True)  # noqa: E731

# name, module, inputs, FLOPs of the forward
CASES: list[tuple[str, Function, Function, int]] = [
    ("pytorch 195460: attention on the CPU", attend, Q, 12_582_912),
    ("attention by keywords (DeepSpeed 4723)",
     lambda: Call(lambda _, q: F.scaled_dot_product_attention(query=q, key=q, value=q)), lambda: Q()[:1], 12_582_912),
    ("grouped queries (pytorch 177188)", lambda: attend(enable_gqa=True),
     lambda: (zeros(1, 32, 128, 128), zeros(1, 8, 128, 128), zeros(1, 8, 128, 128)), 268_435_456),
    ("pytorch 134804", attend, lambda: (zeros(2, 5, 9, 4),) * 3, 12_960),
    ("attention with a mask", lambda: Call(lambda _, q, m: F.scaled_dot_product_attention(q, q, q, m)),
     lambda: (zeros(1, 12, 64, 64), zeros(64, 64)), 12_582_912),
    ("causal attention, every pair", lambda: attend(is_causal=True), Q, 12_582_912),
    ("cross-attention, values narrower", attend,
     lambda: (zeros(2, 3, 5, 16), zeros(2, 3, 7, 16), zeros(2, 3, 7, 8)), 2 * 2 * 3 * 5 * 7 * (16 + 8)),
    ("attention without heads", attend, lambda: (zeros(4, 6, 8), zeros(4, 9, 8), zeros(4, 9, 8)), 4 * 4 * 6 * 9 * 8),
    ("MultiheadAttention(512, 4), 580 tokens", lambda: MHA(512, 4), lambda: (zeros(1, 580, 512),) * 3, 1_905_295_360),
    ("fvcore 153, 4 heads", lambda: MHA(448, 4), lambda: (zeros(1, 300, 448),) * 3, 642_969_600),
    ("fvcore 153, 8 heads", lambda: MHA(448, 8), lambda: (zeros(1, 300, 448),) * 3, 642_969_600),
    ("thop 197", lambda: MHA(100, 1), lambda: (zeros(1, 1000, 100),) * 3, 480_000_000),
    ("encoder layer (ultralytics 25545)", ENCODER, lambda: (zeros(1, 128, 512),), 838_860_800),
    ("torchinfo 77", lambda: nn.Linear(64, 256), lambda: (zeros(1, 22528, 64),), 738_197_504),
    ("one Linear called three times", lambda: Call(lambda s, x: s.w(s.w(s.w(x))), w=nn.Linear(100, 100, bias=False)),
     lambda: (zeros(1, 100),), 60_000),
    ("the same Linear at two names", lambda: twice(nn.Linear(100, 100, bias=False)), lambda: (zeros(1, 100),), 40_000),
    ("F.linear with a raw parameter", lambda: Call(lambda s, x: F.linear(x, s.w), w=RAW),
     lambda: (zeros(4, 256),), 524_288),
    ("a @ b", lambda: Call(lambda _, a, b: a @ b), lambda: (zeros(*A), zeros(*B)), 2_097_152),
    ("bmm", lambda: Call(lambda _, a, b: torch.bmm(a, b)), lambda: (zeros(*A), zeros(*B)), 2_097_152),
    ("baddbmm", lambda: Call(lambda _, a, b: torch.baddbmm(zeros(8, 64, 64), a, b) if a.device.type == "cpu"
     else torch.baddbmm(a.new_zeros(8, 64, 64), a, b)), lambda: (zeros(*A), zeros(*B)), 2_097_152),
    ("matmul that broadcasts", lambda: Call(lambda _, a, b: a @ b), lambda: (zeros(64, 32), zeros(*B)), 2_097_152),
    ("einsum", lambda: Call(lambda _, a, b: torch.einsum("bhid,bhjd->bhij", a, b)),
     lambda: (zeros(1, 8, 64, 32), zeros(1, 8, 64, 32)), 2_097_152),
    ("tensordot", lambda: Call(lambda _, a, b: torch.tensordot(a, b, 2)),
     lambda: (zeros(5, 3, 4), zeros(3, 4, 7)), 2 * 5 * 12 * 7),
    ("mv", lambda: Call(lambda _, a, b: torch.mv(a, b)), lambda: (zeros(5, 7), zeros(7)), 70),
    ("addmv", lambda: Call(lambda _, c, a, b: torch.addmv(c, a, b)),
     lambda: (zeros(5), zeros(5, 7), zeros(7)), 70),
    ("dot", lambda: Call(lambda _, a, b: torch.dot(a, b)), lambda: (zeros(7), zeros(7)), 14),
    ("addbmm", lambda: Call(lambda _, c, a, b: torch.addbmm(c, a, b)),
     lambda: (zeros(64, 64), zeros(*A), zeros(*B)), 2_097_152),
    # x₁W for every output, then its product with x₂: 2·B·out·(in₁·in₂ + in₂)
    ("Bilinear(5, 6, 7)", lambda: nn.Bilinear(5, 6, 7), lambda: (zeros(3, 5), zeros(3, 6)), 2 * 3 * 7 * (5 * 6 + 6)),
    ("complex product", lambda: Call(lambda _, a, b: a @ b),
     lambda: (zeros(4, 5, dtype=torch.complex64), zeros(5, 6, dtype=torch.complex64)), 8 * 4 * 5 * 6),
    ("int8 product", lambda: Call(lambda _, a, b: torch._int_mm(a, b)),
     lambda: (zeros(32, 64, dtype=torch.int8), zeros(64, 16, dtype=torch.int8)), 2 * 32 * 64 * 16),
    ("grouped product, 8 experts",
     lambda: Call(lambda _, a, b, o: torch._grouped_mm(a, b, offs=o)),
     lambda: (zeros(256, 512, dtype=torch.bfloat16), zeros(8, 512, 1024, dtype=torch.bfloat16),
              torch.arange(32, 257, 32, dtype=torch.int32)), 268_435_456),
    ("Fourier transform of 1024 points, 3 of them", lambda: Call(lambda _, x: torch.fft.fft(x)),
     lambda: (zeros(3, 1024, dtype=torch.complex64),), 3 * 5 * 1024 * 10),
    ("real Fourier transform", lambda: Call(lambda _, x: torch.fft.rfft(x)), lambda: (zeros(3, 1024),),
     3 * 5 * 1024 * 10 // 2),
    ("its inverse", lambda: Call(lambda _, x: torch.fft.irfft(x)),
     lambda: (zeros(3, 513, dtype=torch.complex64),), 3 * 5 * 1024 * 10 // 2),
    ("distances", lambda: Call(lambda _, a, b: torch.cdist(a, b)), lambda: (zeros(2, 5, 3), zeros(2, 7, 3)),
     2 * 2 * 5 * 7 * 3),
    ("sparse by dense", lambda: Call(lambda _, a: torch.sparse.mm(
        torch.eye(6, device="cpu").to_sparse(), torch.zeros(6, 5))), lambda: (zeros(1),), 2 * 6 * 5),
    ("thop 20: transposed convolution", lambda: nn.ConvTranspose2d(192, 384, 2, 2, bias=False),
     lambda: (zeros(6, 192, 30, 96),), 10_192_158_720),
    ("depthwise convolution", lambda: nn.Conv2d(64, 64, 3, padding=1, groups=64, bias=False),
     lambda: (zeros(1, 64, 56, 56),), 3_612_672),
    ("strided, dilated convolution", lambda: nn.Conv2d(3, 64, 3, padding=1, stride=2, dilation=2),
     lambda: (zeros(1, 3, 57, 33),), 1_548_288),
    ("convolution of one sample", lambda: nn.Conv1d(3, 8, 3), lambda: (zeros(3, 12),), 2 * 8 * 10 * 3 * 3),
    ("tnt 624", lambda: nn.LSTM(12, 128, batch_first=True), lambda: (zeros(1, 250, 12),), 35_840_000),
    ("fvcore 98", lambda: nn.LSTM(10, 20), lambda: (zeros(5, 3, 10),), 72_000),
    ("LSTM with projection", lambda: nn.LSTM(64, 128, 2, bidirectional=True, proj_size=32, batch_first=True),
     lambda: (zeros(2, 10, 64),), 8_519_680),
    ("GRU, time first", lambda: nn.GRU(64, 128, 2, bidirectional=True), lambda: (zeros(10, 2, 64),), 17_694_720),
    ("plain RNN", lambda: nn.RNN(5, 7), lambda: (zeros(4, 2, 5),), 2 * 8 * 7 * (5 + 7)),
    ("LSTM cell", lambda: nn.LSTMCell(5, 7), lambda: (zeros(3, 5),), 2 * 3 * 4 * 7 * (5 + 7)),
    ("GRU cell", lambda: nn.GRUCell(5, 7), lambda: (zeros(3, 5),), 2 * 3 * 3 * 7 * (5 + 7)),
    ("embedding: a gather", lambda: nn.Embedding(50257, 768), lambda: (zeros(128, dtype=torch.int64),), 0),
    ("batch of 8: Linear and attention", lambda: Call(lambda s, x: F.scaled_dot_product_attention(
        *(s.w(x).view(8, 128, 4, 64).transpose(1, 2),) * 3), w=nn.Linear(256, 256)),
     lambda: (zeros(8, 128, 256),), 268_435_456),
]  # fmt: skip
ONLY_CPU = {"sparse by dense"}
ELEMENTWISE_BACK = {"embedding: a gather", "dot"}
NAMES = [case[0] for case in CASES]


def forward_flops(traced: Traced) -> int:
    assert traced.uncounted == (), "an operator has no formula"
    return traced.ledger.flops("forward")


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(("name", "build", "inputs", "expected"), CASES, ids=NAMES)
def test_forward(name: str, build: Function, inputs: Function, expected: int, device: str) -> None:
    if device == "meta" and name in ONLY_CPU:
        pytest.skip("needs values")
    assert forward_flops(trace(build(), inputs(), device=device)) == expected


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(("name", "build", "inputs", "expected"), CASES, ids=NAMES)
def test_forward_of_a_training_step(name: str, build: Function, inputs: Function, expected: int, device: str) -> None:
    """The same forward where gradients are wanted: other kernels, one answer; and backward is the same on both."""
    made = tuple(x.requires_grad_() if x.is_floating_point() or x.is_complex() else x for x in inputs())
    if name in ONLY_CPU | {"int8 product"}:
        pytest.skip("has no gradient or needs values")
    traced = trace(build(), made, train=True, device=device)
    assert forward_flops(traced) == expected
    if name not in ELEMENTWISE_BACK:
        assert traced.model_flops > expected


BACKENDS = ["MATH", "FLASH_ATTENTION", "EFFICIENT_ATTENTION"]


@pytest.mark.parametrize("backend", BACKENDS[:2])
@pytest.mark.parametrize("train", [False, True])
def test_one_answer_for_every_attention_backend(backend: str, train: bool) -> None:
    from torch.nn.attention import SDPBackend, sdpa_kernel

    def run(_: Any, q: Any) -> Any:
        with sdpa_kernel(getattr(SDPBackend, backend)):
            return F.scaled_dot_product_attention(q, q, q)

    traced = trace(Call(run), (torch.zeros(1, 8, 256, 64, requires_grad=True),), train=train, device="cpu")
    assert traced.model_flops == (402_653_184 if train else 134_217_728)  # Dao-AILab/flash-attention 1525
    assert traced.hardware_flops == traced.model_flops


def test_a_fused_backward_computes_the_scores_again() -> None:
    """Dao-AILab/flash-attention 1525: 2 products forward, 4 back; the kernel takes 5."""
    q = torch.zeros(1, 8, 256, 64, requires_grad=True)
    traced = trace(attend(), (q, q, q), train=True, flash=True)
    assert (traced.model_flops, traced.hardware_flops) == (402_653_184, 469_762_048)


def test_inference_mode_outside_changes_nothing() -> None:
    with torch.inference_mode():  # pytorch 126268
        assert forward_flops(trace(nn.Linear(64, 256), (zeros(1, 22528, 64),))) == 738_197_504


def test_a_causal_mask_that_is_known_is_charged_under_causal_only() -> None:
    traced = trace(attend(is_causal=True), Q())
    pairs = 64 * 65 // 2
    assert traced.ledger_under("mask", "causal").model_flops == 4 * 12 * pairs * 64
    assert traced.ledger_under("full", "full").model_flops == 4 * 12 * 64 * 64 * 64


def test_a_packed_sequence_is_charged_for_its_own_positions() -> None:
    sequences = [torch.zeros(n, 5) for n in (4, 2, 1)]
    packed = torch.nn.utils.rnn.pack_sequence(sequences)
    for device in ("cpu", "meta"):
        traced = trace(nn.LSTM(5, 7), (packed,), device=device)
        assert traced.model_flops == 2 * 7 * 4 * 7 * (5 + 7), device


def test_a_mixture_that_loops_over_experts_is_traced_on_the_cpu() -> None:
    """Router 64 → 8; 8 experts 64 → 128 → 64, two a token: 32·2·64·8 + 32·2·2·(2·64·128) = 2,129,920."""

    def route(self: Any, x: Any) -> Any:
        chosen, out = self.router(x).topk(2, -1).indices, torch.zeros_like(x)
        for index, expert in enumerate(self.experts):
            rows = (chosen == index).any(-1).nonzero().squeeze(-1)
            out[rows] += expert(x[rows])
        return out

    torch.manual_seed(7)  # the first two experts get six rows each, the others not
    experts = nn.ModuleList(nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64)) for _ in range(8))
    traced = trace(Call(route, router=nn.Linear(64, 8), experts=experts), (torch.randn(32, 64),))
    assert traced.model_flops == 2_129_920
    assert any("CPU" in note for note in traced.notes)


def test_flex_attention_is_charged_for_the_blocks_its_mask_keeps() -> None:
    """Causal over 256 positions in blocks of 128: three of four blocks."""
    flex = pytest.importorskip("torch.nn.attention.flex_attention")
    mask = flex.create_block_mask(lambda b, h, q, k: q >= k, None, None, 256, 256, device="cpu")
    module = Call(lambda _, q: flex.flex_attention(q, q, q, block_mask=mask))
    traced = trace(module, (zeros(1, 2, 256, 16),))
    every = 4 * 2 * 256 * 256 * 16
    assert traced.ledger_under("full", "full").model_flops == every
    assert traced.ledger_under("mask", "causal").model_flops == every * 3 // 4
    assert not flex._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG


def test_triangular_systems() -> None:
    """Three systems of 5 unknowns for 4 sides: 5²·4 each."""
    solve = Call(lambda _, a, b: torch.linalg.solve_triangular(a, b, upper=False))
    assert forward_flops(trace(solve, (zeros(3, 5, 5), zeros(3, 5, 4)))) == 3 * 25 * 4
