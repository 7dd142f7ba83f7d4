"""Weights as a file's header lists them: bytes of the tensors themselves, and of the fullest rank of a layout."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from suanli.formulas.parallel import rank_part
from suanli.nouns.layout import stage_sizes
from suanli.nouns.serving import ServingLayout, WeightBytes
from suanli.nouns.tensors import Tensor, TensorTable
from suanli.plan.serving.cache import ONE

_LAYER = re.compile(r"(?:^|\.)(\d+)\.")
_EXPERTS = re.compile(r"\.experts\.|_exps\.")
_SCALES = re.compile(r"(scale|scales|scale_inv|zeros|qzeros|g_idx|absmax|weight_scale_2)$")
_EMBEDDING = re.compile(r"(embed_tokens|token_embd|wte|word_embeddings|embed_in|tok_embeddings)\.")
_HEAD = re.compile(r"(^|\.)(lm_head|embed_out|output_layer)\.|^output\.")
LATENT = re.compile(r"(q_a_proj|kv_a_proj|attn_q_a|attn_kv_a)")
_KEYS = re.compile(r"\.(k_proj|v_proj|attn_k|attn_v|wk|wv|key|value)\.")


PARTS = ("linear", "experts", "embedding", "head", "norms", "scales")


def stored_weights(
    table: TensorTable, layout: ServingLayout = ONE, *, kv_heads: int | None = None, source: str | None = None
) -> WeightBytes:
    """Bytes of the tensors a safetensors or GGUF header names. Vectors and low ranks are whole on every tp rank, keys'
    and values' matrices over at most `kv_heads` of them, experts over all ranks of a stage, other matrices over tp;
    layers over stages by the number in their names. `source`: where it is from.
    """
    parts: Counter[str] = Counter()
    for tensor in table.tensors:
        parts[part_of_tensor(tensor)] += tensor.nbytes
    ranks = (_rank(each, layout, kv_heads) for each in _stages(table, layout.pp))
    fullest = max(ranks, key=lambda sizes: sum(sizes.values()))
    tied = not parts["head"]
    return WeightBytes(
        scheme=", ".join(name for name, _ in Counter(_dtypes(table.tensors)).most_common(3)),
        total=table.nbytes,
        per_rank=sum(fullest.values()),
        parts={name: parts[name] for name in PARTS if parts[name]},
        source=source or f"{table.format} header of {table.name}",
        read=table.nbytes - (0 if tied else parts["embedding"]),
        read_per_rank=sum(fullest.values()) - (0 if tied else fullest["embedding"]),
    )


def _dtypes(tensors: Iterable[Tensor]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for tensor in tensors:
        found[tensor.dtype] += tensor.nbytes
    return dict(found)


def part_of_tensor(tensor: Tensor, *, apart: bool = True) -> str:
    """What a tensor is of, by its name; scales `apart` from what they scale."""
    if apart and _SCALES.search(tensor.name):
        return "scales"
    if _EXPERTS.search(tensor.name):
        return "experts"
    if _EMBEDDING.search(tensor.name):
        return "embedding"
    if _HEAD.search(tensor.name):
        return "head"
    return "norms" if len(tensor.shape) < 2 else "linear"


def layer_of(name: str) -> int | None:
    """The number of the layer a tensor's name has; None where it has none."""
    found = _LAYER.search(name)
    return None if found is None else int(found[1])


def _stages(table: TensorTable, pp: int) -> list[list[Tensor]]:
    """Tensors of each stage; what is no layer's is on the first where it embeds, else on the last."""
    numbers = {t.name: found for t in table.tensors if (found := layer_of(t.name)) is not None}
    sizes = stage_sizes(max(numbers.values(), default=0) + 1, pp)
    place = [stage for stage, size in enumerate(sizes) for _ in range(size)]
    stages: list[list[Tensor]] = [[] for _ in range(pp)]
    for tensor in table.tensors:
        ends = 0 if part_of_tensor(tensor) == "embedding" else pp - 1
        stages[place[numbers[tensor.name]] if tensor.name in numbers else ends].append(tensor)
    return stages


def _rank(tensors: Iterable[Tensor], layout: ServingLayout, kv_heads: int | None) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        whole = len(tensor.shape) < 2 or LATENT.search(tensor.name)
        experts = _EXPERTS.search(tensor.name)
        held = min(layout.tp, kv_heads) if kv_heads and _KEYS.search(tensor.name) else layout.tp
        ranks = layout.tp * layout.dp_attention if experts else 1 if whole else held
        sizes[part_of_tensor(tensor)] += rank_part(tensor.nbytes, ranks)
    return sizes
