"""An engine's pages: what a sequence takes of memory that is given out in blocks of positions."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from suanli.formulas.serving import full_blocks, group_layers, state_block, window_blocks
from suanli.nouns.engine import Engine
from suanli.plan.serving.kept import CROSS, STATE, WINDOW, Held


@dataclass(frozen=True)
class Paged:
    """A sequence in pages: how many, of how many bytes each over the layers that share one."""

    blocks: int
    page_bytes: Fraction
    extra_bytes: int = 0  # kept outside the pool: an encoder's keys and values

    @property
    def total_bytes(self) -> Fraction:
        """One sequence."""
        return self.blocks * self.page_bytes + self.extra_bytes


@dataclass(frozen=True)
class Class:
    """Layers that keep the same positions: all (`window` None), a window, or a state (`token_bytes` 0)."""

    window: int | None
    layers: int
    positions: int
    token_bytes: Fraction = Fraction(0)
    state_bytes: int = 0


def classes_of(held: Held) -> tuple[Class, ...]:
    """Layers by what they keep. Leaves of one layer that keep the same positions share its page."""
    found: dict[int | str | None, list[tuple[Fraction, int, int, int]]] = {}
    for layer, count in held.layers:
        merged: dict[int | str | None, tuple[Fraction, int, int]] = {}
        for kept in layer:
            if kept.kind == CROSS:
                continue
            key = STATE if kept.kind == STATE else kept.window if kept.kind == WINDOW else None
            token, state, positions = merged.get(key, (Fraction(0), 0, 0))
            states = kept.copies * kept.total_bytes if key == STATE else 0
            merged[key] = (token + kept.copies * kept.token_bytes, state + states, max(positions, kept.positions))
        for key, (token, state, positions) in merged.items():
            found.setdefault(key, []).append((token, state, positions, count))
    return tuple(
        Class(
            window=key if isinstance(key, int) else None,
            layers=sum(count for *_, count in rows),
            positions=max(positions for *_, positions, _ in rows),
            token_bytes=max(token for token, *_ in rows),
            state_bytes=max(state for _, state, *_ in rows),
        )
        for key, rows in found.items()
    )


def outside(held: Held) -> int:
    """Bytes of what no pool gives out."""
    return sum(times * kept.total_bytes for kept, times in held.leaves() if kept.kind == CROSS)


def paged(held: Held, engine: Engine, rule: str) -> Paged:
    """One sequence under a rule for kinds of layers side by side (`nouns/engine.py`)."""
    classes = classes_of(held)
    if not classes:
        return Paged(0, Fraction(0), outside(held))
    if _uniform(classes, rule):
        token = sum((times * kept.token_bytes for kept, times in held.leaves()), Fraction(0))
        return Paged(full_blocks(classes[0].positions, engine.block_tokens), token * engine.block_tokens, outside(held))
    if rule in ("grouped", "unified"):
        return _grouped(classes, engine, outside(held), windows=rule == "grouped")
    return Paged(1, _pools(held, engine), outside(held))


def _uniform(classes: tuple[Class, ...], rule: str) -> bool:
    """Whether one table of blocks serves every layer: all keep every position, or windows are made to."""
    full = any(each.window is None for each in classes)
    return not any(each.state_bytes for each in classes) and full and (len(classes) == 1 or rule == "unified")


def _grouped(classes: tuple[Class, ...], engine: Engine, extra: int, *, windows: bool) -> Paged:
    """Groups of equally many layers over one pool of equal pages. Without `windows` those beside full attention hold
    every position."""
    token = max(each.token_bytes for each in classes)
    state = max(each.state_bytes for each in classes)
    block = engine.block_tokens
    if token and state:
        block = max(block, state_block(state, token, block))
    page = max(token * block, Fraction(state))
    layers = group_layers([each.layers for each in classes])
    full = any(each.window is None and each.token_bytes for each in classes)
    blocks = 0
    for each in classes:
        seen = each.window if windows or not full else None
        blocks += full_blocks(each.layers, layers) * _need(each, seen, page, engine.chunk_tokens)
    return Paged(blocks, layers * page, extra)


def _need(each: Class, window: int | None, page: Fraction, chunk: int) -> int:
    """Pages of one layer."""
    if not each.token_bytes:
        return 1
    block = int(page // each.token_bytes)
    if window is None:
        return full_blocks(each.positions, block)
    return window_blocks(each.positions, window, chunk, block)


def _pools(held: Held, engine: Engine) -> Fraction:
    """A pool for each kind of layer: states as they are, windows by the engine's rule."""
    total = Fraction(0)
    for kept, times in held.leaves():
        if kept.kind == CROSS:
            continue
        if kept.kind == STATE:
            total += times * kept.total_bytes
            continue
        total += times * kept.token_bytes * _slots(kept.positions, kept.window, engine)
    return total


def _slots(positions: int, window: int | None, engine: Engine) -> int:
    """Positions that one layer's pages hold."""
    block = engine.block_tokens
    whole = full_blocks(positions, block) * block
    if window is None:
        return whole
    if engine.window_rule == "exact":
        return min(positions, window)
    if engine.window_rule == "chunk":
        return window_blocks(positions, window, engine.chunk_tokens, block) * block
    return min(whole, (full_blocks(window, block) + 1) * block)
