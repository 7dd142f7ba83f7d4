"""Serving: pages of a cache, memory left for it, scales of quantised weights, money and energy of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from suanli.formulas.registry import formula
from suanli.formulas.running import run_cost
from suanli.units import BITS_PER_BYTE, HOUR, MEGA

_BOOKS = "definition"
_VLLM_SPEC = "vLLM v1/kv_cache_interface.py"
_VLLM_GROUPS = "vLLM v1/core/kv_cache_utils.py _get_kv_cache_groups_uniform_page_size"
_MEMORY = {
    "total_bytes": "M: memory of a GPU [B]", "weight_bytes": "W: weights of its rank [B]",
    "activation_bytes": "A: peak of a forward pass, graphs, buffers [B]", "fraction": "f: what the engine is told",
}  # fmt: skip
_PRICE = {
    "tokens_per_s": "r: tokens/s of all its GPUs together", "price": "price of a GPU-hour [USD]",
    "utilisation": "u: part of the paid time at that rate, 0..1", "tokens": "T: tokens",
}  # fmt: skip

# --- pages --------------------------------------------------------------------------------------------------------


@formula(unit="blocks", expression="⌈T/b⌉", source=f"{_VLLM_SPEC} FullAttentionSpec",
         legend={"tokens": "T: positions of a sequence", "block": "b: positions of a block"})  # fmt: skip
def full_blocks(tokens: int, block: int) -> int:
    """Blocks of a sequence whose every position is kept."""
    return -(-tokens // block)


@formula(unit="blocks", expression="⌈min(w − 1 + c, T)/b⌉ + 1", source=f"{_VLLM_SPEC} SlidingWindowSpec",
         legend={"tokens": "T: positions of a sequence", "chunk": "c: tokens of a step, prefill chunks among them",
                 "block": "b: positions of a block"})  # fmt: skip
def window_blocks(tokens: int, window: int, chunk: int, block: int) -> int:
    """Blocks a sequence needs under a sliding window: a window need not start with a block."""
    return -(-min(window - 1 + chunk, tokens) // block) + 1


@formula(unit="positions", expression="⌈s/(a·m)⌉·m", source="vLLM platforms/interface.py: attention pages grow to hold "
         "a state", legend={"state": "s: state of one layer [B]", "token": "a: one position of one layer [B]",
                            "multiple": "m: blocks are a multiple of this"})  # fmt: skip
def state_block(state: int, token: Fraction, multiple: int) -> int:
    """Positions of a block whose page holds a layer's state."""
    return int(-(-state // (token * multiple))) * multiple


@formula(unit="layers", expression="max(n) where max(n) < 1.25·min(n), else min(n)", source=_VLLM_GROUPS,
         legend={"counts": "n: layers of each kind"})  # fmt: skip
def group_layers(counts: Sequence[int]) -> int:
    """Layers that share one table of blocks; every group is padded to as many."""
    low, high = min(counts), max(counts)
    return high if 4 * high < 5 * low else low


@formula(unit="sequences", expression="⌊T_kv/(⌈s/b⌉·b)⌋", source="ai-dynamo/aiconfigurator pull request 652",
         legend={"cache_tokens": "T_kv: positions the cache holds", "length": "s: input and output tokens",
                 "block": "b: positions of a block"})  # fmt: skip
def max_sequences(cache_tokens: int, length: int, block: int) -> int:
    """Sequences a cache of full attention holds at once; those beyond wait."""
    return cache_tokens // (full_blocks(length, block) * block)


@formula(unit="tokens", expression="x·s", source="vllm-project/vllm issue 40691",
         legend={"concurrency": "x: sequences that fit at once", "length": "s: positions of each"})  # fmt: skip
def equivalent_tokens(concurrency: float, length: int) -> float:
    """Positions a shared pool holds, as sequences of one length: what hybrid models can be told by."""
    return concurrency * length


# --- memory -------------------------------------------------------------------------------------------------------


@formula(unit="bytes", expression="f·M − W − A", source="vLLM gpu_memory_utilization", legend=_MEMORY)
def cache_of_total_bytes(total_bytes: float, weight_bytes: float, activation_bytes: float, fraction: float) -> float:
    """Left for the cache where an engine takes a part of all memory."""
    return fraction * total_bytes - weight_bytes - activation_bytes


@formula(unit="bytes", expression="f·(M − W − A)", source="TensorRT-LLM free_gpu_memory_fraction", legend=_MEMORY)
def cache_of_free_bytes(total_bytes: float, weight_bytes: float, activation_bytes: float, fraction: float) -> float:
    """Left for the cache where an engine takes a part of what is free after loading."""
    return fraction * (total_bytes - weight_bytes - activation_bytes)


@formula(unit="bytes", expression="min(f·M, M − A) − W", source="SGLang mem_fraction_static", legend=_MEMORY)
def cache_static_bytes(total_bytes: float, weight_bytes: float, activation_bytes: float, fraction: float) -> float:
    """Left for the cache where weights and cache are a part of memory and activations live in the rest."""
    return min(fraction * total_bytes, total_bytes - activation_bytes) - weight_bytes


@formula(unit="bytes", expression="T·(h + f)·b + B·V·4 + H·T·S·4 (the last where scores are stored)",
         source="llama.cpp: inputs and gates of one layer, fp32 logits, fp32 scores without flash attention",
         legend={"sequences": "B: sequences whose logits are made",
                 "scores_heads": "H: heads, 0 with flash attention"})  # fmt: skip
def compute_buffer_bytes(
    tokens: int, hidden: int, ffn: int, bytes_per_element: int, sequences: int, vocab: int, scores_heads: int, keys: int
) -> int:
    """Buffer of a forward pass over one chunk of tokens."""
    return tokens * (hidden + ffn) * bytes_per_element + 4 * (sequences * vocab + scores_heads * tokens * keys)


# --- quantised weights --------------------------------------------------------------------------------------------


@formula(unit="bytes", expression="⌈I/g⌉·⌈O/p⌉·s + ⌈I/g⌉·⌈O·z/8⌉ + I·x + c",
         source="AutoGPTQ and AutoAWQ checkpoints; DeepSeek-V3 weight_scale_inv; OCP Microscaling Formats 1.0",
         legend={"group_in": "g: inputs that share a scale", "group_out": "p: outputs that share a scale",
                 "scale_bytes": "s: bytes of a scale", "zero_bits": "z: bits of a zero point",
                 "index_bytes": "x: bytes of an input's group index",
                 "tensor_bytes": "c: bytes of the matrix besides"})  # fmt: skip
def scale_bytes(
    in_features: int, out_features: int, group_in: int, group_out: int, scale_bytes: int, zero_bits: int,
    index_bytes: int, tensor_bytes: int,
) -> int:  # fmt: skip
    """What a quantised matrix stores beside its weights."""
    groups = -(-in_features // group_in)
    zeros = groups * -(-out_features * zero_bits // BITS_PER_BYTE)
    scales = groups * -(-out_features // group_out) * scale_bytes
    return scales + zeros + in_features * index_bytes + tensor_bytes


@formula(unit="bytes", expression="I·⌈O·bits/8⌉", source=_BOOKS, legend={"bits": "bits of one weight, on average"})
def packed_bytes(in_features: int, out_features: int, bits: int | Fraction) -> int:
    """A matrix packed into whole bytes, scales apart."""
    return -(-in_features * out_features * bits // BITS_PER_BYTE)


# --- money and energy ---------------------------------------------------------------------------------------------


@formula(unit="GPU-hours", expression="n·T/(3600·r)", source=_BOOKS, legend=_PRICE)
def tokens_gpu_hours(tokens: float, tokens_per_s: float, gpus: int) -> float:
    """GPU time for tokens at a rate, in hours."""
    return gpus * tokens / (HOUR * tokens_per_s)


@formula(unit="USD", expression="1e6·price·n/(3600·r·u)", source=_BOOKS, legend=_PRICE)
def usd_per_million_tokens(price: float, gpus: int, tokens_per_s: float, utilisation: float) -> float:
    """Cost of a million tokens; idle time is paid too."""
    return run_cost(tokens_gpu_hours(MEGA, tokens_per_s, gpus), price, utilisation)


@formula(unit="tokens/s", expression="1e6·price·n/(3600·c)", source=_BOOKS,
         legend={**_PRICE, "usd": "c: cost of a million tokens [USD]"})  # fmt: skip
def tokens_per_s_for_cost(price: float, gpus: int, usd: float) -> float:
    """The rate at which a million tokens cost that much: `usd_per_million_tokens` turned around."""
    return MEGA * price * gpus / (HOUR * usd)


@formula(unit="USD", expression="(c_in·i + c_out·o)/(i + o)", source=_BOOKS,
         legend={"usd_in": "c_in: a million input tokens [USD]", "usd_out": "c_out: a million output tokens [USD]",
                 "isl": "i: input tokens of a request", "osl": "o: output tokens of a request"})  # fmt: skip
def blended_usd(usd_in: float, usd_out: float, isl: int, osl: int) -> float:
    """Cost of a million tokens, input and output together as requests have them."""
    return (usd_in * isl + usd_out * osl) / (isl + osl)


@formula(unit="J", expression="P·n·PUE/r", source="P_total over tokens/s",
         legend={**_PRICE, "watts": "P: power of a GPU with its share of the host [W]",
                 "pue": "PUE: facility over IT power"})  # fmt: skip
def joules_per_token(watts: float, gpus: int, tokens_per_s: float, pue: float) -> float:
    """Energy of a token at a rate."""
    return watts * gpus * pue / tokens_per_s


@formula(unit="J", expression="Σ (P_i + P_{i+1})/2·(t_{i+1} − t_i)", source="trapezoids between readings of power.draw",
         legend={"watts": "P_i: readings [W]", "times": "t_i: when [s]"})  # fmt: skip
def energy_of_readings(watts: Sequence[float], times: Sequence[float]) -> float:
    """Energy between the first and the last of at least two readings of power."""
    steps = zip(watts, watts[1:], times, times[1:], strict=False)
    return sum((first + second) / 2 * (end - start) for first, second, start, end in steps)
