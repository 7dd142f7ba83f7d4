"""Diffusion, message passing and recommenders: dense parts exact, gathers and scatters as bytes of what they touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suanli
from suanli.readers.torch_module import Traced, trace

torch = pytest.importorskip("torch")
nn, F = torch.nn, torch.nn.functional
pytestmark = pytest.mark.torch
I64 = torch.int64


class Call(nn.Module):
    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def moved(traced: Traced, pass_: str = "forward") -> dict[str, tuple[int, int]]:
    """Bytes read and written by gathers and scatters, and that they multiply nothing."""
    assert traced.uncounted == ()
    found: dict[str, tuple[int, int]] = {}
    for row in traced.ledger.rows:
        if row.kind in ("gather", "scatter") and row.pass_ == pass_:
            assert row.hardware_flops == 0
            read, written = found.get(row.kind, (0, 0))
            found[row.kind] = (read + row.read_bytes, written + row.write_bytes)
    return found


X, INDEX = (lambda: torch.zeros(10, 4)), (lambda *size: torch.zeros(size or (3,), dtype=I64))
SOURCE = lambda: torch.zeros(3, 4)  # noqa: E731
ROWS, IDS = 3 * 4 * 4, 3 * 8  # three rows of four floats, and their numbers
WHOLE, EACH = 10 * 4 * 4, 3 * 4 * 8  # the table, and an index for every element

# name, function, inputs, gather (read, written), scatter (read, written)
Moved = tuple[int, int] | None
OPERATORS: list[tuple[str, Callable[..., Any], Callable[[], Any], Moved, Moved]] = [
    ("embedding", lambda x, i: F.embedding(i, x), lambda: (X(), INDEX()), (IDS + ROWS, ROWS), None),
    ("index_select", lambda x, i: x.index_select(0, i), lambda: (X(), INDEX()), (IDS + ROWS, ROWS), None),
    ("indexing", lambda x, i: x[i], lambda: (X(), INDEX()), (IDS + ROWS, ROWS), None),
    ("gather", lambda x, i: x.gather(0, i), lambda: (X(), INDEX(3, 4)), (EACH + ROWS, ROWS), None),
    ("take_along_dim", lambda x, i: torch.take_along_dim(x, i, 0), lambda: (X(), INDEX(3, 4)), (EACH + ROWS, ROWS),
     None),
    ("take", lambda x, i: x.take(i), lambda: (X(), INDEX(3, 4)), (EACH + ROWS, ROWS), None),
    # three bags of two rows: six rows read, three written beside the four small tables of the kernel
    ("embedding_bag", lambda x, i: F.embedding_bag(i, x, mode="sum"), lambda: (X(), INDEX(3, 2)),
     (6 * 8 + 3 * 8 + 2 * ROWS, None), None),  # type: ignore[list-item]
    ("scatter_add in place", lambda x, i, s: x.scatter_add_(0, i, s), lambda: (X(), INDEX(3, 4), SOURCE()), None,
     (EACH + 2 * ROWS, ROWS)),
    # out of place the target is copied first
    ("scatter_add", lambda x, i, s: x.scatter_add(0, i, s), lambda: (X(), INDEX(3, 4), SOURCE()), None,
     (WHOLE + EACH + 2 * ROWS, WHOLE + ROWS)),
    ("scatter", lambda x, i, s: x.scatter(0, i, s), lambda: (X(), INDEX(3, 4), SOURCE()), None,
     (WHOLE + EACH + ROWS, WHOLE + ROWS)),
    ("scatter of a number", lambda x, i: x.scatter_(0, i, 1.0), lambda: (X(), INDEX(3, 4)), None, (EACH, ROWS)),
    ("scatter_reduce", lambda x, i, s: x.scatter_reduce(0, i, s, "amax"), lambda: (X(), INDEX(3, 4), SOURCE()), None,
     (WHOLE + EACH + 2 * ROWS, WHOLE + ROWS)),
    ("index_add", lambda x, i, s: x.index_add(0, i, s), lambda: (X(), INDEX(), SOURCE()), None,
     (WHOLE + IDS + 2 * ROWS, WHOLE + ROWS)),
    ("index_add in place", lambda x, i, s: x.index_add_(0, i, s), lambda: (X(), INDEX(), SOURCE()), None,
     (IDS + 2 * ROWS, ROWS)),
    ("index_copy", lambda x, i, s: x.index_copy(0, i, s), lambda: (X(), INDEX(), SOURCE()), None,
     (WHOLE + IDS + ROWS, WHOLE + ROWS)),
    ("index_fill", lambda x, i: x.index_fill_(0, i, 1.0), lambda: (X(), INDEX()), None, (IDS, ROWS)),
    ("index_put, added", lambda x, i, s: x.index_put((i,), s, accumulate=True), lambda: (X(), INDEX(), SOURCE()), None,
     (WHOLE + IDS + 2 * ROWS, WHOLE + ROWS)),
    ("assignment", lambda x, i, s: x.__setitem__(i, s), lambda: (X(), INDEX(), SOURCE()), None, (IDS + ROWS, ROWS)),
]  # fmt: skip


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize(("name", "function", "inputs", "gather", "scatter"), OPERATORS, ids=[r[0] for r in OPERATORS])
def test_an_operator(name: str, function: Any, inputs: Any, gather: Moved, scatter: Moved, device: str) -> None:
    """Never the whole table, nor a product, nor something uncounted."""
    traced = trace(Call(function), inputs(), device=device)
    found = moved(traced)
    assert traced.hardware_flops == 0
    for kind, expected in (("gather", gather), ("scatter", scatter)):
        read, written = found.get(kind, (None, None))
        assert read == (expected[0] if expected else None)
        assert expected is None or expected[1] in (None, written)


@given(st.integers(1, 50), st.integers(1, 8), st.integers(1, 20), st.sampled_from(["cpu", "meta"]))
@settings(max_examples=15, deadline=None)
def test_a_lookup_costs_what_it_picks(rows: int, wide: int, count: int, device: str) -> None:
    """And its gradient fills a table of zeros, to whose rows what comes back is added."""
    traced = trace(nn.Embedding(rows, wide), torch.zeros(count, dtype=I64), device=device, train=True)
    picked, ids = count * wide * 4, count * 8
    assert moved(traced) == {"gather": (ids + picked, picked)}
    assert moved(traced, "backward") == {"scatter": (ids + 2 * picked, rows * wide * 4 + picked)}


# --- message passing ----------------------------------------------------------------------------------------------


class Messages(nn.Module):
    """h'ᵥ = W_s hᵥ + Σ W_m [hᵤ, eᵤᵥ]: messages along edges, summed where they arrive."""

    def __init__(self, wide: int, edge: int, by: str) -> None:
        super().__init__()
        self.message, self.own, self.by = nn.Linear(wide + edge, wide, bias=False), nn.Linear(wide, wide), by

    def forward(self, h: Any, edges: Any, features: Any) -> Any:
        sent = self.message(torch.cat((h.index_select(0, edges[0]), features), -1))
        if self.by == "index_add":
            arrived = torch.zeros_like(h).index_add(0, edges[1], sent)
        else:
            arrived = torch.zeros_like(h).scatter_add(0, edges[1][:, None].expand_as(sent), sent)
        return self.own(h) + arrived


class GraphNet(nn.Module):
    """Layers of message passing, and the mean over nodes read out."""

    def __init__(self, layers: int, wide: int, edge: int, by: str) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Messages(wide, edge, by) for _ in range(layers))
        self.out = nn.Linear(wide, 3)

    def forward(self, h: Any, edges: Any, features: Any) -> Any:
        for layer in self.layers:
            h = layer(h, edges, features).relu()
        return self.out(h.mean(0))


@pytest.mark.parametrize("by", ["index_add", "scatter_add"])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_message_passing(by: str, device: str) -> None:
    """20 nodes of 8, 50 edges of 2, 3 layers."""
    nodes, edges, wide, edge, layers = 20, 50, 8, 2, 3
    inputs = (torch.zeros(nodes, wide), torch.zeros(2, edges, dtype=I64), torch.zeros(edges, edge))
    traced = trace(GraphNet(layers, wide, edge, by), inputs, device=device)
    dense = layers * (2 * edges * (wide + edge) * wide + 2 * nodes * wide * wide) + 2 * wide * 3
    assert traced.model_flops == dense
    sent, table = edges * wide * 4, nodes * wide * 4
    index = edges * 8
    assert moved(traced) == {
        "gather": (layers * (index + sent), layers * sent),
        "scatter": (layers * (table + index + 2 * sent), layers * (table + sent)),
    }


def test_attention_over_neighbours() -> None:
    """A graph attention layer: scores from gathered ends, a softmax over each node's edges by scatters."""

    class Neighbours(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.up, self.score = nn.Linear(8, 8, bias=False), nn.Linear(16, 1, bias=False)

        def forward(self, h: Any, edges: Any) -> Any:
            h = self.up(h)
            source, target = h[edges[0]], h[edges[1]]
            score = self.score(torch.cat((source, target), -1)).squeeze(-1)
            top = h.new_zeros(20).scatter_reduce(0, edges[1], score, "amax", include_self=False)
            weight = (score - top[edges[1]]).exp()
            total = h.new_zeros(20).scatter_add(0, edges[1], weight)
            return torch.zeros_like(h).index_add(0, edges[1], source * (weight / total[edges[1]])[:, None])

    for device in ("cpu", "meta"):
        traced = trace(Neighbours(), (torch.zeros(20, 8), torch.zeros(2, 50, dtype=I64)), device=device, train=True)
        assert traced.uncounted == ()
        forward = 2 * 20 * 64 + 2 * 50 * 16
        assert traced.ledger.flops("forward") == forward
        assert traced.ledger.flops("backward") == 2 * 20 * 64 + 2 * 2 * 50 * 16  # the nodes need no gradient


# --- recommenders -------------------------------------------------------------------------------------------------


class Recommender(nn.Module):
    """Bags of categories and dense features; dot products of every two; a network on top."""

    def __init__(self, tables: list[int], wide: int, dense: int) -> None:
        super().__init__()
        self.tables = nn.ModuleList(nn.EmbeddingBag(rows, wide, mode="sum") for rows in tables)
        self.bottom = nn.Sequential(nn.Linear(dense, 16), nn.ReLU(), nn.Linear(16, wide))
        parts = len(tables) + 1
        self.top = nn.Sequential(nn.Linear(wide + parts * (parts - 1) // 2, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, dense: Any, ids: Any) -> Any:
        low = self.bottom(dense)
        parts = torch.stack((low, *(table(ids[:, i]) for i, table in enumerate(self.tables))), 1)
        dots = torch.bmm(parts, parts.transpose(1, 2))
        row, column = torch.tril_indices(parts.shape[1], parts.shape[1], -1)
        return self.top(torch.cat((low, dots[:, row.to(dots.device), column.to(dots.device)]), 1))


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_recommender(device: str) -> None:
    """Batch 32, 13 dense features, three tables of a million, four and nine rows, five categories a bag."""
    batch, wide, parts, bag = 32, 8, 4, 5
    with torch.device("meta" if device == "meta" else "cpu"):
        model = Recommender([10**6, 4, 9], wide, 13)
    traced = trace(model, (torch.zeros(batch, 13), torch.zeros(batch, 3, bag, dtype=I64)), device=device)
    pairs = parts * (parts - 1) // 2
    layers = 13 * 16 + 16 * wide + (wide + pairs) * 16 + 16 * 1
    assert traced.model_flops == 2 * batch * layers + 2 * batch * parts * parts * wide
    assert traced.params.embedding == (10**6 + 4 + 9) * wide
    read = sum(row.read_bytes for row in traced.ledger.rows if row.kind == "gather" and "tables" in row.path)
    looked_up = batch * bag * wide * 4 + batch * bag * 8 + batch * 8  # rows, ids, where each bag begins
    assert read == 3 * looked_up  # and not the 32 MB of the first table


# --- diffusion ----------------------------------------------------------------------------------------------------


class Residual(nn.Module):
    """Two 3×3 convolutions, the time between them."""

    def __init__(self, inner: int, outer: int, time: int) -> None:
        super().__init__()
        self.first, self.second = nn.Conv2d(inner, outer, 3, padding=1), nn.Conv2d(outer, outer, 3, padding=1)
        self.norms = nn.ModuleList((nn.GroupNorm(4, inner), nn.GroupNorm(4, outer)))
        self.time = nn.Linear(time, outer)
        self.skip = nn.Conv2d(inner, outer, 1) if inner != outer else nn.Identity()

    def forward(self, x: Any, time: Any) -> Any:
        h = self.first(F.silu(self.norms[0](x))) + self.time(time)[:, :, None, None]
        return self.skip(x) + self.second(F.silu(self.norms[1](h)))


class Attend(nn.Module):
    """Attention of a picture's places to each other, or to a text."""

    def __init__(self, wide: int, heads: int, text: int | None = None) -> None:
        super().__init__()
        self.heads, given = heads, wide if text is None else text
        self.q, self.out = nn.Linear(wide, wide, bias=False), nn.Linear(wide, wide)
        self.k, self.v = nn.Linear(given, wide, bias=False), nn.Linear(given, wide, bias=False)

    def forward(self, x: Any, text: Any = None) -> Any:
        places = x.flatten(2).transpose(1, 2) if x.dim() == 4 else x
        given = places if text is None else text
        split = [each.unflatten(-1, (self.heads, -1)).transpose(1, 2) for each in
                 (self.q(places), self.k(given), self.v(given))]  # fmt: skip
        mixed = self.out(F.scaled_dot_product_attention(*split).transpose(1, 2).flatten(2))
        return x + (mixed.transpose(1, 2).unflatten(2, x.shape[2:]) if x.dim() == 4 else mixed)


class UNet(nn.Module):
    """One step down and up, attention in the middle, the picture of each size handed across."""

    def __init__(self, wide: int, time: int, text: int) -> None:
        super().__init__()
        self.time = nn.Sequential(nn.Linear(wide, time), nn.SiLU(), nn.Linear(time, time))
        self.enter, self.leave = nn.Conv2d(3, wide, 3, padding=1), nn.Conv2d(wide, 3, 3, padding=1)
        self.down, self.up = nn.Conv2d(wide, wide, 3, stride=2, padding=1), nn.Conv2d(wide, wide, 3, padding=1)
        self.before, self.after = Residual(wide, wide, time), Residual(2 * wide, wide, time)
        self.own, self.cross = Attend(wide, 4), Attend(wide, 4, text)

    def forward(self, x: Any, t: Any, text: Any) -> Any:
        time = self.time(torch.cat((t.sin(), t.cos()), -1))
        high = self.before(self.enter(x), time)
        low = self.cross(self.own(self.down(high)), text)
        low = self.up(F.interpolate(low, scale_factor=2.0))
        return self.leave(self.after(torch.cat((high, low), 1), time))


def unet_flops(batch: int, side: int, wide: int, time: int, text: int, words: int) -> int:
    """Convolutions, time, and attention over the places of the small picture."""
    area, small = batch * side * side, batch * side * side // 4
    convs = 9 * (2 * 3 * wide * area + wide * wide * small + wide * wide * area)  # in and out, down, up
    convs += area * 9 * (2 * wide * wide + (2 * wide + wide) * wide) + area * 2 * wide * wide  # residuals, the skip
    times = batch * (wide * time + time * time + 2 * time * wide)
    own = 4 * small * wide * wide + 2 * small * (small // batch) * wide
    cross = 2 * small * wide * wide + 2 * batch * words * text * wide + 2 * small * words * wide
    return 2 * (convs + times + own + cross)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("train", [False, True])
def test_a_unet_with_attention(device: str, train: bool) -> None:
    batch, side, wide, time, text, words = 2, 8, 16, 24, 10, 7
    inputs = torch.zeros(batch, 3, side, side), torch.zeros(batch, wide // 2), torch.zeros(batch, words, text)
    traced = trace(UNet(wide, time, text), inputs, device=device, train=train)
    forward = unet_flops(batch, side, wide, time, text, words)
    assert traced.uncounted == ()
    assert traced.ledger.flops("forward") == forward
    if train:  # all twice but what reads the picture, the time and, for keys and values, the text
        unread = 2 * (9 * 3 * wide * batch * side * side + batch * wide * time + 2 * batch * words * text * wide)
        assert traced.ledger.flops("backward") == 2 * forward - unread


class DiTBlock(nn.Module):
    """A transformer block whose norms are moved by the time."""

    def __init__(self, wide: int) -> None:
        super().__init__()
        self.move, self.attend = nn.Linear(wide, 6 * wide), Attend(wide, 4)
        self.mlp = nn.Sequential(nn.Linear(wide, 4 * wide), nn.GELU(), nn.Linear(4 * wide, wide))
        self.norm = nn.LayerNorm(wide, elementwise_affine=False)

    def forward(self, x: Any, time: Any) -> Any:
        a, b, c, d, e, f = self.move(F.silu(time))[:, None].chunk(6, -1)
        x = x + a * self.attend(self.norm(x) * (1 + b) + c)
        return x + d * self.mlp(self.norm(x) * (1 + e) + f)


class DiT(nn.Module):
    """Patches, a class and a time, blocks, and patches again."""

    def __init__(self, wide: int, layers: int, classes: int) -> None:
        super().__init__()
        self.patches, self.label = nn.Conv2d(4, wide, 2, 2), nn.Embedding(classes, wide)
        self.time = nn.Sequential(nn.Linear(8, wide), nn.SiLU(), nn.Linear(wide, wide))
        self.blocks, self.out = nn.ModuleList(DiTBlock(wide) for _ in range(layers)), nn.Linear(wide, 2 * 2 * 8)

    def forward(self, x: Any, t: Any, label: Any) -> Any:
        h, time = self.patches(x).flatten(2).transpose(1, 2), self.time(t) + self.label(label)
        for block in self.blocks:
            h = block(h, time)
        return self.out(h)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_a_diffusion_transformer(device: str, whole: bool) -> None:
    """Also with its equal blocks run once and twice."""
    batch, side, wide, layers, classes = 2, 8, 16, 5, 1000
    tokens = (side // 2) ** 2
    inputs = torch.zeros(batch, 4, side, side), torch.zeros(batch, 8), torch.zeros(batch, dtype=I64)
    traced = trace(DiT(wide, layers, classes), inputs, device=device, whole=whole)
    block = 6 * wide * wide + tokens * (4 + 8) * wide * wide + 2 * tokens * tokens * wide
    ends = tokens * 16 * wide + 8 * wide + wide * wide + tokens * wide * 32
    assert traced.model_flops == 2 * batch * (layers * block + ends)
    assert moved(traced) == {"gather": (batch * (8 + 4 * wide), batch * 4 * wide)}


def test_by_kind_from_the_front_door() -> None:
    books = suanli.count(nn.EmbeddingBag(1000, 4), input=torch.zeros(8, 5, dtype=I64), by="kind")
    (row,) = [row for row in books.rows if row.name == "gather"]
    assert (row.model_flops, row.read_bytes) == (0, 8 * 5 * (4 * 4 + 8) + 8 * 8)
    assert not books.lower_bound
