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
_EMBEDDING = re.compile(r"(embed_tokens|token_embd|wte|word_embeddings)\.")
_HEAD = re.compile(r"(^|\.)(lm_head|output|embed_out)\.")
LATENT = re.compile(r"(q_a_proj|kv_a_proj|attn_q_a|attn_kv_a)")


def stored_weights(table: TensorTable, layout: ServingLayout = ONE) -> WeightBytes:
    """Bytes of the tensors a safetensors or GGUF header names. Vectors and low ranks are whole on every tp rank,
    experts are over all ranks of a stage, other matrices over tp; layers over stages by the number in their names.
    """
    parts: Counter[str] = Counter()
    for tensor in table.tensors:
        parts[_part(tensor)] += tensor.nbytes
    fullest = max((_rank(each, layout) for each in _stages(table, layout.pp)), key=lambda sizes: sum(sizes.values()))
    tied = not parts["head"]
    return WeightBytes(
        scheme=", ".join(name for name, _ in Counter(_dtypes(table.tensors)).most_common(3)),
        total=table.nbytes,
        per_rank=sum(fullest.values()),
        parts=dict(parts),
        source=f"{table.format} header of {table.name}",
        read=table.nbytes - (0 if tied else parts["embedding"]),
        read_per_rank=sum(fullest.values()) - (0 if tied else fullest["embedding"]),
    )


def _dtypes(tensors: Iterable[Tensor]) -> dict[str, int]:
    found: Counter[str] = Counter()
    for tensor in tensors:
        found[tensor.dtype] += tensor.nbytes
    return dict(found)


def _part(tensor: Tensor) -> str:
    if _SCALES.search(tensor.name):
        return "scales"
    if _EXPERTS.search(tensor.name):
        return "experts"
    if _EMBEDDING.search(tensor.name):
        return "embedding"
    if _HEAD.search(tensor.name):
        return "head"
    return "norms" if len(tensor.shape) < 2 else "linear"


def _stages(table: TensorTable, pp: int) -> list[list[Tensor]]:
    """Tensors of each stage; what is no layer's is on the first where it embeds, else on the last."""
    numbers = {t.name: int(found[1]) for t in table.tensors if (found := _LAYER.search(t.name))}
    sizes = stage_sizes(max(numbers.values(), default=0) + 1, pp)
    place = [stage for stage, size in enumerate(sizes) for _ in range(size)]
    stages: list[list[Tensor]] = [[] for _ in range(pp)]
    for tensor in table.tensors:
        ends = 0 if _part(tensor) == "embedding" else pp - 1
        stages[place[numbers[tensor.name]] if tensor.name in numbers else ends].append(tensor)
    return stages


def _rank(tensors: Iterable[Tensor], layout: ServingLayout) -> Counter[str]:
    sizes: Counter[str] = Counter()
    for tensor in tensors:
        whole = len(tensor.shape) < 2 or LATENT.search(tensor.name)
        experts = _EXPERTS.search(tensor.name)
        ranks = layout.tp * layout.dp_attention if experts else 1 if whole else layout.tp
        sizes[_part(tensor)] += rank_part(tensor.nbytes, ranks)
    return sizes
