"""One counter of FLOPs on one model, alone in its process: `python benchmarks/peers.py NAME [--calls N]`.

The model is Llama-2-7B on torch's meta device (no weights), batch 1, sequence 2,048, inference. One JSON document goes
to stdout: what the counter reported, its seconds and its peak memory; `count.py` runs these and lays them side by side.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import resource
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

MODEL, SEQ = "llama-2-7b", 2048
SIZES = {  # config.json of meta-llama/Llama-2-7b-hf
    "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 32, "max_position_embeddings": 4096,
}  # fmt: skip
MEMORY_LIMIT_BYTES = 8 * 2**30  # of address space: a counter that would hold the weights (27 GB) fails, not the machine
NOT_INSTALLED = "not installed"


@dataclass(frozen=True)
class Prepared:
    """Imports done and the model built: only the count is left to do."""

    count: Callable[[], int]
    params: int


@dataclass(frozen=True)
class Peer:
    """A counter: how it is prepared, the packages it needs (its own first), and the unit of what it reports."""

    prepare: Callable[[], Prepared]
    packages: tuple[str, ...]
    unit: str = "FLOPs"


def llama_on_meta() -> tuple[Any, dict[str, Any], int]:
    """Model, inputs and parameters.

    The mask is 4-D: from a 2-D mask transformers builds one by reading a value, which the meta device has not.
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    with torch.device("meta"):
        model = LlamaForCausalLM(LlamaConfig(**SIZES, use_cache=False)).eval()
        inputs = {
            "input_ids": torch.zeros(1, SEQ, dtype=torch.long),
            "attention_mask": torch.zeros(1, 1, SEQ, SEQ),
        }
    return model, inputs, sum(parameter.numel() for parameter in model.parameters())


def suanli() -> Prepared:
    """Suanli's own count, every pair of positions charged, as the others do; the model is its preset."""
    import suanli
    from suanli.readers.model import read_model

    arch = read_model(MODEL)
    return Prepared(lambda: suanli.count(arch, seq=SEQ, convention="full").flops.model, arch.params_total)


def flop_counter_mode() -> Prepared:
    """torch.utils.flop_counter: a dispatch mode around the forward pass."""
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    model, inputs, params = llama_on_meta()

    def count() -> int:
        with FlopCounterMode(display=False) as counter, torch.no_grad():
            model(**inputs)
        return counter.get_total_flops()

    return Prepared(count, params)


def calflops() -> Prepared:
    """calflops: patched functionals and hooks; gives FLOPs and MACs, of which FLOPs are taken."""
    from calflops import calculate_flops

    model, inputs, params = llama_on_meta()
    quiet = {"print_results": False, "print_detailed": False, "output_as_string": False}
    return Prepared(lambda: calculate_flops(model=model, kwargs=dict(inputs), **quiet)[0], params)


def ptflops(backend: str) -> Prepared:
    """ptflops: patched functionals ("pytorch") or a dispatch mode ("aten"). Its failures come back as None."""
    from ptflops import get_model_complexity_info

    model, inputs, params = llama_on_meta()
    quiet = {"print_per_layer_stat": False, "as_strings": False, "verbose": False}

    def count() -> int:
        macs, _ = get_model_complexity_info(
            model, (SEQ,), input_constructor=lambda _: dict(inputs), backend=backend, **quiet
        )
        if macs is None:
            raise RuntimeError("ptflops returned None; its reason is printed above")
        return macs

    return Prepared(count, params)


def fvcore() -> Prepared:
    """fvcore: walks the graph of a JIT trace, which takes positional tensors and returns tensors."""
    import torch
    from fvcore.nn import FlopCountAnalysis

    model, inputs, params = llama_on_meta()

    class Logits(torch.nn.Module):
        """The model as a function of two tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, input_ids: Any, attention_mask: Any) -> Any:
            return self.model(input_ids=input_ids, attention_mask=attention_mask).logits

    tensors = (inputs["input_ids"], inputs["attention_mask"])
    return Prepared(lambda: int(FlopCountAnalysis(Logits(), tensors).total()), params)


TORCH = ("torch", "transformers")
PEERS = {
    "suanli": Peer(suanli, ("suanli",)),
    "FlopCounterMode": Peer(flop_counter_mode, TORCH),
    "calflops": Peer(calflops, ("calflops", *TORCH)),
    "ptflops-pytorch": Peer(lambda: ptflops("pytorch"), ("ptflops", *TORCH), "MACs"),
    "ptflops-aten": Peer(lambda: ptflops("aten"), ("ptflops", *TORCH), "MACs"),
    "fvcore": Peer(fvcore, ("fvcore", *TORCH), "MACs"),
}


def peak_rss_bytes() -> int:
    """Most memory this process has held: Linux's own figure first, as getrusage's may be the parent's, before exec."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def timed(count: Callable[[], int]) -> tuple[float, int]:
    """Seconds and result of one call."""
    start = time.perf_counter()
    result = count()
    return time.perf_counter() - start, result


def installed_version(package: str) -> str | None:
    """The version its metadata tells; else the module's own, where it is on the path but not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return getattr(sys.modules.get(package), "__version__", None)


def run(peer: Peer, calls: int) -> dict[str, Any]:
    """Prepare, count once in the fresh process, then `calls` times more, whose time is told apart."""
    if missing := [package for package in peer.packages if find_spec(package) is None]:
        return {"status": f"{NOT_INSTALLED}: {', '.join(missing)}"}
    prepared = peer.prepare()
    first, reported = timed(prepared.count)
    peak = peak_rss_bytes()
    again = [timed(prepared.count)[0] for _ in range(calls)]
    return {
        "status": "ok",
        "version": installed_version(peer.packages[0]),
        "params": prepared.params,
        "reported": reported,
        "unit": peer.unit,
        "flops": reported * 2 if peer.unit == "MACs" else reported,
        "first_call_s": first,
        "warm_call_s": statistics.median(again) if again else None,
        "warm_calls_s": sum(again),
        "peak_rss_bytes": peak,
    }


def main() -> None:
    """Run one counter within the memory limit; what it prints goes to stderr."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("name", choices=PEERS, metavar="NAME", help=", ".join(PEERS))
    parser.add_argument("--calls", type=int, default=3, metavar="N", help="further counts, timed warm (default 3)")
    given = parser.parse_args()
    if sys.platform == "linux":
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT_BYTES, MEMORY_LIMIT_BYTES))
    with contextlib.redirect_stdout(sys.stderr):
        figures = run(PEERS[given.name], given.calls)
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
