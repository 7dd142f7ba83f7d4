"""A model given with its weights' header: bytes of a weight on average, and how far that is from its config's."""

from __future__ import annotations

from collections import Counter

from suanli.catalog.schemes import find_scheme, list_schemes
from suanli.nouns.arch import Arch
from suanli.nouns.formats import Scheme
from suanli.nouns.stored import StoredScheme
from suanli.nouns.tensors import Tensor, TensorTable
from suanli.plan.pieces import parts_of
from suanli.plan.serving.stored import layer_of, part_of_tensor
from suanli.plan.serving.weights import part_of_leaf, weight_bytes
from suanli.readers.kinds import INDEX_SUFFIX
from suanli.units import format_bytes, format_percent

_DIFFERS = 2e-3  # of the bytes: below it norms, buffers and scales of a config are as good as the header
_PACKED = 0.1  # of a part's bytes are integers: indices and masks are less
_PLAIN = {"BF16": "bf16", "F16": "fp16", "F32": "fp32"}


def stored_scheme(table: TensorTable, arch: Arch, file: str, said: Scheme | None = None) -> StoredScheme:
    """The scheme that is this header. `said`: what the model's config says of its weights, where it says it."""
    like = said or _nearest(table)
    return StoredScheme(
        name=like.name, title=f"as stored in {file}", bits=like.bits, base=like.base, targets=like.targets, like=like,
        table=table, file=file, rates=_rates(table, arch), source=header_of(table, file),
    )  # fmt: skip


def header_of(table: TensorTable, file: str) -> str:
    """Where bytes come from that a header gives."""
    many = f"({len(table.tensors):,} tensors)"
    if file.endswith(INDEX_SUFFIX):
        return f"sum of tensors in the headers that {file} names {many}"
    return (
        f"sum of tensors in the headers of {file} {many}"
        if "*" in file
        else f"sum of tensors in {file}'s header {many}"
    )


def difference(scheme: StoredScheme, arch: Arch) -> tuple[str, ...]:
    """What the config's weights and the header's differ by, in words; nothing where they agree."""
    ours, stored = weight_bytes(arch, scheme.like).total, scheme.table.nbytes
    return told(ours, stored, f"{arch.name} in {scheme.like.name}", f"the tensors of {scheme.file}")


def told(ours: float, stored: float, config: str, file: str) -> tuple[str, ...]:
    """Two sums of weights side by side where they differ."""
    if not ours or abs(stored / ours - 1) <= _DIFFERS:
        return ()
    way = "more" if stored > ours else "less"
    part = format_percent(abs(stored / ours - 1), 1)
    return (
        f"weights: by its config {config} is {format_bytes(ours)}; {file} are {format_bytes(stored)}, {part} {way}",
    )


def _nearest(table: TensorTable) -> Scheme:
    """By the dtype that most bytes have."""
    sizes: Counter[str] = Counter()
    for tensor in table.tensors:
        sizes[tensor.dtype] += tensor.nbytes
    main = sizes.most_common(1)[0][0] if sizes else "BF16"
    if main.startswith("F8_"):
        return find_scheme("fp8-block" if any(t.name.endswith("scale_inv") for t in table.tensors) else "fp8")
    known = {each.name for each in list_schemes()}
    return find_scheme(_PLAIN.get(main) or (main.lower() if main.lower() in known else "bf16"))


def _group(part: str) -> str:
    return part if part in ("embedding", "head", "experts") else "linear"


def _rates(table: TensorTable, arch: Arch) -> tuple[tuple[str, float], ...]:
    """Bytes of a weight by part: over the elements stored or, where several are packed in one, the model's weights."""
    params: Counter[str] = Counter()
    for placed in arch.leaves():
        params[_group(part_of_leaf(placed.layer))] += placed.held * (placed.layer.params or 0)
    groups: dict[str, list[Tensor]] = {}
    layers = parts_of(arch).num_layers
    for tensor in table.tensors:
        if (number := layer_of(tensor.name)) is None or number < layers:  # modules of multi-token prediction come after
            groups.setdefault(_group(part_of_tensor(tensor, apart=False)), []).append(tensor)
    rates = {name: _rate(tensors, params[name]) for name, tensors in groups.items()}
    return tuple(sorted((name, rate) for name, rate in rates.items() if rate))


def _rate(tensors: list[Tensor], params: int) -> float:
    size = sum(each.nbytes for each in tensors)
    if sum(each.nbytes for each in tensors if each.integer) > _PACKED * size:
        return size / params if params else 0.0
    elements = sum(each.elements for each in tensors if part_of_tensor(each) != "scales")
    return size / elements if elements else 0.0
