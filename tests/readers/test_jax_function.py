"""JAX functions: products by hand, loops by their length, gradients, recomputation, and what cannot be known."""

from __future__ import annotations

import sys
import types
from pathlib import Path

import pytest

import suanli
from suanli.errors import ConfigError, MissingExtraError

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax


def array(*shape: int, dtype: str = "float32"):
    return jax.ShapeDtypeStruct(shape, dtype)


def counted(monkeypatch: pytest.MonkeyPatch, function, *arguments):
    module = types.ModuleType("my_jax_model")
    module.factory = lambda: (function, arguments)
    monkeypatch.setitem(sys.modules, "my_jax_model", module)
    return suanli.count("jax:my_jax_model:factory")


def conv(**options):
    return lambda x, w: lax.conv_general_dilated(
        x, w, options.pop("strides", (1, 1)), options.pop("padding", "VALID"), **options
    )


CASES = {
    "matmul": (lambda x, w: x @ w, [array(3, 4), array(4, 5)], 2 * 3 * 4 * 5),
    "batched": (lambda x, w: x @ w, [array(64, 32), array(8, 32, 64)], 2 * 8 * 64 * 32 * 64),
    "einsum": (lambda q, k: jnp.einsum("bqhd,bkhd->bhqk", q, k), [array(2, 7, 3, 4), array(2, 9, 3, 4)],
               2 * 2 * 3 * 7 * 9 * 4),
    "complex": (lambda x, w: x @ w, [array(3, 4, dtype="complex64"), array(4, 5, dtype="complex64")], 8 * 3 * 4 * 5),
    "jit": (jax.jit(lambda x, w: x @ w), [array(3, 4), array(4, 5)], 120),
    "vmap": (jax.vmap(lambda x, w: x @ w), [array(6, 3, 4), array(6, 4, 5)], 6 * 120),
    # jax#18672: W [24, 1024, 1024], x [32, 1024]
    "scan": (lambda w, x: lax.scan(lambda c, m: (jnp.tanh(c @ m), None), x, w)[0],
             [array(24, 1024, 1024), array(32, 1024)], 1_610_612_736),
    "fori": (lambda x, w: lax.fori_loop(0, 5, lambda i, c: c @ w, x), [array(4, 4), array(4, 4)], 5 * 128),
    "nested scans": (
        lambda x, w: lax.scan(lambda c, _: (lax.fori_loop(0, 3, lambda i, d: d @ w, c), None), x, None, length=7)[0],
        [array(4, 4), array(4, 4)], 21 * 128,
    ),
    # 256 rows through 8 experts of [512, 1024]: routed rows once
    "ragged": (lax.ragged_dot, [array(256, 512), array(8, 512, 1024), array(8, dtype="int32")],
               268_435_456),
    "conv": (conv(strides=(2, 2)), [array(2, 8, 9, 9), array(16, 8, 3, 3)], 2 * 2 * 16 * 4 * 4 * 8 * 9),
    "grouped": (conv(feature_group_count=64, padding="SAME"), [array(1, 64, 56, 56), array(64, 1, 3, 3)],
                2 * 64 * 56 * 56 * 9),
    "dilated": (conv(rhs_dilation=(2, 2)), [array(1, 4, 9, 9), array(4, 4, 3, 3)], 2 * 25 * 4 * 4 * 9),
    "transposed": (lambda x, w: lax.conv_transpose(x, w, (2, 2), "VALID", dimension_numbers=("NCHW", "OIHW", "NCHW")),
                   [array(6, 192, 30, 96), array(384, 192, 2, 2)], 10_192_158_720),
    "cond": (lambda x, w: lax.cond(x[0, 0] > 0, lambda: x @ w @ w, lambda: x @ w), [array(4, 4), array(4, 4)], 2 * 128),
    "custom_jvp": (lambda x, w: jax.nn.relu(x @ w), [array(3, 4), array(4, 5)], 120),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_by_hand(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    function, arguments, flops = CASES[name]
    found = counted(monkeypatch, function, *arguments)
    assert found.flops.model == found.flops.hardware == flops
    assert found.without_formula == () and not found.lower_bound


def test_gradients_of_a_grouped_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forward once (unused but for its residuals), input's and weight's gradient: each 3,612,672 (issue, x3)."""

    def loss(x, w):
        return (conv(feature_group_count=64, padding="SAME")(x, w) ** 2).sum()

    found = counted(monkeypatch, jax.grad(loss, argnums=(0, 1)), array(1, 64, 56, 56), array(64, 1, 3, 3))
    assert found.flops.model == 10_838_016


@pytest.mark.parametrize("stride", [1, 2])
def test_gradients_of_a_convolution(monkeypatch: pytest.MonkeyPatch, stride: int) -> None:
    def loss(x, w):
        return (conv(strides=(stride, stride))(x, w) ** 2).sum()

    found = counted(monkeypatch, jax.grad(loss, argnums=(0, 1)), array(2, 8, 9, 9), array(16, 8, 3, 3))
    side = (9 - 3) // stride + 1
    forward = 2 * 2 * 16 * side * side * 8 * 9
    by_row = [row.model_flops for row in found.rows]
    assert by_row[0] == forward
    if stride == 2:  # as torch counts it: the transposed product has every input position once
        assert found.flops.model == 3 * forward


def test_checkpointing_tells_model_from_hardware(monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(weights, x):
        for w in weights:
            x = jax.checkpoint(lambda x, w: jnp.tanh(x @ w))(x, w)
        return x.sum()

    def plain(weights, x):
        for w in weights:
            x = jnp.tanh(x @ w)
        return x.sum()

    arguments = ([array(8, 8)] * 3, array(4, 8))
    one = 2 * 4 * 8 * 8
    found = counted(monkeypatch, jax.grad(loss), *arguments)
    without = counted(monkeypatch, jax.grad(plain), *arguments)
    assert found.flops.model == without.flops.model == without.flops.hardware == 3 * one + 5 * one
    assert (found.flops.recompute, found.flops.hardware) == (3 * one, 11 * one)


def test_checkpointing_inside_a_scan(monkeypatch: pytest.MonkeyPatch) -> None:
    def loss(w, x):
        step = jax.checkpoint(lambda c, m: (jnp.tanh(c @ m), None))
        return lax.scan(step, x, w)[0].sum()

    found = counted(monkeypatch, jax.grad(loss), array(6, 8, 8), array(4, 8))
    one = 2 * 4 * 8 * 8
    assert found.flops.recompute == 6 * one
    assert found.flops.model == 6 * 3 * one  # XLA runs the first input's gradient as well: the scan's body is one


def test_unknown_trips_are_a_lower_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    def search(x, w):
        return lax.while_loop(lambda c: c.sum() < 9, lambda c: c @ w, x)

    found = counted(monkeypatch, search, array(4, 4), array(4, 4))
    assert found.flops.model == 128 and found.lower_bound
    assert found.without_formula[0].why == "the number of trips is not known; its body is counted once"


@pytest.mark.parametrize(
    ("op", "function"),
    [("cholesky", jnp.linalg.cholesky), ("fft", jnp.fft.fft), ("eigh", lambda x: jnp.linalg.eigh(x)[0])],
)
def test_what_has_no_formula_is_listed(monkeypatch: pytest.MonkeyPatch, op: str, function) -> None:
    found = counted(monkeypatch, function, array(4, 4))
    assert op in [item.op for item in found.without_formula]


def test_kernels_are_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    pallas = pytest.importorskip("jax.experimental.pallas")

    def kernel(x, o):
        o[...] = x[...] * 2

    def twice(x):
        return pallas.pallas_call(kernel, out_shape=array(4, 4))(x)

    assert [item.op for item in counted(monkeypatch, twice, array(4, 4)).without_formula] == ["pallas_call"]
    call = jax.ffi.ffi_call("mine", array(4, 4))
    assert [item.op for item in counted(monkeypatch, call, array(4, 4)).without_formula] == ["ffi_call"]


def test_a_network_has_nothing_without_a_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    def network(params, x, key):
        x = jax.nn.gelu(x @ params["w"])
        x = (x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
        x = jnp.where(jax.random.bernoulli(key, 0.9, x.shape), x, 0)
        x = jax.nn.dot_product_attention(x[:, :, None], x[:, :, None], x[:, :, None], is_causal=True)[:, :, 0]
        top = lax.top_k(jax.nn.softmax(x), 2)[1]
        return jnp.take_along_axis(x, top, -1).sum() + jax.nn.logsumexp(x) + jnp.cumsum(jnp.sort(x, -1), -1).sum()

    arguments = ({"w": array(8, 16)}, array(2, 5, 8), jax.eval_shape(lambda: jax.random.key(0)))
    found = counted(monkeypatch, jax.value_and_grad(network), *arguments)
    assert found.without_formula == ()
    # the layer: forward, and its weight's gradient; attention: two products, and two each for their gradients
    assert found.flops.model == 2 * (2 * 10 * 8 * 16) + 6 * (2 * 2 * 25 * 16)


def test_parameters_where_they_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    params = {"w": array(3, 4), "b": array(4, dtype="bfloat16")}
    module = types.ModuleType("my_jax_model")
    module.factory = lambda: {"function": lambda p, x: x @ p["w"], "arguments": (params, array(2, 3)), "params": params}
    monkeypatch.setitem(sys.modules, "my_jax_model", module)
    found = suanli.count("jax:my_jax_model:factory")
    assert found.params.total == 16 and found.bytes.weights == 12 * 4 + 4 * 2
    found = counted(monkeypatch, lambda x: x, array(2))
    assert found.params.total is None and "which of its arguments" in found.reasons["params"]


def test_a_factory_beside_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "local_jax_factory.py").write_text(
        "import jax\ndef make():\n    s = jax.ShapeDtypeStruct\n    return (lambda x: x @ x), s((3, 3), 'float32')\n"
    )
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    assert suanli.count("jax:local_jax_factory:make").flops.model == 2 * 27
    assert sys.path == before


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("jax:nothing", "not the name of a factory"),
        ("jax:no_such_module_here:f", "no module no_such_module_here"),
        ("jax:math:sinn", "math has no sinn.*nearest: sin"),
        ("jax:math:pi", "the factory cannot be called"),
        ("jax:platform:machine", "the factory returned no function"),
        ("jax:math:sqrt", "the factory raised TypeError"),
    ],
)
def test_factories_that_are_none(text: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        suanli.count(text)


def test_a_function_that_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="tracing the function raised ValueError"):
        counted(monkeypatch, lambda x: (_ for _ in ()).throw(ValueError("no")), array(2))


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jax", None)
    with pytest.raises(MissingExtraError, match=r'pip install "suanli\[jax\]"'):
        suanli.count("jax:a:b")
