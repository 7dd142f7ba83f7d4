"""Bytes a model holds: weights, gradients, optimizer states, activations kept for backward, KV cache.

Activations are added up leaf by leaf from what autograd keeps: each product keeps its input, a norm its input, an
activation its input, a dropout one byte of mask. For a GPT layer in 16 bit that is the 34sbh + 5as²b of
arXiv:2205.05198 eq. 1.
"""

from __future__ import annotations

from suanli.catalog.formats import find_format
from suanli.formulas import memory
from suanli.kept import FP32_BYTES, kept_bytes, kept_elements, logits_bytes, scores_bytes, statistics_bytes
from suanli.nouns.arch import Arch, Placed
from suanli.nouns.convention import Convention
from suanli.nouns.counts import ByteCounts
from suanli.nouns.formats import Format
from suanli.nouns.layers import Attention, CausalConv, KeptState, Scan
from suanli.nouns.workload import DTYPE_BITS, OPTIMIZER_MOMENTS, Workload
from suanli.units import BITS_PER_BYTE
from suanli.work import Product, Setting, product

_MASK = Convention(name="-", doc="", source="")  # positions only; no convention changes how many there are

# How activations are kept: the policies, and what `none` keeps with a fused attention that stores no scores.
POLICIES = ("none_unfused", "none", "selective", "full")


def footprint(arch: Arch, workload: Workload) -> ByteCounts:
    """Memory of the model under the workload, in one piece (no parallelism)."""
    bits = DTYPE_BITS[workload.dtype]
    weights = memory.weights_bytes(arch.params_total, bits)
    reasons: dict[str, str] = {}
    training = workload.phase == "train"
    kept = activations(arch, workload) if training else None
    if not training:
        reasons |= dict.fromkeys(("gradients", "optimizer", "activations"), "held only in training (--phase train)")
    cache = kv_cache(arch, workload)
    if cache is None:
        reasons["kv_cache"] = "the model does not decode"
    return ByteCounts(
        weights=weights,
        gradients=memory.weights_bytes(arch.params_trainable, bits) if training else None,
        optimizer=optimizer_states(arch.params_trainable, workload) if training else None,
        activations=None if kept is None else kept[workload.recompute],
        activations_by_recompute=kept,
        kv_cache=cache,
        reasons=reasons,
    )


def optimizer_states(params: int, workload: Workload) -> int:
    """Moments, and an fp32 master copy where the weights are narrower and an optimizer runs at all."""
    master = FP32_BYTES if DTYPE_BITS[workload.dtype] < 32 and workload.optimizer != "none" else 0
    return memory.optimizer_bytes(params, OPTIMIZER_MOMENTS[workload.optimizer], master)


# --- KV cache -----------------------------------------------------------------------------------------------------


def kv_cache(arch: Arch, workload: Workload) -> int | None:
    """Keys and values of every sequence; None where nothing is decoded."""
    if not arch.decodes:
        return None
    at = Setting(arch, workload, _MASK)
    products = ((placed.times, cache_product(placed, at)) for placed in arch.leaves())
    kept: int = sum(times * found.value for times, found in products if found is not None)
    return kept


def cache_product(placed: Placed, at: Setting, kept_as: Format | None = None) -> Product | None:
    """What one copy of a layer keeps for the batch; None where it keeps nothing between tokens. Keys and values are
    kept as the workload's dtype says, block scales included, or as `kept_as`: then states stay in the model's dtype.
    """
    layer, batch = placed.layer, at.workload.batch
    kept_bits = (kept_as or find_format(at.workload.kv_dtype or at.workload.dtype)).bits
    bits = kept_bits if kept_as is None else DTYPE_BITS[at.workload.dtype]
    if not at.arch.stream(placed.stream).decodes:
        return None
    if isinstance(layer, Scan):
        return product(
            memory.state_bytes, batch=batch, heads=layer.heads, key_dim=layer.key_dim, value_dim=layer.state_width
        )
    if isinstance(layer, CausalConv):
        return product(memory.conv_state_bytes, batch=batch, channels=layer.channels, kernel=layer.kernel, bits=bits)
    if isinstance(layer, KeptState):
        kept = DTYPE_BITS["fp32"] if layer.fp32 else bits
        return product(memory.kept_state_bytes, batch=batch, elements=layer.elements, bits=kept)
    if not isinstance(layer, Attention):
        return None
    own = at.workload.keys + at.arch.stream(placed.stream).extra
    keys = at.keys(layer.key_stream) if layer.key_stream else own
    return product(
        memory.kv_cache_bytes,
        batch=batch,
        keys=min(keys, layer.window or keys, layer.chunk or keys),
        width=layer.latent_dim or layer.kv_heads * (layer.qk_dim + layer.v_dim),
        bits=kept_bits,
    )


# --- activations --------------------------------------------------------------------------------------------------


def activations(arch: Arch, workload: Workload) -> dict[str, int]:
    """Bytes kept for backward under every policy."""
    at = Setting(arch, workload, _MASK)
    size = -(-DTYPE_BITS[workload.dtype] // BITS_PER_BYTE)
    linear = scores = statistics = outside = 0
    for placed in arch.leaves():
        layer, tokens = placed.layer, at.tokens(placed.stream)
        seen = getattr(layer, "key_stream", None) or placed.stream
        kept = placed.times * (
            kept_bytes(layer, tokens, at.sequences(seen) * at.keys(seen), size) + logits_bytes(layer, tokens)
        )
        linear += kept
        scores += placed.times * scores_bytes(layer, tokens, at.keys(seen), size)
        statistics += placed.times * statistics_bytes(layer, tokens)
        outside += 0 if placed.in_block else kept
    return {
        "none_unfused": linear + scores,
        "none": linear + statistics,
        "selective": linear,
        "full": outside + _block_inputs(arch, at, size),
    }


def _block_inputs(arch: Arch, at: Setting, size: int) -> int:
    """The input of every checkpointed block: that of its first leaf that keeps one."""
    total, seen = 0, set()
    for placed in arch.leaves():
        if placed.block and placed.block not in seen and kept_elements(placed.layer):
            seen.add(placed.block)
            total += placed.times * at.tokens(placed.stream) * size * kept_elements(placed.layer)
    return total
