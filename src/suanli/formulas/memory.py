"""Bytes: weights, gradients, optimizer states, activations, KV cache."""

from __future__ import annotations

from suanli.formulas.registry import formula
from suanli.units import BITS_PER_BYTE

_KORTHIKANTI = "arXiv:2205.05198"


@formula(unit="bytes", expression="N·bits/8", source="definition", legend={"bits": "bits: bits of one parameter"})
def weights_bytes(params: int, bits: int) -> int:
    """Memory of the weights."""
    return -(-params * bits // BITS_PER_BYTE)


@formula(
    unit="bytes",
    expression="N·(moments + master)",
    source="arXiv:1910.02054 §3.1: fp32 moments, and an fp32 copy of the weights where they are narrower",
    legend={
        "params": "N: trainable parameters",
        "moments": "bytes of moments a parameter",
        "master": "4 or 0",
    },
)
def optimizer_bytes(params: int, moments: int, master: int) -> int:
    """Memory of optimizer states, beside weights and gradients."""
    return params * (moments + master)


@formula(
    unit="bytes",
    expression="B·S·(K·d_qk + K·d_v)·bits/8 a layer",
    source="keys and values of every position and layer",
    legend={
        "keys": "S: positions kept (a window keeps no more than w)",
        "width": "K·d_qk + K·d_v",
        "bits": "bits a number",
    },
)
def kv_cache_bytes(batch: int, keys: int, width: int, bits: int) -> int:
    """KV cache of one layer; for latent attention `width` is the latent and its rotary part."""
    return -(-batch * keys * width * bits // BITS_PER_BYTE)


@formula(
    unit="bytes",
    expression="4·B·H·d_k·d_v",
    source="one running state a head, in fp32; it does not grow with the sequence",
    legend={"key_dim": "d_k: width of a key", "value_dim": "d_v: width of a value"},
)
def state_bytes(batch: int, heads: int, key_dim: int, value_dim: int) -> int:
    """State of one layer of linear attention."""
    return 4 * batch * heads * key_dim * value_dim


@formula(
    unit="bytes",
    expression="B·c·(w − 1)·bits/8",
    source="the inputs a causal convolution still needs; transformers keeps one more, that of the newest token",
    legend={"channels": "c: channels", "kernel": "w: width of the window", "bits": "bits a number"},
)
def conv_state_bytes(batch: int, channels: int, kernel: int, bits: int) -> int:
    """What one causal convolution keeps between tokens."""
    return kept_state_bytes(batch, channels * (kernel - 1), bits)


@formula(
    unit="bytes",
    expression="B·e·bits/8",
    source="a vector a sequence, whatever its length",
    legend={"elements": "e: numbers a sequence keeps", "bits": "bits a number"},
)
def kept_state_bytes(batch: int, elements: int, bits: int) -> int:
    """State of one layer that is neither keys and values nor a scan's."""
    return -(-batch * elements * bits // BITS_PER_BYTE)


@formula(
    unit="bytes",
    expression="L·sbh·(34 + 5as/h)",
    source=f"{_KORTHIKANTI} eq. 1 (16-bit, dropout, scores kept)",
)
def gpt_activation_bytes(batch: int, seq: int, num_layers: int, hidden: int, heads: int) -> int:
    """Activations of a GPT model kept for backward, nothing recomputed."""
    return num_layers * (34 * seq * batch * hidden + 5 * heads * seq**2 * batch)


@formula(unit="bytes", expression="L·34sbh", source=f"{_KORTHIKANTI} §5: scores recomputed")
def gpt_activation_bytes_selective(batch: int, seq: int, num_layers: int, hidden: int) -> int:
    """Activations of a GPT model with selective recompute."""
    return num_layers * 34 * seq * batch * hidden


@formula(unit="bytes", expression="L·2sbh", source=f"{_KORTHIKANTI} §5: only each layer's input kept")
def gpt_activation_bytes_full(batch: int, seq: int, num_layers: int, hidden: int) -> int:
    """Activations of a GPT model with full recompute."""
    return num_layers * 2 * seq * batch * hidden
