"""A trace of our own making: three training steps of one linear layer on an H100, one rank of eight.

Each step: a batch comes late and is copied, one product forward, an activation, the weight's gradient backward, its
all-reduce half beside an activation's backward, the optimizer, and a synchronisation that reads the loss.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

TOKENS, WIDTH, OUT = 8192, 4096, 11008
STEP_US = 4000.0
EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "step.json"
H = "c10::BFloat16"
GEMM = "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x256x64_warpgroupsize2x1x1_execute_segment_k_off_kernel"
GELU = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl, std::array<char*, 2ul>>(int)"
GELU_BACK = "void at::native::vectorized_elementwise_kernel<4, at::native::GeluBackwardCUDAKernelImpl>(int)"
ADAM = "void at::native::multi_tensor_apply_kernel<at::native::FusedAdamMathFunctor<c10::BFloat16, 4>>(int)"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
COPY = "Memcpy HtoD (Pageable -> Device)"


class Maker:
    """Collects events; every launch gets a correlation of its own."""

    def __init__(self, slower: float = 1.0) -> None:
        self.events: list[dict[str, Any]] = []
        self.correlation = 0
        self.slower = slower

    def span(self, cat: str, name: str, ts: float, dur: float, tid: int = 1, **args: Any) -> None:
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": 100, "tid": tid, "ts": ts, "dur": dur, "args": args}
        )

    def launch(self, name: str, at: float, start: float, dur: float, **more: Any) -> None:
        """A launch of the host at `at`, and its work on the device."""
        self.correlation += 1
        cat, stream, tid = more.pop("cat", "kernel"), more.pop("stream", 7), more.pop("tid", 1)
        api = "cudaMemcpyAsync" if cat == "gpu_memcpy" else "cudaLaunchKernel"
        self.span("cuda_runtime", api, at, 6, tid, correlation=self.correlation)
        self.events.append(
            {"ph": "X", "cat": cat, "name": name, "pid": 0, "tid": stream, "ts": start, "dur": dur,
             "args": {"device": 0, "stream": stream, "correlation": self.correlation, **more}}
        )  # fmt: skip

    def op(self, name: str, ts: float, dur: float, dims: list[Any], tid: int = 1, **more: Any) -> None:
        types = [H if each else "" for each in dims]
        self.span("cpu_op", name, ts, dur, tid, **{"Input Dims": dims, "Input type": types, **more})

    def step(self, number: int, t: float) -> None:
        """One step that begins at `t` on the host."""
        x, w, y = [TOKENS, WIDTH], [WIDTH, OUT], [TOKENS, OUT]
        self.span("user_annotation", f"ProfilerStep#{number}", t, STEP_US - 20)
        self.span("user_annotation", "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", t + 5, 300)
        self.launch(COPY, t + 310, t + 320, 160, cat="gpu_memcpy", bytes=2 * TOKENS * WIDTH)
        self.op("aten::linear", t + 330, 40, [x, [OUT, WIDTH], [OUT]])
        self.op("aten::addmm", t + 335, 30, [[OUT], x, w, [], []])
        gemm = 1150 * self.slower
        self.launch(GEMM, t + 340, t + 480, gemm, grid=[132, 1, 1], block=[384, 1, 1])
        self.op("aten::gelu", t + 380, 20, [y, []])
        self.launch(GELU, t + 385, t + 480 + gemm, 130, grid=[1024, 1, 1], block=[128, 1, 1])
        back = t + 610 + gemm
        self.backward(back, x, y)
        self.launch(NCCL, t + 700, back + 1050, 520, stream=20, tid=2, **{
            "Collective name": "allreduce", "In msg nelems": WIDTH * OUT, "Out msg nelems": WIDTH * OUT,
            "Group size": 8, "dtype": "BFloat16", "Process Group Name": "0", "Process Group Description": "default_pg",
            "Process Group Ranks": list(range(8)),
        })  # fmt: skip
        self.span("cpu_op", "Optimizer.step#AdamW.step", t + 800, 60)
        self.op("aten::_fused_adamw_", t + 805, 40, [[[OUT, WIDTH]], [[OUT, WIDTH]], [[OUT, WIDTH]], [[OUT, WIDTH]]])
        self.launch(ADAM, t + 810, back + 1595, 150, grid=[2048, 1, 1], block=[512, 1, 1])
        self.span("cuda_runtime", "cudaStreamSynchronize", t + 870, back + 1760 - t - 870, correlation=0)

    def backward(self, back: float, x: list[int], y: list[int]) -> None:
        """The engine's thread: the activation's gradient, then the weight's."""
        at = back - 1300
        for name, inner in (("GeluBackward0", "aten::gelu_backward"), ("AddmmBackward0", "aten::mm")):
            node = f"autograd::engine::evaluate_function: {name}"
            self.op(node, at, 60, [y], 2, **{"Fwd thread id": 1, "Sequence number": 1})
            self.op(name, at + 2, 55, [y], 2, **{"Fwd thread id": 1, "Sequence number": 1})
            if inner == "aten::mm":
                self.op(inner, at + 5, 40, [[OUT, TOKENS], x], 2)
                self.launch(GEMM, at + 10, back + 210, 1100 * self.slower, tid=2, grid=[132, 1, 1], block=[384, 1, 1])
            else:
                self.op(inner, at + 5, 40, [y, y, []], 2)
                self.launch(GELU_BACK, at + 10, back, 200, tid=2, grid=[1024, 1, 1], block=[128, 1, 1])
            at += 70


def training_trace(steps: int = 3, slower: float = 1.0) -> dict[str, Any]:
    """The document. `slower` stretches the products."""
    maker = Maker(slower)
    for number in range(steps):
        maker.step(number + 5, 1000.0 + STEP_US * number)
    return {
        "schemaVersion": 1,
        "deviceProperties": [
            {"id": 0, "name": "NVIDIA H100 80GB HBM3", "totalGlobalMem": 85_000_000_000, "numSms": 132}
        ],
        "record_shapes": 1,
        "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8},
        "baseTimeNanoseconds": 0,
        "traceEvents": maker.events,
    }


def as_text(document: dict[str, Any]) -> str:
    """One event a line, as Kineto writes them."""
    head = {key: value for key, value in document.items() if key != "traceEvents"}
    events = ",\n".join(json.dumps(event, separators=(", ", ": ")) for event in document["traceEvents"])
    return json.dumps(head)[:-1] + ', "traceEvents": [\n' + events + "\n]}\n"


if __name__ == "__main__":
    EXAMPLE.write_text(as_text(training_trace()), encoding="utf-8")
