"""`count`: a model and a workload, under a convention, become a ledger whose rows close.

`work` says what a forward pass of each layer multiplies; passes, recompute and conventions are applied to that in
one place (`build_ledger`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from suanli.errors import Fault, InputError, unknown_name
from suanli.footprint import footprint
from suanli.formulas import all_formulas, counting, gpt
from suanli.nouns.arch import Arch, Module, Placed, split_first
from suanli.nouns.convention import Convention
from suanli.nouns.counts import Count, CountRow, FlopCounts, ParamCounts
from suanli.nouns.layers import Attention, Embedding, Layer, Linear, Opaque, Scan, Similarity
from suanli.nouns.ledger import BACKWARD, FORWARD, RECOMPUTE_PASS, Ledger, Op
from suanli.nouns.workload import DTYPE_BITS, RECOMPUTE, Workload
from suanli.uncounted import uncounted
from suanli.units import BITS_PER_BYTE, FLOPS_PER_MAC
from suanli.work import Setting, layer_work

# --- passes -------------------------------------------------------------------------------------------------------


@dataclass
class _Gradients:
    """Walks the layers in order and tells which inputs need a gradient: those behind something trainable."""

    needed: bool = False
    input_needed: bool = False
    block: str = ""
    block_needed: bool = False

    def step(self, placed: Placed) -> bool:
        """Whether this layer's input needs a gradient; then moves past it."""
        layer = placed.layer
        if placed.block != self.block:
            self.block, self.block_needed = placed.block, self.needed
        if isinstance(layer, Linear) and layer.role == "lora":  # reads its own down-projection, which is trained
            return True
        if not layer.shares_input:
            needed = self.block_needed if layer.reads_block else self.needed
            self.input_needed = needed and not layer.raw_input
        self.needed = self.needed or (layer.trainable and layer.params + _tied(layer) > 0)
        return self.input_needed


def _tied(layer: Layer) -> int:
    return layer.weight_params if isinstance(layer, Linear) and layer.tied else 0


def backward_multiple(layer: Layer, input_needs_grad: bool, convention: Convention) -> int:
    """Backward FLOPs over forward FLOPs: one product for the input's gradient, one for the weight's.

    Products of two activations (attention) have two inputs and no weights: two products each, or none.
    """
    if not convention.exact_backward:
        return 2
    if layer.detached:
        return 0
    if isinstance(layer, Attention | Scan | Similarity):
        return 2 * int(input_needs_grad)
    if isinstance(layer, Opaque):
        return 2  # a whole model of unknown shape, its embedding included: every product inside has both gradients
    weight = layer.trainable and not (isinstance(layer, Embedding))
    return int(input_needs_grad) + int(weight)


def placed_layers(arch: Arch) -> Iterator[Placed]:
    """Leaves in order; where layers may differ in what needs a gradient, the first copy stands apart."""
    if all(placed.layer.trainable for placed in arch.leaves()):
        return iter(arch.leaves())
    return iter(replace(arch, root=_split(arch.root)).leaves())


def _split(module: Module) -> Module:
    children: list[Module | Layer] = []
    for child in module.children:
        children.extend(split_first(_split(child)) if isinstance(child, Module) else (child,))
    return replace(module, children=tuple(children))


def _rows(placed: Placed, at: Setting, gradients: _Gradients) -> Iterator[Op]:
    """Forward, backward and recompute rows of one leaf."""
    work, times = layer_work(placed, at), placed.times
    if work.formula == "ideal_flops":  # made of parameters: shared ones count once
        times = placed.held
    input_needed = gradients.step(placed)
    size = DTYPE_BITS[at.workload.dtype]

    def op(pass_: str, model: int, hardware: int, reads: int, writes: int, params: int) -> Op:
        bytes_read, bytes_written = (-(-elements * times * size // BITS_PER_BYTE) for elements in (reads, writes))
        return Op(
            placed.path, placed.layer.kind, pass_, model * times, hardware * times, bytes_read, bytes_written,
            params * placed.held, times, work.formula,
        )  # fmt: skip

    reads = work.reads + work.weights
    yield op(FORWARD, work.flops, work.flops, reads, work.writes, placed.layer.params)
    if at.workload.phase != "train":
        return
    multiple = backward_multiple(placed.layer, input_needed, at.convention)
    flops = multiple * work.flops
    if multiple and (flops or work.reads):
        yield op(BACKWARD, flops, flops, multiple * (work.writes + reads), multiple * work.reads + work.weights, 0)
    again = recomputed(placed, at)
    if again:
        in_figure = work.flops if at.convention.recompute_blocks else 0
        yield op(RECOMPUTE_PASS, in_figure, work.flops, reads, work.writes, 0)


def recomputed(placed: Placed, at: Setting) -> bool:
    """Whether a layer's forward is done again before backward, under the policy (or the convention's own)."""
    policy = "full" if at.convention.recompute_blocks else at.workload.recompute
    if policy == "selective":
        return isinstance(placed.layer, Attention)  # scores and context only, arXiv:2205.05198 §5
    if policy == "full":
        return placed.in_block or at.convention.basis == "params"
    return False


GIVEN = "given parameters"  # the row of an N that the user gave


def count(
    arch: Arch,
    workload: Workload,
    convention: Convention,
    *,
    by: str = "module",
    params: int | None = None,
) -> Count:
    """The books of a model. `params` replaces N in the ideal forms and in conventions made of N.

    Raises InputError for a phase, grouping or convention that cannot be.
    """
    ledger = build_ledger(arch, workload, convention, params)
    at = Setting(arch, workload, convention)
    units = at.tokens(arch.main_stream)
    n = arch.params_active if params is None else params
    ideal = {f"{k}n": counting.ideal_flops(k, n, units) for k in (2, 6, 8)}
    flops = _flop_counts(ledger, at)
    return Count(
        model=arch.name,
        title=arch.title or arch.name,
        unit=arch.unit,
        units=units,
        params=ParamCounts(
            total=arch.params_total,
            active=arch.params_active,
            embedding=arch.params_embedding,
            trainable=arch.params_trainable,
            buffers=arch.buffer_elements,
        ),
        flops=flops,
        flops_per_token=flops.model / units,
        macs=flops.model // FLOPS_PER_MAC,
        ideal_params=n,
        ideal=ideal,
        ideal_error=_ideal_errors(ideal, flops),
        formula_params=_gpt_params(arch),
        bytes=footprint(arch, workload),
        by=by,
        rows=grouped_rows(ledger, by),
        ledger=ledger,
    )


def _flop_counts(ledger: Ledger, at: Setting) -> FlopCounts:
    forward, backward = ledger.flops(FORWARD), ledger.flops(BACKWARD)
    policies = None
    if at.workload.phase == "train":
        known = [policy for policy in RECOMPUTE if policy != "selective" or at.convention.basis != "closed"]
        policies = {policy: forward + backward + _again(ledger, at, policy) for policy in known}
    return FlopCounts(
        forward=forward,
        backward=backward,
        recompute=ledger.flops(RECOMPUTE_PASS, "hardware_flops"),
        model=ledger.model_flops,
        hardware=ledger.hardware_flops,
        scan=ledger.scan_flops,
        hardware_by_recompute=policies,
    )


def _again(ledger: Ledger, at: Setting, policy: str) -> int:
    """Forward FLOPs done again under a policy, from the forward rows."""
    if at.convention.basis == "closed":
        return ledger.flops(FORWARD) if policy == "full" else 0
    asked = replace(at, workload=replace(at.workload, recompute=policy))
    again = {placed.path for placed in placed_layers(at.arch) if recomputed(placed, asked)}
    return sum(row.hardware_flops for row in ledger.rows if row.pass_ == FORWARD and _is_again(row, again, policy))


def _is_again(row: Op, again: set[str], policy: str) -> bool:
    """Whether a forward row is done again; N given by the user stands for every layer."""
    return policy == "full" if row.path == GIVEN else row.path in again


def _ideal_errors(ideal: dict[str, int], flops: FlopCounts) -> dict[str, float | None]:
    """How far each ideal form is off the count it stands for; None where the phase has no such count."""
    full = flops.hardware_by_recompute["full"] if flops.hardware_by_recompute else None
    counted = {"2n": flops.forward, "6n": flops.model if full else None, "8n": full}
    return {name: ideal[name] / of - 1 if of else None for name, of in counted.items()}


def _gpt_params(arch: Arch) -> int | None:
    """Eq. 2 of arXiv:2104.04473 where it applies: a GPT with learned positions and a 4h MLP."""
    shape = arch.shape
    learned = [p.layer.num for p in arch.leaves() if isinstance(p.layer, Embedding) and p.layer.role == "position"]
    if shape is None or len(learned) != 1 or arch.task != "causal-lm" or shape.gated:
        return None
    if shape.ffn != 4 * shape.hidden or shape.kv_heads != shape.heads:
        return None
    return gpt.gpt_params(shape.num_layers, shape.hidden, shape.vocab, learned[0])


GROUPINGS: dict[str, Callable[[Op], str]] = {
    "module": lambda row: row.path.rpartition(".")[0] or row.path,
    "kind": lambda row: row.kind,
    "layer": lambda row: _layer_of(row.path),
    "pass": lambda row: row.pass_,
}


def _layer_of(path: str) -> str:
    """The path up to the numbered part: `model.layers.0-31`."""
    parts = path.split(".")
    numbered = [index for index, part in enumerate(parts) if part[:1].isdigit()]
    return ".".join(parts[: numbered[-1] + 1]) if numbered else path


def grouped_rows(ledger: Ledger, by: str) -> tuple[CountRow, ...]:
    """The ledger's rows added up. Raises UnknownNameError for a grouping that is none."""
    if by not in GROUPINGS:
        raise unknown_name("grouping", by, GROUPINGS, where="--by", hint="Choose " + ", ".join(GROUPINGS) + ".")
    key = GROUPINGS[by]
    formulas: dict[str, dict[str, None]] = {}
    for row in ledger.rows:
        formulas.setdefault(key(row), {})[row.formula] = None
    return tuple(
        CountRow(
            name=name,
            params=op.params,
            model_flops=op.model_flops,
            hardware_flops=op.hardware_flops,
            read_bytes=op.read_bytes,
            write_bytes=op.write_bytes,
            times=op.times,
            formulas=tuple(id_ for id_ in formulas[name] if id_),
        )
        for name, op in ledger.grouped(key).items()
    )


def build_ledger(arch: Arch, workload: Workload, convention: Convention, params: int | None = None) -> Ledger:
    """The ledger of one pass (or training step) over the batch.

    `params` replaces N where the convention is made of it. Raises InputError where the phase cannot be.
    """
    check_phase(arch, workload)
    at = Setting(arch, workload, convention)
    if convention.basis == "closed":
        _check_closed(at)
        return _closed_ledger(at)
    gradients = _Gradients()
    rows = tuple(row for placed in placed_layers(arch) for row in _rows(placed, at, gradients))
    if params is not None and convention.basis == "params":
        rows = _with_params(rows, at, params)
    ledger = Ledger(rows, convention.name, uncounted(at))
    assert ledger.params == arch.params_total, "rows must hold every parameter once"
    return ledger


def _with_params(rows: tuple[Op, ...], at: Setting, params: int) -> tuple[Op, ...]:
    """The same rows with the products of N replaced by one row a pass for the N that was given."""
    tokens = at.tokens(at.arch.main_stream)
    kept = tuple(
        replace(row, model_flops=0, hardware_flops=0, formula="") if row.formula == "ideal_flops" else row
        for row in rows
    )
    forward = counting.ideal_flops(2, params, tokens)
    passes = {FORWARD: (forward, forward)}
    if at.workload.phase == "train":
        passes[BACKWARD] = (2 * forward, 2 * forward)
        if at.workload.recompute == "full":
            passes[RECOMPUTE_PASS] = (0, forward)
    given = tuple(
        Op(GIVEN, "given", name, model, hardware, 0, 0, 0, 1, "ideal_flops")
        for name, (model, hardware) in passes.items()
    )
    return (*kept, *given)


def check_phase(arch: Arch, workload: Workload) -> None:
    """Refuse to decode with a model that produces no tokens one after another."""
    if workload.phase == "decode" and not arch.decodes:
        raise InputError(
            Fault(
                code="phase_impossible",
                message=f"{arch.name} does not decode",
                where="--phase",
                got="decode",
                expected="forward or train",
                hint="Only decoders produce one token after another.",
            )
        )


def _check_closed(at: Setting) -> None:
    """A closed formula knows no recompute but the full one."""
    if at.workload.recompute == "selective":
        raise InputError(
            Fault(
                code="convention_impossible",
                message=f"convention {at.convention.name} is one formula and has no selective recompute",
                where="--recompute",
                got="selective",
                expected="none or full",
            )
        )


def _closed_ledger(at: Setting) -> Ledger:
    """A trainer's closed formula as a ledger: one row a pass, and one row of parameters a leaf is not given."""
    formula = all_formulas()[at.convention.closed_form or ""]
    forward, backward = formula.function(**closed_form_values(at))
    tokens = at.tokens(at.arch.main_stream)
    passes = [(FORWARD, forward * tokens, at.arch.params_total)]
    if at.workload.phase == "train":
        passes.append((BACKWARD, backward * tokens, 0))
        if at.workload.recompute == "full":
            passes.append((RECOMPUTE_PASS, forward * tokens, 0))
    rows = tuple(
        Op(
            "model",
            "closed form",
            name,
            0 if name == RECOMPUTE_PASS else flops,
            flops,
            0,
            0,
            params,
            1,
            formula.id,
        )
        for name, flops, params in passes
    )
    return Ledger(rows, at.convention.name, ())


def closed_form_values(at: Setting) -> dict[str, int]:
    """The letters a closed formula asks for. Raises InputError where the model has no such letters."""
    shape = at.arch.shape
    if shape is None:
        raise InputError(
            Fault(
                code="convention_impossible",
                message=f"convention {at.convention.name} needs a transformer's L, h, H, V; {at.arch.name} has none",
                where="--convention",
                expected="causal, full, palm, 6n or 6n-all",
            )
        )
    known = {
        "num_layers": shape.num_layers, "hidden": shape.hidden, "heads": shape.heads, "kv_heads": shape.kv_heads,
        "head_dim": shape.head_dim, "ffn": shape.ffn, "vocab": shape.vocab, "params": at.arch.params_total,
        "seq": at.keys(at.arch.main_stream),
    }  # fmt: skip
    wanted = all_formulas()[at.convention.closed_form or ""].legend
    return {name: known[name] for name in wanted}
