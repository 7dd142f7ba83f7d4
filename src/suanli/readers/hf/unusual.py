"""Causal decoders whose layers are put together in a way of their own: loops, experts in attention, shortcuts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from suanli.nouns.arch import Arch, Module
from suanli.nouns.layers import Attention, Embedding, Experts, Linear, Parameter
from suanli.readers.blocks import (
    Node,
    again,
    norm,
    stack,
)
from suanli.readers.config import Config
from suanli.readers.hf.common import (
    FULL,
    SLIDING,
    Extra,
    LayerKind,
    Traits,
    Widths,
    dense_mlp,
    more_parts,
    read_widths,
    self_attention,
)
from suanli.readers.hf.rows import top_k


def _finished(
    config: Config,
    name: str,
    widths: Widths,
    body: tuple[Node, ...],
    *,
    tied: bool = False,
    notes: tuple[str, ...] = (),
) -> Arch:
    """Embedding, body, head under the usual names."""
    is_tied = config.flag("tie_word_embeddings", default=tied)
    head = Linear(name="lm_head", in_features=widths.hidden, out_features=widths.vocab, role="lm_head", tied=is_tied)
    embed = Embedding(name="model.embed_tokens", num=widths.vocab, dim=widths.hidden)
    return Arch(
        name=name, root=Module(name="", children=(embed, *body, head)), shape=widths.shape(gated=True),
        max_positions=widths.max_positions, task="causal-lm", notes=notes,
    )  # fmt: skip


def read_hrm_text(config: Config, name: str) -> Arch:
    """HRM: a low stack runs several times for each run of a high one (arXiv:2506.21734), the first without gradient."""
    layers = config.layers("num_layers_per_stack")
    widths = read_widths(config, grouped=False, layers=layers)
    high, low = config.need("H_cycles", high=1_000), config.need("L_cycles", high=1_000)
    trained = list(config.wholes("L_bp_cycles", low=0) or (1,))
    trained = [1] * max(0, high - len(trained)) + trained
    biased, mlp_biased = config.flag("attention_bias", default=False), config.flag("mlp_bias", default=False)
    traits = Traits(norm_kind="plain", gate="gate_proj", qkv_bias=biased, o_bias=biased, mlp_bias=mlp_biased)
    config.check()
    layer = (*self_attention(widths, traits, LayerKind(), None), *dense_mlp(widths, traits))

    def run(at: str, *, first: bool, detached: bool = False) -> tuple[Node, ...]:
        nodes = layer if first else again(layer, detached=detached)
        return stack(f"model.{at}.layers", (0,) * layers, lambda _: _detached(nodes) if detached else nodes)

    body: list[Node] = [Parameter(name="model.z_L_init", shape=(widths.hidden,), trainable=False)]
    for i in range(high):
        for j in range(low):
            body.extend(run("L_module", first=i == j == 0, detached=j < low - trained[i]))
        body.extend(run("H_module", first=i == 0))
    note = f"the low stack runs {high * low:,} times and the high one {high:,} times, with the same weights"
    return _finished(config, name, widths, tuple(body), notes=(note,))


def _detached(nodes: tuple[Node, ...]) -> tuple[Node, ...]:
    """The same leaves run without a gradient."""
    return tuple(node if isinstance(node, Module) else replace(node, detached=True) for node in nodes)


def read_dory(config: Config, name: str) -> Arch:
    """Dory: nGPT's layers (arXiv:2410.01131), of which a middle part runs several times."""
    pairs = _lists_pairs(config)
    widths = read_widths(config, layers=config.layers("num_hidden_layers") // pairs)
    kinds = _dory_kinds(config, widths.layers)
    loops = config.need("n_recurrent_loops", high=1_000)
    start, middle, end = (
        config.need(f"n_{part}_layers", low=0) // pairs for part in ("input", "recurrent", "output")
    )  # fmt: skip
    if start + middle + end != widths.layers:
        config.fault("contradiction", "input, recurrent and output layers are not all layers", "n_recurrent_layers")
    biased = config.flag("attention_bias", default=False)
    traits = Traits(gate="gate_proj", qkv_bias=biased, o_bias=biased, mlp_bias=config.flag("mlp_bias", default=False))
    window = config.maybe("sliding_window")
    extras = tuple(
        Extra(name=name, shape=(extent,))
        for name, extent in (
            ("lambda_1", "hidden"), ("lambda_2", "hidden"), ("self_attn.sqk", "query"), ("self_attn.s_gate", "query"),
            ("mlp.suv_gate", "ffn"), ("mlp.suv_up", "ffn"),
        )
    )  # fmt: skip
    config.check()

    def layer(kind: str) -> tuple[Node, ...]:
        attend = self_attention(widths, traits, LayerKind(kind), window)
        return (*more_parts(extras, (), widths), *attend, *dense_mlp(widths, traits))

    def run(indices: Sequence[int], first: bool) -> tuple[Node, ...]:
        groups: dict[str, list[int]] = {}
        for i in indices:
            groups.setdefault(kinds[i], []).append(i)
        return tuple(
            Module(
                name="model.layers",
                children=layer(kind) if first else again(layer(kind)),
                indices=tuple(found),
                block=True,
            )
            for kind, found in groups.items()
        )

    body = [*run(range(widths.layers), True)]
    for _ in range(loops - 1):
        body.extend(run(range(start, start + middle), False))
    scale = Parameter(name="lm_head.logit_scale", shape=(widths.vocab,))
    note = f"layers {start} to {start + middle - 1} run {loops} times, with the same weights"
    return _finished(config, name, widths, (*body, scale), notes=(note,))


def _lists_pairs(config: Config) -> int:
    """2 where layers are counted as attention and MLP apart, as released configs do; else 1."""
    types = config.values.get("layer_types")
    return 2 if isinstance(types, list | tuple) and "mlp" in types else 1


def _dory_kinds(config: Config, layers: int) -> tuple[str, ...]:
    """The reach of each layer."""
    types = config.values.get("layer_types")
    if isinstance(types, list | tuple):
        types = [kind for kind in types if kind != "mlp"]
        inner = Config({"layer_types": types}, config.where)
        inner.faults = config.faults
        return inner.names("layer_types", layers, (FULL, SLIDING)) or (FULL,) * layers
    return tuple(FULL if (i + 1) % 4 == 0 else SLIDING for i in range(layers))


def read_jetmoe(config: Config, name: str) -> Arch:
    """JetMoE: experts in attention too, each with a query and an output projection for one set of keys and values."""
    hidden, kv_heads = config.need("hidden_size"), config.need("num_key_value_heads", high=1_000_000)
    experts, dim, ffn = config.need("num_local_experts"), config.need("kv_channels"), config.need("intermediate_size")
    chosen = top_k(config, experts)
    widths = Widths(
        layers=config.layers("num_hidden_layers"), hidden=hidden, heads=kv_heads * chosen, kv_heads=kv_heads,
        head_dim=dim, ffn=ffn, vocab=config.need("vocab_size"), max_positions=config.maybe("max_position_embeddings"),
    )  # fmt: skip
    config.check()
    at, width = "self_attention", kv_heads * dim
    layer: tuple[Node, ...] = (
        norm("input_layernorm", hidden),
        Linear(name=f"{at}.experts.router.layer", in_features=hidden, out_features=experts, role="router"),
        Linear(name=f"{at}.kv_proj", in_features=hidden, out_features=2 * width),
        Attention(name=f"{at}.attention", heads=widths.heads, kv_heads=kv_heads, qk_dim=dim, v_dim=dim),
        Experts(name=f"{at}.experts", num=experts, top_k=chosen, hidden=hidden, ffn=width, gated=False),
        Parameter(name=f"{at}.experts.bias", shape=(hidden,)),
        norm("post_attention_layernorm", hidden),
        Linear(name="mlp.router.layer", in_features=hidden, out_features=experts, role="router"),
        Experts(name="mlp", num=experts, top_k=chosen, hidden=hidden, ffn=ffn),
        Parameter(name="mlp.bias", shape=(hidden,)),
    )
    stacked = stack("model.layers", (0,) * widths.layers, lambda _: layer)
    body: tuple[Node, ...] = (*stacked, norm("model.norm", hidden))
    return _finished(config, name, widths, body, tied=True)


FAMILIES = {
    "hrm_text": read_hrm_text,
    "dory": read_dory,
    "jetmoe": read_jetmoe,
}
