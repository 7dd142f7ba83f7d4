"""Keras 3 models: parameters equal Keras's own count, FLOPs by hand, the rest listed."""

from __future__ import annotations

import functools
import os
import sys
import types
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
os.environ.setdefault("KERAS_BACKEND", "jax")
keras = pytest.importorskip("keras")

import suanli  # noqa: E402
from suanli.errors import ConfigError  # noqa: E402
from suanli.readers.keras_model import read_keras  # noqa: E402

pytestmark = pytest.mark.xdist_group("keras")  # what XLA has compiled once serves all of them
L = keras.layers


@pytest.fixture(autouse=True, scope="module")
def nothing_is_drawn() -> Iterator[None]:
    """Weights of zeros: XLA would compile the drawing of every shape, and no test looks at values."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("GlorotUniform", "Orthogonal", "RandomUniform"):
            patch.setattr(getattr(keras.initializers, name), "__call__", zeros)
        yield


def zeros(self: Any, shape: tuple[int, ...], dtype: str | None = None) -> Any:
    return np.zeros(shape, dtype or "float32")


def counted(monkeypatch: pytest.MonkeyPatch, model, shape=None, **options):
    module = types.ModuleType("my_keras_model")
    module.factory = lambda: model if shape is None else (model, shape)
    monkeypatch.setitem(sys.modules, "my_keras_model", module)
    return suanli.count("keras:my_keras_model:factory", convention="full", **options)


def single(layer, *shapes, **keywords):
    inputs = [keras.Input(shape) for shape in shapes]
    return keras.Model(inputs, layer(*inputs, **keywords))


@functools.cache
def of_layer(name: str) -> Any:
    """The model of a layer of the table."""
    make, shapes, _ = LAYERS[name]
    return single(make(), *shapes)


LAYERS = {
    "dense": (lambda: L.Dense(8), [(16,)], 2 * 16 * 8),
    "dense of a sequence": (lambda: L.Dense(8), [(10, 16)], 2 * 10 * 16 * 8),
    "einsum": (lambda: L.EinsumDense("abc,cde->abde", (None, 3, 5), bias_axes="de"), [(7, 4)], 2 * 7 * 4 * 15),
    "einsum of dots": (lambda: L.EinsumDense("...x,xy->...y", (9,)), [(6, 7, 4)], 2 * 42 * 4 * 9),
    "einsum apart": (lambda: L.EinsumDense("bic,icd->bid", (3, 5)), [(3, 4)], 2 * 3 * 4 * 5),
    "conv1d": (lambda: L.Conv1D(6, 3, padding="causal", dilation_rate=2), [(10, 4)], 2 * 10 * 6 * 4 * 3),
    "conv2d": (lambda: L.Conv2D(16, 3, strides=2), [(9, 9, 8)], 2 * 16 * 16 * 8 * 9),
    "grouped": (lambda: L.Conv2D(16, 3, groups=2, use_bias=False), [(9, 9, 8)], 2 * 49 * 16 * 4 * 9),
    "conv3d": (lambda: L.Conv3D(5, (1, 2, 3)), [(4, 5, 6, 2)], 2 * (4 * 4 * 4) * 5 * 2 * 6),
    "depthwise": (lambda: L.DepthwiseConv2D(3, depth_multiplier=2), [(9, 9, 8)], 2 * 49 * 16 * 9),
    "separable": (lambda: L.SeparableConv2D(5, 3, depth_multiplier=2), [(9, 9, 8)], 2 * 49 * 16 * 9 + 2 * 49 * 16 * 5),
    "transposed": (lambda: L.Conv2DTranspose(384, 2, strides=2), [(30, 96, 192)], 10_192_158_720 // 6),
    "lstm": (lambda: L.LSTM(128), [(250, 12)], 35_840_000),  # tnt#624
    "gru": (lambda: L.GRU(4, reset_after=True), [(7, 5)], 2 * 7 * 12 * 9),
    "gru before": (lambda: L.GRU(4, reset_after=False), [(7, 5)], 2 * 7 * 12 * 9),
    "rnn": (lambda: L.SimpleRNN(4), [(7, 5)], 2 * 7 * 4 * 9),
    "cells": (lambda: L.RNN([L.LSTMCell(4), L.LSTMCell(3)]), [(7, 5)], 2 * 7 * (16 * 9 + 12 * 7)),
    "bidirectional": (lambda: L.Bidirectional(L.LSTM(4, return_sequences=True)), [(7, 5)], 2 * 2 * 7 * 16 * 9),
    "time": (lambda: L.TimeDistributed(L.Conv2D(6, 3)), [(5, 9, 9, 2)], 5 * 2 * 49 * 6 * 2 * 9),
    "embedding": (lambda: L.Embedding(100, 16), [(7,)], 0),
    "batch norm": (L.BatchNormalization, [(9, 9, 8)], 0),
    "layer norm": (L.LayerNormalization, [(7, 8)], 0),
    "rms norm": (L.RMSNormalization, [(7, 8)], 0),
    "group norm": (lambda: L.GroupNormalization(2), [(9, 9, 8)], 0),
    "pool": (L.MaxPooling2D, [(8, 8, 3)], 0),
    "prelu": (L.PReLU, [(8, 3)], 0),
}  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    model = of_layer(name)
    found = counted(monkeypatch, model, batch=3)
    assert found.flops.model == 3 * LAYERS[name][2]
    assert found.params.total == model.count_params()
    trainable = sum(int(weight.value.size) for weight in model.trainable_weights)
    assert found.params.trainable == trainable
    assert not any("lower bound" in note for note in found.notes)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("value", [None, 6])
def test_multi_head_attention(monkeypatch: pytest.MonkeyPatch, bias: bool, value: int | None) -> None:
    layer = L.MultiHeadAttention(4, 5, value_dim=value, use_bias=bias)
    model = single(layer, (7, 16), (9, 12))
    wide = value or 5
    products = 7 * 16 * 20 + 9 * 12 * 20 + 9 * 12 * 4 * wide + 7 * 4 * wide * 16 + 63 * 4 * (5 + wide)
    found = counted(monkeypatch, model)
    assert (found.flops.model, found.params.total) == (2 * products, model.count_params())


def test_grouped_query_attention_and_causal_masks(monkeypatch: pytest.MonkeyPatch) -> None:
    inputs = keras.Input((8, 16))
    model = keras.Model(inputs, L.GroupQueryAttention(5, 4, 2)(inputs, inputs, use_causal_mask=True))
    linear = 2 * 8 * 16 * (20 + 10 + 10 + 20)
    found = counted(monkeypatch, model)
    assert (found.flops.model, found.params.total) == (linear + 2 * 64 * 4 * 10, model.count_params())
    causal = suanli.count("keras:my_keras_model:factory", convention="causal")
    assert causal.flops.model == linear + 2 * 36 * 4 * 10


def test_shared_layers_have_their_parameters_once(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b, shared = keras.Input((5, 8)), keras.Input((3, 8)), L.Dense(4)
    model = keras.Model([a, b], L.Concatenate(axis=1)([shared(a), shared(b)]))
    found = counted(monkeypatch, model)
    assert (found.flops.model, found.params.total) == (2 * 8 * 8 * 4, 36)


def test_an_open_length_is_seq(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = keras.Input((None,), dtype="int32")
    x = L.Embedding(50, 16)(tokens)
    x = L.MultiHeadAttention(2, 8)(x, x, use_causal_mask=True)
    model = keras.Model(tokens, L.Dense(50)(L.LayerNormalization()(x)))
    found = counted(monkeypatch, model, seq=11, batch=2, phase="train")
    forward = 2 * (2 * 11 * (4 * 16 * 16 + 16 * 50) + 2 * 121 * 2 * 16)
    assert (found.flops.forward, found.flops.backward) == (forward, 2 * forward)
    assert found.params.total == model.count_params()


def test_open_sizes_are_given_with_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    model = keras.Sequential([keras.Input((None, None, 3)), L.Conv2D(4, 3), L.GlobalAveragePooling2D(), L.Dense(2)])
    found = counted(monkeypatch, model)
    assert "lower bound: Conv2D" in " ".join(found.notes) and "its sizes are not known" in " ".join(found.notes)
    assert found.params.total == model.count_params()
    found = counted(monkeypatch, model, (10, 12, 3))
    assert found.flops.model == 2 * 8 * 10 * 4 * 27 + 2 * 4 * 2
    assert not any("lower bound" in note for note in found.notes)


def test_nested_models_and_frozen_layers(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = keras.Sequential([keras.Input((8,)), L.Dense(4), L.BatchNormalization()], name="inner")
    inner.trainable = False
    model = keras.Sequential([keras.Input((8,)), inner, L.Dense(2)])
    found = counted(monkeypatch, model, phase="train")
    assert found.params.total == model.count_params() == 36 + 16 + 10
    assert found.params.trainable == 10
    assert any(row.name.startswith("inner") for row in found.rows)


def test_what_has_no_formula_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Mine(L.Layer):
        def build(self, shape):
            self.w = self.add_weight(shape=(shape[-1], 3))

        def call(self, x):
            return x @ self.w

    inputs = keras.Input((8, 8))
    x = Mine()(inputs)
    x = keras.ops.matmul(x, keras.ops.transpose(x, (0, 2, 1)))
    model = keras.Model(inputs, L.Lambda(lambda y: y * 2, output_shape=(8, 8))(x))
    found = counted(monkeypatch, model)
    listed = [note for note in found.notes if note.startswith("lower bound")]
    assert [note.split()[2] for note in listed] == ["Mine", "Matmul", "Lambda"]
    assert found.params.total == 24


def test_a_subclassed_model_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Sub(keras.Model):
        def call(self, x):
            return x

    with pytest.raises(ConfigError, match="shows no graph of its layers"):
        counted(monkeypatch, Sub())
    with pytest.raises(ConfigError, match="returned no Keras model"):
        counted(monkeypatch, 3)


# --- against the function that JAX runs ---------------------------------------------------------------------------


def by_jaxpr(model) -> int:
    """FLOPs of the model's jaxpr, which knows nothing of layers."""
    import jax

    from suanli.readers.jax_function import read_jaxpr

    inputs = [jax.numpy.zeros((1, *tensor.shape[1:])) for tensor in model.inputs]
    graph = read_jaxpr(jax.make_jaxpr(lambda *x: model(x[0] if len(x) == 1 else list(x), training=False))(*inputs))
    assert graph.missing == ()
    return sum(row.model_flops for row in graph.rows)


# Keras takes one more step of stacked cells to learn their shapes; an embedding wants whole numbers.
@pytest.mark.parametrize("name", sorted(LAYERS.keys() - {"cells", "embedding"}))
def test_a_layer_against_its_jaxpr(name: str) -> None:
    assert by_jaxpr(of_layer(name)) == LAYERS[name][2]


@pytest.mark.full
@pytest.mark.parametrize(("name", "params"), [("MobileNetV2", 3_538_984), ("ResNet50", 25_636_712)])
def test_applications(monkeypatch: pytest.MonkeyPatch, name: str, params: int) -> None:
    model = getattr(keras.applications, name)(weights=None, input_shape=(64, 64, 3))
    found = counted(monkeypatch, model)
    assert found.params.total == model.count_params() == params
    assert found.flops.model == by_jaxpr(model)
    assert read_keras(model).notes == ()
