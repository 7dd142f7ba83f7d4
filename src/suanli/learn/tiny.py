"""A small GPT-2 with random weights, run in numpy: every product it makes is entered in a book of FLOPs.

Its layers, names and shapes are those of the config that `count` reads, so that the two books can be compared.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from suanli.formulas.counting import linear_flops
from suanli.nouns.arch import Arch
from suanli.readers.model import read_model

LAYERS, HEADS, WIDTH, POSITIONS, FFN = 2, 4, 64, 128, 256
DTYPE = "fp32"  # numpy's float32: scalars beside arrays are Python's, which widen nothing
_SHARP = 8.0  # makes the scores of random weights large enough that attention is seen to choose
_EPSILON = 1e-5

Array = Any
Cache = list[tuple[Array, Array]]


def config(vocab: int) -> dict[str, Any]:
    """The model as a config that `count` reads."""
    return {
        "model_type": "gpt2", "n_layer": LAYERS, "n_head": HEADS, "n_embd": WIDTH, "n_positions": POSITIONS,
        "n_inner": FFN, "vocab_size": vocab, "tie_word_embeddings": True,
    }  # fmt: skip


def arch_of(vocab: int) -> Arch:
    """The same as an architecture."""
    return read_model(config(vocab))


@dataclass
class Tiny:
    """The model. `flops` adds up what every product cost, by the name of its step; `shapes` is what each gave last."""

    vocab: int
    seed: int = 0
    weights: dict[str, Array] = field(init=False)
    flops: Counter[str] = field(init=False, default_factory=Counter)
    shapes: dict[str, tuple[int, ...]] = field(init=False, default_factory=dict)
    attention: list[Array] = field(init=False, default_factory=list)

    def __post_init__(self) -> None:
        """Draw the weights."""
        import numpy as np  # noqa: PLC0415

        draw = np.random.default_rng(self.seed)

        def normal(*shape: int) -> Array:
            return draw.standard_normal(shape, dtype=np.float32) / np.float32(shape[0] ** 0.5)

        self.weights = {"wte": normal(self.vocab, WIDTH) * 2, "wpe": normal(POSITIONS, WIDTH)}
        for layer in range(LAYERS):
            shapes = {"c_attn": (WIDTH, 3 * WIDTH), "c_proj": (WIDTH, WIDTH), "c_fc": (WIDTH, FFN), "mlp": (FFN, WIDTH)}
            self.weights |= {f"{layer}.{name}": normal(*shape) for name, shape in shapes.items()}

    def run(self, tokens: list[int], cache: Cache | None = None) -> Array:
        """Logits of the token after the last. With a cache, `tokens` are the new ones, and it grows by them."""
        import numpy as np  # noqa: PLC0415

        held = cache[0][0].shape[1] if cache else 0
        x = self._seen("embed", self.weights["wte"][np.asarray(tokens)])
        x = self._seen("position", x + self.weights["wpe"][held : held + len(tokens)])
        self.attention = []
        for layer in range(LAYERS):
            x = x + self._attend(layer, _normed(x), cache)
            x = x + self._think(layer, _normed(x))
        return self._product("head", _normed(x)[-1:], self.weights["wte"].T)[0]

    def _attend(self, layer: int, x: Array, cache: Cache | None) -> Array:
        """Every position looks back: scores with all keys, softmax, a mean of values."""
        import numpy as np  # noqa: PLC0415

        qkv = self._product("qkv", x, self.weights[f"{layer}.c_attn"])
        q, k, v = (each.reshape(len(x), HEADS, -1).swapaxes(0, 1) for each in np.split(qkv, 3, axis=-1))
        if cache is not None:
            if layer < len(cache):
                k, v = (np.concatenate(pair, axis=1) for pair in zip(cache[layer], (k, v), strict=True))
                cache[layer] = (k, v)
            else:
                cache.append((k, v))
        scores = self._product("attention", q, k.swapaxes(1, 2)) * _SHARP / math.sqrt(q.shape[-1])
        late = np.triu(np.ones(scores.shape[1:], dtype=bool), k.shape[1] - len(x) + 1)  # keys after the query
        chances = softmax(np.where(late, -np.inf, scores))
        self.attention.append(chances)
        seen = self._product("attention", chances, v).swapaxes(0, 1).reshape(len(x), WIDTH)
        return self._product("out", seen, self.weights[f"{layer}.c_proj"])

    def _think(self, layer: int, x: Array) -> Array:
        """Each position by itself, four times as wide inside."""
        import numpy as np  # noqa: PLC0415

        wide = self._product("mlp", x, self.weights[f"{layer}.c_fc"])
        gelu = wide / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (wide + 0.044715 * wide**3)))
        return self._product("mlp", gelu, self.weights[f"{layer}.mlp"])

    def _product(self, step: str, left: Array, right: Array) -> Array:
        """A product of matrices (of every head), entered in the book."""
        heads = left.shape[0] if left.ndim > 2 else 1
        self.flops[step] += heads * linear_flops(left.shape[-2], left.shape[-1], right.shape[-1])
        return self._seen(step, left @ right)

    def _seen(self, step: str, result: Array) -> Array:
        self.shapes.setdefault(step, result.shape)
        return result


def softmax(scores: Array) -> Array:
    """Positive numbers that add up to 1, the larger the score the larger."""
    import numpy as np  # noqa: PLC0415

    grown = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return grown / grown.sum(axis=-1, keepdims=True)


def _normed(x: Array) -> Array:
    import numpy as np  # noqa: PLC0415

    centred = x - x.mean(axis=-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + _EPSILON)


def generate(model: Tiny, tokens: list[int], count: int, *, cached: bool) -> list[int]:
    """Tokens put out one after another, always the likeliest: with a KV cache, or all of it again for each."""
    cache: Cache | None = [] if cached else None
    out: list[int] = []
    fresh = tokens
    for _ in range(count):
        out.append(int(model.run(fresh, cache).argmax()))
        fresh = out[-1:] if cached else tokens + out
    return out


def cache_bytes(cache: Cache) -> int:
    """Bytes of keys and values."""
    return sum(each.nbytes for pair in cache for each in pair)
