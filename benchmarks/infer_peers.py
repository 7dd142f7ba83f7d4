"""Answers of another planner for serving points, in its own process: `python infer_peers.py NAME < points.json`.

A point is {model, gpu, tp, dtype, isl, osl, users}; the answer a list of {tpot_s, took_s} or {why} in the same
order, and the time the tool took to come up. The tool is imported from PYTHONPATH.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

warnings.simplefilter("ignore")
HUB = {
    "llama-3.1-8b": "meta-llama/Llama-3.1-8B", "llama-3.1-70b": "meta-llama/Llama-3.1-70B",
    "deepseek-v3": "deepseek-ai/DeepSeek-V3", "gpt-oss-120b": "openai/gpt-oss-120b",
}  # fmt: skip
# dense bf16 TFLOP/s, GB, GB/s, GB/s of links in one direction: data sheets
GENZ_SYSTEMS = {
    "h100-sxm": {"Flops": 989.4, "Memory_size": 80, "Memory_BW": 3350, "ICN": 450, "real_values": True},
    "h200-sxm": {"Flops": 989.4, "Memory_size": 141, "Memory_BW": 4800, "ICN": 450, "real_values": True},
    "b200": {"Flops": 2250, "Memory_size": 180, "Memory_BW": 7700, "ICN": 900, "real_values": True},
}


def genz() -> Callable[[dict[str, Any]], float]:
    """GenZ at efficiency 1: a decode step, and its prefill between steps as everybody counts it."""
    from GenZ import decode_moddeling, prefill_moddeling  # type: ignore[import-not-found]

    def answer(point: dict[str, Any]) -> float:
        same = {
            "model": HUB[point["model"]], "batch_size": point["users"], "Bb": 1, "bits": point["dtype"],
            "system_name": GENZ_SYSTEMS[point["gpu"]], "tensor_parallel": point["tp"],
            "parallelism_heirarchy": f"TP{{{point['tp']}}}_EP{{1}}_PP{{1}}",
        }  # fmt: skip
        decode = decode_moddeling(**same, input_tokens=point["isl"], output_tokens=point["osl"] // 2)["Latency"]
        same = {**{key: value for key, value in same.items() if key != "Bb"}, "batch_size": 1}
        prefill = prefill_moddeling(**same, input_tokens=point["isl"])["Latency"]
        return float(decode + point["users"] / point["osl"] * prefill) / 1e3

    return answer


def aiconfigurator() -> Callable[[dict[str, Any]], float]:
    """aiconfigurator by its tables: one aggregated worker at this batch."""
    from aiconfigurator.cli.api import cli_estimate  # type: ignore[import-not-found]

    systems = {"h100-sxm": "h100_sxm", "h200-sxm": "h200_sxm", "b200": "b200_sxm"}

    def answer(point: dict[str, Any]) -> float:
        found = cli_estimate(
            model_path=HUB[point["model"]].replace("Llama-3.1", "Meta-Llama-3.1"), system_name=systems[point["gpu"]],
            mode="agg", backend_name=point["engine"], isl=point["isl"], osl=point["osl"], batch_size=point["users"],
            ctx_tokens=point["isl"], tp_size=point["tp"],
            gemm_quant_mode={"fp8": "fp8", "bf16": "bfloat16"}[point["dtype"]],
        )  # fmt: skip
        return float(found.tpot) / 1e3

    return answer


TOOLS = {"genz": genz, "aiconfigurator": aiconfigurator}


def main() -> None:
    """Answer every point; nothing but the JSON goes to standard output."""
    points = json.load(sys.stdin)
    noise = io.StringIO()
    with contextlib.redirect_stdout(noise):
        started = time.perf_counter()
        answer = TOOLS[sys.argv[1]]()
        up_s = time.perf_counter() - started
        found = [_timed(answer, point) for point in points]
    print(json.dumps({"up_s": up_s, "answers": found}))


def _timed(answer: Callable[[dict[str, Any]], float], point: dict[str, Any]) -> dict[str, Any]:
    started = time.perf_counter()
    try:
        return {"tpot_s": answer(point), "took_s": time.perf_counter() - started}
    except Exception as problem:  # noqa: BLE001  whatever another tool raises is its answer
        return {"why": f"{type(problem).__name__}: {str(problem)[:120]}"}


if __name__ == "__main__":
    main()
