"""Cases other counters got wrong, with their right answers: by trace on both devices, and by formula where one can.

Where a case is from stands in its first column: the repository and number of a public report, or the name of a small
case that eleven counters were given (a survey of July 2026; its answers are worked out again here).
"""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import suanli
from suanli.readers.torch_module import trace

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:LSTM with projections")]
BF16, I32 = torch.bfloat16, torch.int32


class Call(nn.Module):
    """A function as a module, with the parts it uses."""

    def __init__(self, function: Callable[..., Any], **parts: Any) -> None:
        super().__init__()
        self.function = function
        for name, part in parts.items():
            setattr(self, name, part)

    def forward(self, *inputs: Any) -> Any:
        return self.function(self, *inputs)


def mixture(self: Any, x: Any) -> Any:
    """Every expert on the rows that chose it."""
    chosen, out = self.router(x).topk(2, -1).indices, torch.zeros_like(x)
    for index, expert in enumerate(self.experts):
        rows = (chosen == index).any(-1).nonzero().squeeze(-1)
        out[rows] += expert(x[rows])
    return out


def expert() -> Any:
    return nn.Sequential(nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 64))


def attend(_: Any, q: Any, k: Any, v: Any) -> Any:
    return F.scaled_dot_product_attention(q, k, v, enable_gqa=True)


def twice(module: Any) -> Any:
    return Call(lambda self, x: self.b(self.a(x)), a=module, b=module)


def zeros(*size: int, dtype: Any = None) -> Any:
    return torch.zeros(*size, dtype=dtype)


@dataclass(frozen=True)
class Case:
    """A case: where it is from, module and inputs, its answer, and the same as a formula (model and its workload)."""

    source: tuple[str, ...]
    build: Callable[[], Any]
    inputs: Callable[[], tuple[Any, ...]]
    answer: int
    formula: tuple[str, dict[str, Any]] | None = None
    train: bool = False
    devices: tuple[str, ...] = ("cpu", "meta")

    @property
    def name(self) -> str:
        return " ".join(self.source)


SAME = lambda *size: lambda: (zeros(*size),) * 3  # noqa: E731
GQA = lambda: (zeros(1, 32, 128, 128), *[zeros(1, 8, 128, 128)] * 2)  # noqa: E731
MHA = lambda *a: lambda: nn.MultiheadAttention(*a, batch_first=True)  # noqa: E731
A, B = (8, 64, 32), (8, 32, 64)
TURNED = ("convtranspose2d(192, 384, 2, stride=2, bias=false) @ 30x96", {"batch": 6})
LINE = ("linear(64, 256)", {"seq": 22528})
ENCODER = ("attention(512, 8) -> linear(512, 2048) -> relu -> linear(2048, 512)", {"seq": 128})
NO_BIAS = "linear(100, 100, bias=false)"
LSTM = ("lstm(12, 128)", {"seq": 250})

SMALL = [
    Case(("sdpa B1 H12 S64 D64",), lambda: Call(attend), SAME(1, 12, 64, 64), 4 * 12 * 64 * 64 * 64),
    Case(("sdpa kwargs (query=,key=,value=)",),
         lambda: Call(lambda _, q, k, v: F.scaled_dot_product_attention(query=q, key=k, value=v)), SAME(1, 12, 64, 64),
         12_582_912),
    Case(("sdpa GQA 32q/8kv S128 D128",), lambda: Call(attend), GQA, 4 * 32 * 128 * 128 * 128),
    Case(("nn.MultiheadAttention(512,4) 580 tok",), MHA(512, 4), SAME(1, 580, 512), 1_905_295_360,
         ("attention(512, 4)", {"seq": 580})),
    Case(("TransformerEncoderLayer(512,8,2048) S128 eval",),
         lambda: nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), lambda: (zeros(1, 128, 512),), 838_860_800,
         ENCODER),
    Case(("Linear(64,256) on [1,22528,64]",), lambda: nn.Linear(64, 256), lambda: (zeros(1, 22528, 64),), 738_197_504,
         LINE),
    Case(("one Linear(100,100,no bias) called 3x",),
         lambda: Call(lambda s, x: s.w(s.w(s.w(x))), w=nn.Linear(100, 100, bias=False)), lambda: (zeros(1, 100),),
         3 * 2 * 100 * 100, (" -> ".join([NO_BIAS] * 3), {"seq": 1})),
    Case(("same Linear at two attribute names, both called",), lambda: twice(nn.Linear(100, 100, bias=False)),
         lambda: (zeros(1, 100),), 2 * 2 * 100 * 100, (" -> ".join([NO_BIAS] * 2), {"seq": 1})),
    Case(("F.linear with raw nn.Parameter 256x256, [4,256]",),
         lambda: Call(lambda s, x: F.linear(x, s.w), w=nn.Parameter(zeros(256, 256))), lambda: (zeros(4, 256),),
         2 * 4 * 256 * 256, ("linear(256, 256, bias=false)", {"seq": 4})),
    Case(("a @ b  [8,64,32]@[8,32,64]",), lambda: Call(lambda _, a, b: a @ b), lambda: (zeros(*A), zeros(*B)),
         2 * 8 * 64 * 32 * 64),
    Case(("torch.bmm same",), lambda: Call(lambda _, a, b: torch.bmm(a, b)), lambda: (zeros(*A), zeros(*B)), 2_097_152),
    Case(("torch.matmul broadcast [64,32]@[8,32,64]",), lambda: Call(lambda _, a, b: torch.matmul(a, b)),
         lambda: (zeros(64, 32), zeros(*B)), 2_097_152),
    Case(("einsum bhid,bhjd->bhij",), lambda: Call(lambda _, a, b: torch.einsum("bhid,bhjd->bhij", a, b)),
         lambda: (zeros(1, 8, 64, 32),) * 2, 2_097_152),
    Case(("ConvTranspose2d(192,384,2,s2) [6,192,30,96]",), lambda: nn.ConvTranspose2d(192, 384, 2, 2),
         lambda: (zeros(6, 192, 30, 96),), 2 * 6 * 30 * 96 * 192 * 384 * 4, TURNED),
    Case(("depthwise Conv2d(64,64,3,g=64) 56x56",), lambda: nn.Conv2d(64, 64, 3, padding=1, groups=64),
         lambda: (zeros(1, 64, 56, 56),), 2 * 64 * 56 * 56 * 9,
         ("conv2d(64, 64, 3, padding=1, groups=64) @ 56x56", {"batch": 1})),
    Case(("Conv2d(3,64,3,pad=1,stride 2,dil 2) 57x33",), lambda: nn.Conv2d(3, 64, 3, padding=1, stride=2, dilation=2),
         lambda: (zeros(1, 3, 57, 33),), 2 * 64 * 28 * 16 * 27,
         ("conv2d(3, 64, 3, padding=1, stride=2, dilation=2) @ 57x33", {"batch": 1})),
    Case(("LSTM(12,128) [1,250,12]",), lambda: nn.LSTM(12, 128, batch_first=True), lambda: (zeros(1, 250, 12),),
         2 * 250 * 512 * (12 + 128), LSTM),
    # first layer 64 + 32 wide, second 2·32 + 32, each of two directions with 512 gates and a projection 128 → 32
    Case(("LSTM(64,128,2,bidir,proj=32) [2,10,64]",),
         lambda: nn.LSTM(64, 128, 2, bidirectional=True, proj_size=32, batch_first=True), lambda: (zeros(2, 10, 64),),
         2 * 20 * 2 * (512 * 96 + 512 * 96 + 2 * 128 * 32),
         ("lstm(64, 128, layers=2, bidirectional, proj=32)", {"batch": 2, "seq": 10})),
    Case(("GRU(64,128,2,bidir) time-major [10,2,64]",), lambda: nn.GRU(64, 128, 2, bidirectional=True),
         lambda: (zeros(10, 2, 64),), 2 * 20 * 2 * 384 * ((64 + 128) + (256 + 128)),
         ("gru(64, 128, layers=2, bidirectional)", {"batch": 2, "seq": 10})),
    Case(("Embedding(50257,768) 128 ids",), lambda: nn.Embedding(50257, 768), lambda: (zeros(128, dtype=torch.int64),),
         0, ("embedding(50257, 768)", {"seq": 128})),
    Case(("grouped_mm 8 experts [256,512]x[8,512,1024] bf16",),
         lambda: Call(lambda _, a, b, o: torch._grouped_mm(a, b, offs=o)),
         lambda: (zeros(256, 512, dtype=BF16), zeros(8, 512, 1024, dtype=BF16), torch.arange(32, 257, 32, dtype=I32)),
         2 * 256 * 512 * 1024),
    # router 64 → 8, then two of eight 64 → 128 → 64; the values route, so it runs where values are
    Case(("MoE loop 8 experts top-2, 32 tokens",),
         lambda: Call(mixture, router=nn.Linear(64, 8), experts=nn.ModuleList(expert() for _ in range(8))),
         lambda: (torch.randn(32, 64),), 32 * (2 * 64 * 8 + 2 * 2 * 2 * 64 * 128), devices=("auto",)),
    Case(("batch 8 of [8,128,256] Linear(256,256)+sdpa 4 heads",),
         lambda: Call(lambda s, x: F.scaled_dot_product_attention(*(s.w(x).view(8, 128, 4, 64).transpose(1, 2),) * 3),
                      w=nn.Linear(256, 256)),
         lambda: (zeros(8, 128, 256),), 8 * (2 * 128 * 256 * 256 + 4 * 4 * 128 * 128 * 64)),
]  # fmt: skip


def heads_shared() -> tuple[Any, ...]:
    return zeros(2, 8, 16, 32), zeros(2, 2, 24, 32), zeros(2, 2, 24, 32)


def asks(*size: int) -> Any:
    return torch.zeros(*size, requires_grad=True)


REPORTS = [
    Case(("pytorch/pytorch", "195460"), lambda: Call(lambda _, q: F.scaled_dot_product_attention(q, q, q)),
         lambda: (zeros(1, 12, 64, 64),), 12_582_912),
    Case(("pytorch/pytorch", "119806"), lambda: nn.ConvTranspose2d(192, 384, 2, stride=2, bias=False),
         lambda: (asks(6, 192, 30, 96),), 3 * 10_192_158_720, train=True),
    Case(("pytorch/pytorch", "134804"), lambda: Call(attend), SAME(2, 5, 9, 4), 4 * 2 * 5 * 9 * 9 * 4),
    Case(("pytorch/pytorch", "126268"), lambda: nn.Linear(64, 256), lambda: (zeros(1, 22528, 64),), 738_197_504, LINE),
    Case(("meta-pytorch/tnt", "624"), lambda: nn.LSTM(12, 128, batch_first=True), lambda: (zeros(1, 250, 12),),
         35_840_000, LSTM),
    # four projections of 448 by 448 and two products of 300 by 300 by 448, however many heads share the 448
    *(Case(("facebookresearch/fvcore", "153"), MHA(448, heads), SAME(1, 300, 448),
           8 * 300 * 448 * 448 + 4 * 300 * 300 * 448, (f"attention(448, {heads})", {"seq": 300})) for heads in (4, 8)),
    Case(("sovrasov/flops-counter.pytorch", "65"), MHA(512, 4), SAME(1, 580, 512), 1_905_295_360,
         ("attention(512, 4)", {"seq": 580})),
    Case(("ultralytics/ultralytics", "PR 25545 (+thop PR 157, allenai/olmoearth_pretrain PR 605)"),
         lambda: nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True), lambda: (zeros(1, 128, 512),), 838_860_800,
         ENCODER),
    Case(("deepspeedai/DeepSpeed", "4723 (thu-ml/RoboticsDiffusionTransformer PR 120)"),
         lambda: Call(lambda _, q: F.scaled_dot_product_attention(query=q, key=q, value=q)),
         lambda: (zeros(1, 12, 64, 64),), 12_582_912),
    Case(("facebookresearch/xformers", "PR 1404"), lambda: Call(attend), heads_shared, 4 * 2 * 8 * 16 * 24 * 32),
    Case(("Dao-AILab/flash-attention", "1525"), lambda: Call(lambda _, q: F.scaled_dot_product_attention(q, q, q)),
         lambda: (asks(1, 8, 256, 64),), 3 * 4 * 8 * 256 * 256 * 64, train=True),
]  # fmt: skip
CASES = [*SMALL, *REPORTS]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_by_trace(case: Case) -> None:
    for device in case.devices:
        torch.manual_seed(7)  # a mixture's first two experts get rows enough to be run one by one
        traced = trace(case.build(), case.inputs(), device=device, train=case.train)
        assert traced.uncounted == ()
        assert traced.model_flops == case.answer, device


WRITTEN = [case for case in CASES if case.formula]


@pytest.mark.parametrize("case", WRITTEN, ids=[case.name for case in WRITTEN])
def test_by_formula(case: Case) -> None:
    assert case.formula is not None
    text, workload = case.formula
    assert suanli.count(text, convention="full", **workload).flops.model == case.answer


# --- reports answered by more than one number of a trace ----------------------------------------------------------


def test_inference_mode() -> None:
    """pytorch 126268: under it operators arrive whole."""
    with torch.inference_mode():
        assert suanli.count(nn.Linear(64, 256), input="1x22528x64").flops.model == 738_197_504


def test_compiled() -> None:
    """pytorch 140909: a compiled module counts the same, and the compiled one is not touched."""
    module = nn.Linear(64, 64, bias=False)
    compiled = torch.compile(module, backend="eager")
    x = zeros(8, 64)
    before = compiled(x)
    assert trace(compiled, (x,)).model_flops == trace(module, (x,)).model_flops == 65_536
    assert torch.equal(compiled(x), before) and compiled._orig_mod is module

    class Inside(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part, self.function = torch.compile(module, backend="eager"), torch.compile(F.relu, backend="eager")

        def forward(self, x: Any) -> Any:
            return self.function(self.part(x))

    rows = trace(Inside(), (x,)).ledger.rows
    assert [(row.path, row.model_flops) for row in rows if row.model_flops] == [("part", 65_536)]


def test_macs_beside_flops() -> None:
    """torchinfo 77, ptflops 40 and 98: both figures stand in every result, two FLOPs a MAC; biases apart."""
    books = suanli.count("linear(64, 256)", seq=22528)
    assert (books.macs, books.flops.model) == (369_098_752, 738_197_504)
    (bias,) = [item.operations for item in books.ledger.uncounted if item.what == "bias additions"]
    assert books.macs + bias == 374_865_920
    conv = suanli.count("conv2d(3, 64, kernel=7, stride=2, padding=3) @ 224x224")
    assert conv.flops.model == 2 * conv.macs == 2 * 64 * 112 * 112 * 3 * 49


def test_a_vision_transformer() -> None:
    """torchinfo 226, transformers 15006: forward, and a step whose picture asks for a gradient too, as 3 × has it."""
    forward = suanli.count("vit-b16", convention="full")
    assert (forward.macs, forward.flops.model) == (17_563_828_224, 35_127_656_448)
    step = suanli.count("vit-b16", convention="megatron-full", phase="train")
    assert step.flops.model == 3 * 35_127_656_448 == 105_382_969_344
    patches = 2 * 196 * 768 * (3 * 16 * 16)  # the picture itself needs no gradient
    assert suanli.count("vit-b16", convention="full", phase="train").flops.model == 105_382_969_344 - patches


def test_one_call_and_one_token() -> None:
    """calflops 64: the user takes the figure of a token for that of a call; both are printed."""
    books = suanli.count("llama-2-7b", seq=128, convention="full")
    assert (books.flops.model, books.flops_per_token, books.units) == (1_700_001_742_848, 13_281_263_616, 128)
    assert books.flops_per_token * 128 == books.flops.model


def test_frozen_linears_are_two_thirds() -> None:
    """Megatron-Bridge 2409: a frozen product has no gradient of its weight, and the first layer's none of its input."""
    frozen = [nn.Linear(256, 256, bias=False).requires_grad_(False) for _ in range(3)]
    one = 2 * 32 * 256 * 256
    asked = trace(nn.Sequential(*frozen), (asks(32, 256),), train=True)
    assert asked.model_flops == 6 * one  # of nine
    step: dict[str, Any] = {"seq": 4096, "phase": "train", "convention": "causal"}
    whole = suanli.count("llama-3-70b", **step)
    lora = suanli.count("llama-3-70b", trainable="lora:r=16,targets=q_proj", **step)
    adapters = 3 * (lora.flops.forward - whole.flops.forward)
    attention = sum(row.model_flops for row in whole.ledger.rows if row.kind == "attention")
    # every product but attention's own loses its weight's gradient; those before the first adapter lose all
    linear = whole.flops.model - attention
    assert lora.flops.model - adapters < attention + 2 * linear / 3
    assert lora.flops.model - adapters > attention + 2 * linear / 3 - linear / 80 / 3


def test_megatron_and_every_pair_side_by_side() -> None:
    """DeepSpeed 2565: two counters in one log. Megatron's formula for a GPT of equal width: 72·B·S·L·h²·(…), S²/2."""
    layers, hidden, vocab, seq = 12, 768, 50257, 1024
    found = suanli.count("gpt2", seq=seq, phase="train", convention="megatron").flops.model
    assert found == 72 * seq * layers * hidden**2 + 6 * layers * seq * seq * hidden + 6 * seq * hidden * vocab
    every = suanli.count("gpt2", seq=seq, phase="train", convention="megatron-full").flops.model
    assert every - found == 6 * layers * seq * seq * hidden


def test_experts_over_eight_ranks() -> None:
    """DeepSpeed 3619: what every rank holds, and eight times its own experts, are the model."""
    books = suanli.count("mixtral-8x7b", seq=128)
    experts = 32 * 8 * 3 * 4096 * 14336
    rows = sum(row.params for row in books.ledger.rows if row.kind == "experts")
    assert rows == experts
    dense, local = books.params.total - experts, experts // 8
    assert dense + 8 * local == books.params.total == 46_702_792_704


def test_active_experts_of_all() -> None:
    """maxtext PR 678: of the linear part, all experts' over the active ones'."""
    books = suanli.count("mixtral-8x7b", seq=128, convention="full")
    linear = sum(row.model_flops for row in books.ledger.rows if row.kind != "attention")
    experts = sum(row.model_flops for row in books.ledger.rows if row.kind == "experts")
    assert (linear + 3 * experts) / linear == pytest.approx(3.65, abs=0.01)


def test_flash_computes_the_scores_again() -> None:
    """flash-attention 1525: two products forward, four back; the kernel takes five."""
    traced = trace(Call(attend), (asks(1, 8, 256, 64),) * 3, train=True, flash=True)
    assert (traced.model_flops, traced.hardware_flops) == (402_653_184, 469_762_048)


STATEMENTS: dict[tuple[str, ...], Callable[[], None]] = {
    ("pytorch/pytorch", "140909 (+128199, 123800)"): test_compiled,
    ("MrYxJ/calculate-flops.pytorch", "64"): test_one_call_and_one_token,
    ("NVIDIA-NeMo/Megatron-Bridge", "2409"): test_frozen_linears_are_two_thirds,
    ("TylerYep/torchinfo", "77"): test_macs_beside_flops,
    ("TylerYep/torchinfo", "226"): test_a_vision_transformer,
    ("sovrasov/flops-counter.pytorch", "40, 98"): test_macs_beside_flops,
    ("deepspeedai/DeepSpeed", "2565"): test_megatron_and_every_pair_side_by_side,
    ("deepspeedai/DeepSpeed", "3619"): test_experts_over_eight_ranks,
    ("huggingface/transformers", "15006"): test_a_vision_transformer,
    ("AI-Hypercomputer/maxtext", "PR 678"): test_active_experts_of_all,
}  # fmt: skip


# --- nothing is left out ------------------------------------------------------------------------------------------


@pytest.mark.shared
def test_every_small_case_of_the_survey_is_here(shared: Path) -> None:
    answers = {case.source[0]: case.answer for case in SMALL}
    with (shared / "cases" / "counters_small_cases.csv").open(encoding="utf-8") as stream:
        rows = list(csv.reader(stream))[1:]
    assert {row[0]: int(row[1]) for row in rows} == answers


@pytest.mark.shared
def test_every_report_is_here(shared: Path) -> None:
    answers = {case.source: case.answer for case in REPORTS}
    with (shared / "cases" / "counting.csv").open(encoding="utf-8") as stream:
        for row in csv.DictReader(stream):
            source, first = (row["repo"], row["issue"]), row["right_answer"].split()[0].strip(";")
            assert source in answers or source in STATEMENTS, source
            if first.isdigit() and source in answers:
                assert answers[source] == int(first), source


def test_the_walk_can_fail(tmp_path: Path) -> None:
    """A row that nobody answers is found."""
    (tmp_path / "cases").mkdir()
    (tmp_path / "cases" / "counting.csv").write_text("repo,issue,right_answer\nnobody/nothing,1,7\n", encoding="utf-8")
    (tmp_path / "cases" / "counters_small_cases.csv").write_text("case,expected\nnew,7\n", encoding="utf-8")
    for walk in (test_every_report_is_here, test_every_small_case_of_the_survey_is_here):
        with pytest.raises(AssertionError):
            walk(tmp_path)
