"""Layer expressions: the grammar, torch's defaults, every message word by word, and hostile text."""

from __future__ import annotations

import contextlib
import time
import warnings
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import ConfigError
from suanli.nouns.arch import SAMPLE, TOKENS
from suanli.nouns.layers import Attention, Conv, Elementwise, Linear, Recurrent
from suanli.readers.layer_expr import looks_like_expression, read_layer_expression


def only(text: str, **more: Any) -> Any:
    """The one leaf of an expression."""
    (placed,) = read_layer_expression(text, **more).leaves()
    return placed.layer


# --- what is read -------------------------------------------------------------------------------------------------

SAME = [
    ("linear(3, 4)", "linear( 3,4 )"),
    ("linear(3, 4)", "LINEAR(3, 4)"),
    ("linear(3, 4)", "linear(in_features=3, out_features=4)"),
    ("linear(3, 4)", "linear(3, 4, bias=true)"),
    ("linear(3, 4)", "linear(3., 4e0)"),
    ("linear(1000, 4)", "linear(1_000, 4)"),
    ("lstm(3, 4, layers=2, bidirectional)", "lstm(3, 4, 2, bidirectional=True)"),
    ("lstm(3, 4, layers=2, bidirectional)", "lstm(input_size=3, hidden_size=4, num_layers=2, bidirectional=true)"),
    ("lstm(3, 4, proj=2)", "lstm(3, 4, proj_size=2)"),
    ("conv2d(3, 4, 5) @ 9x9", "conv2d(3, 4, kernel_size=(5, 5), stride=1, padding=0, dilation=1, groups=1)@9X9"),
    ("conv2d(3, 4, 5) @ 9x9", "conv2d(3, 4, [5, 5]) @ 9x9"),
    ("conv2d(3, 4, 2, transposed) @ 9x9", "conv2d(3, 4, 2, transposed=true) @ 9x9"),
    ("attention(8, 2)", "attention(hidden=8, num_heads=2, kv_heads=2, head_dim=4)"),
    ("embedding(9, 4)", "embedding(num_embeddings=9, embedding_dim=4)"),
    ("conv2d(3, 4, 5) @ 9x9 -> maxpool(2)", "conv2d(3, 4, 5) @ 9x9 -> maxpool(2, stride=2, padding=0)"),
    ("conv2d(3, 4, 5) @ 9x9 -> maxpool((1, 2))", "conv2d(3, 4, 5) @ 9x9 -> maxpool((1, 2), stride=(1, 2))"),
    ("conv2d(3, 4, 5) @ 9x9 -> relu", "conv2d(3, 4, 5) @ 9x9 -> relu()"),
    ("conv2d(3, 4, 5) @ 9x9 -> batchnorm", "conv2d(3, 4, 5) @ 9x9 -> batchnorm(num_features=4)"),
    ("linear(3, 4) -> layernorm", "linear(3, 4) -> layernorm(4)"),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_spellings_of_the_same(one: str, other: str) -> None:
    assert read_layer_expression(one).root == read_layer_expression(other).root


def test_defaults_are_those_of_torch() -> None:
    assert only("linear(3, 4)") == Linear(name="0.linear", in_features=3, out_features=4, bias=True)
    assert only("lstm(3, 4)") == Recurrent(name="0.lstm", cell="lstm", input_size=3, hidden_size=4)
    conv = only("conv2d(3, 4, 5) @ 11x9")
    assert conv == Conv(
        name="0.conv2d", in_channels=3, out_channels=4, kernel=(5, 5), in_size=(11, 9), out_size=(7, 5), bias=True
    )
    leaves = [placed.layer for placed in read_layer_expression("attention(12, 3)").leaves()]
    assert [layer for layer in leaves if isinstance(layer, Attention)] == [
        Attention(name="0.attention.attention", heads=3, kv_heads=3, qk_dim=4, v_dim=4, mask="full")
    ]
    assert sum(layer.params for layer in leaves) == 4 * 12 * 12 + 4 * 12


SIZES = [
    ("conv2d(3, 4, 3, stride=2, padding=1) @ 9x10", (5, 5)),  # (9+2−3)//2+1, (10+2−3)//2+1
    ("conv2d(3, 4, 3, dilation=2) @ 9x10", (5, 6)),  # 9−2·2, 10−2·2
    ("conv2d(3, 4, (1, 2)) @ 9x10", (9, 9)),
    ("conv1d(3, 4, 3) @ 9", (7,)),
    ("conv3d(3, 4, 3) @ 9x8x7", (7, 6, 5)),
    ("conv2d(3, 4, 2, stride=2, transposed) @ 9x10", (18, 20)),  # 8·2+2, 9·2+2
    ("convtranspose1d(3, 4, 3, stride=2, padding=1, output_padding=1) @ 9", (18,)),  # 8·2−2+3+1
]


@pytest.mark.parametrize(("text", "out"), SIZES)
def test_sizes(text: str, out: tuple[int, ...]) -> None:
    assert only(text).out_size == out


def test_pools_change_the_size_and_flatten_the_width() -> None:
    pools = "maxpool(3, stride=2) -> avgpool(2) -> adaptiveavgpool((1, 2))"
    text = f"conv2d(3, 4, 1) @ 9x9 -> {pools} -> flatten -> linear(8, 5)"
    widths = [p.layer.width for p in read_layer_expression(text).leaves() if isinstance(p.layer, Elementwise)]
    assert widths == [4 * 4 * 4, 4 * 2 * 2, 4 * 1 * 2]


def test_the_picture_may_be_given_apart() -> None:
    assert only("conv2d(3, 4, 3) @ 9x9", image=(20, 30)).out_size == (18, 28)
    assert only("conv2d(3, 4, 3)", image=(20, 30)).out_size == (18, 28)


def test_streams_and_names() -> None:
    spatial, tokens = read_layer_expression("conv1d(1, 1, 1) @ 5"), read_layer_expression("linear(3,   4)")
    assert (spatial.main_stream, spatial.unit, spatial.decodes) == (SAMPLE, "sample", False)
    assert (tokens.main_stream, tokens.unit, tokens.decodes) == (TOKENS, "token", False)
    assert (tokens.name, read_layer_expression("linear(3, 4)", "mine").name) == ("linear(3, 4)", "mine")
    assert [placed.path for placed in read_layer_expression("linear(3, 4) -> relu").leaves()] == ["0.linear", "1.relu"]


MEANT = [
    ("linear(3, 4)", True), (" LSTM(3, 4)", True), ("a -> b", True), ("llama-3-8b", False), ("lstm", False),
    ("models/linear(3)/config.json", False), ("torch:pkg.mod:make", False), ("frob(3)", False),
]  # fmt: skip


@pytest.mark.parametrize(("text", "meant"), MEANT)
def test_what_looks_like_an_expression(text: str, meant: bool) -> None:
    assert looks_like_expression(text) is meant


# --- what is refused, word by word --------------------------------------------------------------------------------

NAMES = (
    "linear, conv1d, conv2d, conv3d, convtranspose1d, convtranspose2d, convtranspose3d, maxpool, avgpool, "
    "adaptiveavgpool, relu, gelu, silu, sigmoid, tanh, softmax, dropout, flatten, layernorm, rmsnorm, batchnorm, "
    "embedding, lstm, gru, rnn, attention"
)
WHOLE = "expected a whole number from 1 to 1,000,000,000."
FORM = "expected name(number, …, option=number)."

REFUSED = [
    ("", f"cannot be read in element 1; got ''; {FORM}"),
    ("linear(3, 4", f"cannot be read in element 1; got 'linear(3, 4'; {FORM}"),
    ("linear(3, 4) ->", f"cannot be read in element 2; got ''; {FORM}"),
    ("linear(3; 4)", f"cannot be read in element 1; got 'linear(3; 4)'; {FORM}"),
    ("linear(3, 4, bias='no')", f"cannot be read in element 1; got \"linear(3, 4, bias='no')\"; {FORM}"),
    ("linear(3, 1and 4)", f"cannot be read in element 1; got 'linear(3, 1and 4)'; {FORM}"),
    ("linear(0x10, 4)", f"cannot be read in element 1; got 'linear(0x10, 4)'; {FORM}"),
    ("linear(3*2, 4)", f"cannot be read in element 1; got 'linear(3*2, 4)'; {FORM}"),
    ("liner(3, 4)", f"unknown layer 'liner' in element 1; expected {NAMES}; nearest: linear, layernorm."),
    ("7", f"unknown layer '7' in element 1; expected {NAMES}."),
    ("a.linear(3, 4)", f"unknown layer 'a.linear(3, 4)' in element 1; expected {NAMES}; nearest: linear."),
    ("linear(3)", f"missing outputs in element 1, linear; {WHOLE}"),
    ("linear(3, 0)", f"outputs is not possible in element 1, linear; got 0; {WHOLE}"),
    ("linear(3, -4)", f"outputs is not possible in element 1, linear; got '-4'; {WHOLE}"),
    ("linear(3, 4.5)", f"outputs is not possible in element 1, linear; got 4.5; {WHOLE}"),
    ("linear(3, 1e30)", f"outputs is not possible in element 1, linear; got 1e+30; {WHOLE}"),
    ("linear(3, 9999999999)", f"outputs is not possible in element 1, linear; got 9999999999; {WHOLE}"),
    ("linear(3, 4, 5)", "too many values in element 1, linear; got 3; expected at most 2."),
    ("linear(3, 4, bias=1)", "bias is not true or false in element 1, linear; got 1."),
    (
        "linear(3, 4, bais=false)",
        "unknown option 'bais' in element 1, linear; expected bias, inputs, outputs; nearest: bias, inputs.",
    ),
    (
        "linear(3, 4) -> linear(5, 6)",
        "the element does not take what the one before it gives in element 2, linear; got 4; expected 5.",
    ),
    (
        "conv2d(3, 4, 3) @ 9x9 -> linear(196, 2)",
        "the element does not take what the one before it gives in element 2, linear; got 4; expected 196.\n"
        "a linear layer after spatial ones needs flatten before it in element 2, linear; got size (7, 7).",
    ),
    (
        "conv2d(3, 4, 3)",
        "the size of the input is needed in element 1, conv2d; got no size; expected @ 224x224 or --image.",
    ),
    (
        "conv2d(3, 4, 1) @ 9",
        "the size of the input is needed in element 1, conv2d; got 9; expected @ 224x224 or --image.",
    ),
    ("conv2d(3, 4, 9) @ 5x5", "nothing is left of the input in element 1, conv2d; got -3x-3."),
    ("conv2d(3, 4, (1, 2, 3)) @ 5x5",
     "kernel is not possible in element 1, conv2d; got (1, 2, 3); expected 2 numbers."),
    ("conv2d(3, 4, 1, groups=2) @ 5x5",
     "groups does not divide the channels in element 1, conv2d; got 2 groups, 3 and 4."),
    (
        "conv2d(3, 4, 1, output_padding=1) @ 5x5",
        "output_padding is for transposed convolutions, less than stride or dilation in element 1, conv2d.",
    ),
    ("linear(3, 4) @ big", "the size after @ cannot be read in element 1; got 'big'; expected a size like 224x224."),
    ("linear(3, 4) @ 0x5", "the size after @ cannot be read in element 1; got '0x5'; expected a size like 224x224."),
    (
        "gru(3, 4, proj=2)",
        "a projection is for lstm and narrower than hidden in element 1, gru; got 2.",
    ),
    ("lstm(3, 4, proj=4)", "a projection is for lstm and narrower than hidden in element 1, lstm; got 4."),
    ("lstm(3, 4, layers=20000)", "layers is not possible in element 1, lstm; got 20000; expected at most 10,000."),
    ("conv1d(3, 4, 1) @ 5 -> lstm(4, 4)", "a recurrent layer works on tokens, not on a picture in element 2, lstm."),
    ("conv1d(3, 4, 1) @ 5 -> attention(4, 2)", "attention works on tokens, not on a picture in element 2, attention."),
    ("attention(8, 4, 3)", "kv_heads does not divide heads in element 1, attention; got 3 and 4."),
    ("attention(8, 3)", f"missing head_dim in element 1, attention; {WHOLE}"),
    ("relu -> layernorm", f"missing dim in element 2, layernorm; {WHOLE}"),
    (
        "linear(3, outputs=x) -> frob(1) -> lstm(2)",
        f"unknown layer 'frob' in element 2; expected {NAMES}.\n"
        f"outputs is not possible in element 1, linear; got 'x'; {WHOLE}\n"
        f"missing hidden in element 3, lstm; {WHOLE}",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("text", "message"), REFUSED, ids=[row[0][:40] for row in REFUSED])
def test_messages(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        read_layer_expression(text)
    assert str(caught.value) == message


HOSTILE = [
    "(" * 10**6,
    "linear(" * 10**6,
    "linear(" + "(" * 5000 + "3" + ")" * 5000 + ", 4)",
    "linear(3, " + "-" * 15_000 + "4)",
    "linear(3, 4" + ".a" * 9_000 + ")",
    "linear" + "()" * 9_000,
    "linear(3, a" + "[0]" * 6_000 + ")",
    "linear(3, " + "1+" * 9_000 + "1)",
    "relu->" * 3_000,
    "x->" * 900,
    "linear(3, " + "9" * 19_000 + ")",
    "linear(3, 1e" + "9" * 5_000 + ")",
    "linear(3, 4" + ", b=1" * 3_000 + ")",
    "linear(" + "3, " * 6_000 + ")",
    "__import__('os').system('touch /tmp/suanli-was-run')",
    "linear(__import__('os').getpid(), 4)",
    "linear(().__class__.__bases__[0], 4)",
    "linear(open, 4)",
    "linear(*[3, 4])",
    "linear(**{'inputs': 3})",
    "linear(lambda: 3, 4)",
    "linear(3 if 1 else 2, 4)",
    "linear(x := 3, 4)",
    "ｌｉｎｅａｒ(3, 4)",
    "linear(３, 4)",
    "linear(3, 4)\0",
    "linear(3, '\\d')",
    "linear(3, \ud800)",
    "🧮(3)",
    "a" * 20_000,
    "@" * 20_000,
    "linear(3, 4) @ " + "1x" * 9_000 + "1",
    "linear(3, 4) @ ²x²",
    "conv2d(1000000000, 1000000000, 1000000000, padding=1000000000, dilation=1000000000) @ 9x9",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_is_refused_quickly_and_never_run(text: str) -> None:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ConfigError) as caught:
            read_layer_expression(text)
    assert time.process_time() - start < 1
    assert len(str(caught.value)) < 12_000


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="linearcov2dstmgu(),=-> @x0123456789.[]_*'\"\\ \n", max_size=60))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(ConfigError):
        read_layer_expression(text)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 5), st.integers(0, 4), st.integers(1, 4))
def test_conv_sizes_are_those_of_sliding_a_window(size: int, kernel: int, stride: int, pad: int, dilation: int) -> None:
    starts = range(-pad, size + pad - dilation * (kernel - 1), stride)
    text = f"conv1d(1, 1, {kernel}, stride={stride}, padding={pad}, dilation={dilation}) @ {size}"
    if len(starts) == 0:
        with pytest.raises(ConfigError, match="nothing is left"):
            read_layer_expression(text)
    else:
        assert only(text).out_size == (len(starts),)
