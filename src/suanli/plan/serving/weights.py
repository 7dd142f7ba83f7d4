"""Bytes of a model's weights under a scheme, by part, on the whole model and on its fullest rank.

A rank's part of a leaf is a leaf (`plan/sharding.py`), so one function gives the bytes of both.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from suanli.catalog.formats import find_format
from suanli.catalog.schemes import find_scheme
from suanli.formulas.memory import weights_bytes
from suanli.formulas.serving import packed_bytes, scale_bytes
from suanli.nouns.arch import Arch
from suanli.nouns.formats import Scheme
from suanli.nouns.layers import Attention, BlockLinear, Embedding, Experts, Layer, Linear, Norm
from suanli.nouns.serving import ServingLayout, WeightBytes
from suanli.nouns.stored import StoredScheme
from suanli.plan.pieces import Parts, Piece, parts_of
from suanli.plan.serving.cache import ONE
from suanli.plan.serving.check import check_layout
from suanli.plan.serving.kept import stages
from suanli.plan.serving.skipped import layer_path, skips
from suanli.plan.serving.stored import stored_weights
from suanli.plan.sharding import Degrees, rank_leaf

PARTS = ("linear", "experts", "embedding", "head", "norms", "scales", "mtp", "other")
Sizes = dict[str, int]


def weight_bytes(
    arch: Arch, scheme: str | Scheme = "bf16", layout: ServingLayout = ONE, *, mtp_layers: int = 0
) -> WeightBytes:
    """Weights of a model stored by `scheme` (a name, what `readers.quantization` read from a config, a file's header).

    `mtp_layers`: modules of multi-token prediction kept beside the model, each a last layer, a matrix of 2h × h and
    two norms (arXiv:2412.19437 §2.2); table and head are the model's. Raises InputError for a layout that cannot be,
    UnknownNameError for a scheme.
    """
    stored = find_scheme(scheme) if isinstance(scheme, str) else scheme
    kept: dict[Any, WeightBytes] = arch.__dict__.setdefault("_weight_bytes", {})  # a search asks again and again
    key = (stored, layout, mtp_layers)
    if key not in kept:
        kept[key] = _weight_bytes(arch, stored, layout, mtp_layers)
    return kept[key]


def _weight_bytes(arch: Arch, stored: Scheme, layout: ServingLayout, mtp_layers: int) -> WeightBytes:
    parts = parts_of(arch)
    check_layout(parts, layout)
    if isinstance(stored, StoredScheme):
        return stored_weights(stored.table, layout, kv_heads=_kv_heads(arch), source=stored.source)
    tied = any(getattr(placed.layer, "tied", False) for placed in arch.leaves())
    whole = _Books(parts, stored, _degrees(ONE), tied, mtp_layers)
    rank = _Books(parts, stored, _degrees(layout), tied, mtp_layers)
    total = whole.stages(1)[0]
    fullest = max(rank.stages(layout.pp), key=lambda sizes: sum(sizes.values()))
    return WeightBytes(
        scheme=stored.name,
        total=sum(total.values()),
        per_rank=sum(fullest.values()),
        parts={part: size for part, size in total.items() if size},
        source=stored.source,
        read=sum(total.values()) - (0 if tied else total["embedding"]),
        read_per_rank=sum(fullest.values()) - (0 if tied else fullest["embedding"]),
    )


def _kv_heads(arch: Arch) -> int | None:
    """Of grouped attention; None where keys and values are a latent, or there is no attention."""
    found = {p.layer.kv_heads for p in arch.leaves() if isinstance(p.layer, Attention) and not p.layer.latent_dim}
    return max(found, default=None)


def _degrees(layout: ServingLayout) -> Degrees:
    """Experts are over all ranks of a stage: `ep` of them whole, the rest by width."""
    return Degrees(tp=layout.tp, ep=layout.ep, etp=layout.tp * layout.dp_attention // layout.ep)


@dataclass(frozen=True)
class _Books:
    """A model whose weights are added up, whole or one rank's."""

    parts: Parts
    scheme: Scheme
    at: Degrees
    tied: bool
    mtp_layers: int

    def stages(self, pp: int) -> list[Sizes]:
        """Bytes by part of each stage of a pipeline."""
        counts = stages(self.parts, pp)
        found, start = [], 0
        for place, stage in enumerate(counts):
            end = start + sum(stage)
            sizes = dict.fromkeys(PARTS, 0)
            for part, size in self._stage(start, end, first=place == 0, last=place == len(counts) - 1):
                sizes[part] += size
            found.append(sizes)
            start = end
        return found

    def _stage(self, start: int, end: int, *, first: bool, last: bool) -> Iterator[tuple[str, int]]:
        for block in self.parts.blocks:
            inside = [n for n in block.layers if start <= n < end]
            for piece in block.pieces if inside else ():
                yield from self._in_block(piece, block.label, inside, len(block.layers))
        if first:
            for piece in self.parts.before:
                yield from self._leaf(piece, piece.path, piece.placed.held)
        if last:
            for piece in self.parts.after:
                apart = self.tied and not first and getattr(piece.layer, "tied", False)
                yield from self._leaf(piece, piece.path, piece.placed.held, untied=apart)
            yield from self._mtp()

    def _in_block(self, piece: Piece, label: str, numbers: list[int], of: int) -> Iterator[tuple[str, int]]:
        """A leaf of every layer of a kind that a stage holds; layers that are skipped apart from the others."""
        if not self.scheme.skip:  # every layer alike: no need to spell their paths
            yield from self._leaf(piece, piece.path, piece.placed.held // of * len(numbers))
            return
        left = [n for n in numbers if skips(self.scheme, layer_path(piece.path, label, n))]
        for alike in (left, [n for n in numbers if n not in left]):
            if alike:
                path = layer_path(piece.path, label, alike[0])
                yield from self._leaf(piece, path, piece.placed.held // of * len(alike))

    def _leaf(self, piece: Piece, path: str, times: int, *, untied: bool = False) -> Iterator[tuple[str, int]]:
        leaf: Any = rank_leaf(piece, self.at)
        leaf = replace(leaf, tied=False) if untied else leaf
        left = self.scheme.skip and skips(self.scheme, path)
        scheme = replace(self.scheme, targets=()) if left else self.scheme
        for part, size in leaf_bytes(leaf, scheme).items():
            yield part, times * size

    def _mtp(self) -> Iterator[tuple[str, int]]:
        if not self.mtp_layers:
            return
        last = max(self.parts.blocks, key=lambda block: max(block.layers))
        for piece in last.pieces:
            path = layer_path(piece.path, last.label, max(last.layers))
            for _, size in self._leaf(piece, path, self.mtp_layers * piece.placed.held // len(last.layers)):
                yield "mtp", size
        hidden = next(piece.layer.dim for piece in last.pieces if isinstance(piece.layer, Norm))
        join = Linear(name="eh_proj", in_features=2 * hidden, out_features=hidden, bias=False)
        for leaf, times in ((join, 1), (Norm(name="norm", dim=hidden), 3)):
            for size in leaf_bytes(leaf, replace(self.scheme, targets=())).values():
                yield "mtp", self.mtp_layers * times * size


def leaf_bytes(leaf: Layer, scheme: Scheme) -> Sizes:
    """Bytes of one leaf by part, scales apart from what they scale."""
    part, base = part_of_leaf(leaf), find_format(scheme.base).bits
    matrices = _matrices(leaf) if part in scheme.targets else ()
    packed = sum(times * rows * columns for rows, columns, times in matrices)
    plain = weights_bytes(leaf.params - packed, base) if leaf.params > packed else 0  # type: ignore[arg-type]
    sizes = {part: plain, "scales": 0}
    for rows, columns, times in matrices:
        sizes[part] += times * packed_bytes(rows, columns, scheme.bits)
        sizes["scales"] += times * _scales(rows, columns, scheme)
    return sizes


def _scales(rows: int, columns: int, scheme: Scheme) -> int:
    return scale_bytes(
        in_features=rows, out_features=columns, group_in=scheme.group_in or rows,
        group_out=columns if scheme.group_out is None else scheme.group_out, scale_bytes=scheme.scale_bytes,
        zero_bits=scheme.zero_bits, index_bytes=scheme.index_bytes, tensor_bytes=scheme.tensor_bytes,
    )  # fmt: skip


def part_of_leaf(leaf: Layer) -> str:
    """What of a model's weights a leaf is."""
    if isinstance(leaf, Experts):
        return "experts"
    if isinstance(leaf, Embedding):
        return "embedding"
    if isinstance(leaf, Linear) and leaf.role == "lm_head":
        return "head"
    if isinstance(leaf, Linear | BlockLinear):
        return "other" if getattr(leaf, "role", "matmul") == "router" else "linear"
    return "norms" if isinstance(leaf, Norm) else "other"


def _matrices(leaf: Layer) -> tuple[tuple[int, int, int], ...]:
    """Inputs, outputs and number of a leaf's matrices."""
    if isinstance(leaf, Linear):
        return () if leaf.tied else ((leaf.in_features, leaf.out_features, 1),)
    if isinstance(leaf, BlockLinear):
        return ((leaf.in_features // leaf.blocks, leaf.out_features // leaf.blocks, leaf.blocks),)
    if isinstance(leaf, Embedding):
        return () if leaf.tied else ((leaf.dim, leaf.num, 1),)
    assert isinstance(leaf, Experts), leaf
    first = leaf.num * (leaf.matrices - 1)
    return (leaf.hidden, leaf.ffn, first), (leaf.ffn, leaf.hidden, leaf.num)
