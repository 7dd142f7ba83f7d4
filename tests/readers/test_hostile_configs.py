"""Configs that are wrong: each gives one ConfigError that names every fault, at once, and nothing else."""

from __future__ import annotations

import contextlib
import math
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from suanli.errors import ConfigError, InputError
from suanli.readers.hf import CAUSAL, READERS, read_hf_config
from suanli.readers.paper import READERS as PAPER

LLAMA = {
    "model_type": "llama", "vocab_size": 96, "hidden_size": 72, "intermediate_size": 104, "num_hidden_layers": 3,
    "num_attention_heads": 6, "num_key_value_heads": 2,
}  # fmt: skip
MIXTRAL = LLAMA | {"model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}
QWEN = LLAMA | {"model_type": "qwen3_moe", "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 8}
MISTRAL = LLAMA | {"model_type": "mistral"}
GPT2 = {"model_type": "gpt2", "vocab_size": 96, "n_embd": 72, "n_layer": 3, "n_head": 6, "n_positions": 64}
T5 = {"model_type": "t5", "d_model": 8, "num_heads": 2, "d_kv": 3, "d_ff": 4, "vocab_size": 5, "num_layers": 1}
VIT = {
    "model_type": "vit", "hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 4,
}  # fmt: skip
WHOLE = "expected a whole number from 1 to 1,000,000,000"

ROWS: list[tuple[Any, tuple[str, ...]]] = [
    # no number, or none that can be
    (LLAMA | {"hidden_size": -1}, ("hidden_size is not possible", "got -1", WHOLE)),
    (LLAMA | {"hidden_size": 0}, ("hidden_size is not possible", "got 0")),
    (LLAMA | {"hidden_size": "72"}, ("hidden_size is not possible", "got '72'")),
    (LLAMA | {"hidden_size": math.nan}, ("hidden_size is not possible", "got nan")),
    (LLAMA | {"hidden_size": math.inf}, ("hidden_size is not possible", "got inf")),
    (LLAMA | {"hidden_size": True}, ("hidden_size is not possible", "got True")),
    (LLAMA | {"hidden_size": [72]}, ("hidden_size is not possible", "got a list of 1")),
    (LLAMA | {"hidden_size": list(range(10**6))}, ("got a list of 1,000,000",)),
    (LLAMA | {"hidden_size": "7" * 10**6}, ("got '777777", "…")),
    (LLAMA | {"intermediate_size": {"a": 1}},
     ("intermediate_size is not possible", "got a nested description of 1 keys")),
    (LLAMA | {"vocab_size": 1.5}, ("vocab_size is not possible", "got 1.5")),
    (LLAMA | {"vocab_size": None}, ("missing key vocab_size", "got null")),
    (LLAMA | {"head_dim": 0}, ("head_dim is not possible", "got 0")),
    (LLAMA | {"max_position_embeddings": "long"}, ("max_position_embeddings is not possible", "got 'long'")),
    (GPT2 | {"n_embd": -5}, ("n_embd is not possible in config: n_embd", "got -5")),
    (LLAMA | {"num_hidden_layers": 1e30}, ("num_hidden_layers is not possible", "got 1e+30", "from 1 to 100,000")),
    (LLAMA | {"num_hidden_layers": 10**400}, ("num_hidden_layers is not possible", "from 1 to 100,000")),
    (LLAMA | {"num_hidden_layers": 100_001}, ("got 100001", "from 1 to 100,000")),
    (LLAMA | {"tie_word_embeddings": "yes"}, ("tie_word_embeddings is not true or false", "got 'yes'")),
    (LLAMA | {"attention_bias": 1}, ("attention_bias is not true or false", "got 1")),
    (MISTRAL | {"sliding_window": 0}, ("sliding_window is not possible", "got 0")),
    (MISTRAL | {"sliding_window": -1}, ("sliding_window is not possible", "got -1")),
    # contradictions
    (LLAMA | {"num_attention_heads": 7},
     ("does not divide the width, and no head_dim is given", "got 7 heads, width 72")),
    (LLAMA | {"num_key_value_heads": 4}, ("does not divide the number of heads", "got 6 heads, 4 key/value heads")),
    (LLAMA | {"num_key_value_heads": 12}, ("got 6 heads, 12 key/value heads",)),
    (LLAMA | {"n_embd": 80}, ("hidden_size and n_embd name the same thing and differ", "got 72 and 80")),
    (LLAMA | {"layer_types": ["full_attention"] * 2},
     ("layer_types does not have one entry a layer", "got 2; expected 3")),
    (LLAMA | {"layer_types": ["full_attention", "x", "y"]},
     ("layer_types has an unknown entry", "got 'x'; expected full_attention")),
    (LLAMA | {"layer_types": ["sliding_attention"] * 3},
     ("layer_types has an unknown entry", "got 'sliding_attention'")),
    (LLAMA | {"layer_types": ["linear_attention"] * 3}, ("layer_types has an unknown entry", "got 'linear_attention'")),
    (LLAMA | {"layer_types": [{}, [], None]}, ("layer_types has an unknown entry",)),
    (LLAMA | {"layer_types": "full_attention"}, ("layer_types is not a list of words",)),
    (MIXTRAL | {"num_experts_per_tok": 5}, ("routed to more experts than there are", "got 5 of 4")),
    (QWEN | {"mlp_only_layers": ["a"] * 1000}, ("mlp_only_layers is not possible", "got 'a'")),
    (QWEN | {"mlp_only_layers": 7}, ("mlp_only_layers is not a list of whole numbers", "got 7")),
    (T5 | {"feed_forward_proj": {"a": 1}}, ("feed_forward_proj is not a word",)),
    (VIT | {"num_attention_heads": 3}, ("does not divide the width", "got 3 heads, width 8")),
    (VIT | {"patch_size": 300}, ("the patch is larger than the picture", "got 300, picture 224x224")),
    (VIT | {"image_size": [1, 2, 3]}, ("image_size is not possible", "got a list of 3")),
    ({"model_type": "resnet", "depths": [1, 2], "hidden_sizes": [8]},
     ("depths and hidden_sizes differ in length", "got 2 and 1")),
    ({"model_type": "resnet", "depths": [1] * 10**5, "hidden_sizes": [8] * 10**5}, ("too many stages",)),
    ({"model_type": "resnet", "layer_type": "x"}, ("layer_type is not possible", "expected one of basic, bottleneck")),
    # parts and keys that are missing
    ({"model_type": "clip", "text_config": [], "vision_config": 3},
     ("missing part text_config", "missing part vision_config", "got 3")),
    ({"model_type": "dbrx"},
     ("missing part attn_config", "missing key d_model", "missing key moe_num_experts in config: ffn_config")),
    ({"model_type": "llama", "hiden_size": 72},
     ("missing key hidden_size", "nearest: hiden_size", "missing key vocab_size")),
    # types nobody knows
    ({}, ("missing key model_type in config: model_type", "Layer expressions describe anything else")),
    ({"model_type": "llamma"}, ("unknown model_type 'llamma'", "nearest: llama")),
    ({"model_type": "new", "auto_map": {"AutoModel": "evil.py"}}, ("names code of its own, which is never run",)),
    ({"model_type": ["llama"]}, ("unknown model_type a list of 1",)),
    ({"model_type": {"llama": 1}}, ("unknown model_type a nested description of 1 keys",)),
    ({"model_type": 7}, ("unknown model_type 7",)),
    ([1, 2], ("a model description is a mapping of keys", "got a list of 2")),
    (None, ("a model description is a mapping of keys", "got None")),
]  # fmt: skip


@pytest.mark.parametrize(("values", "words"), ROWS, ids=range(len(ROWS)))
def test_one_error_with_these_words(values: Any, words: tuple[str, ...]) -> None:
    start = time.process_time()
    with pytest.raises(ConfigError) as caught:
        read_hf_config(values, "hostile")
    assert time.process_time() - start < 3  # alone a fifth of a second; cores may be shared
    text = str(caught.value)
    assert [word for word in words if word not in text] == []
    assert len(text) < 4000
    assert len(caught.value.to_dict()["errors"]) == len(text.splitlines())  # type: ignore[arg-type]


def test_every_fault_is_listed_and_none_twice() -> None:
    bad = {
        "hidden_size": 0,
        "num_attention_heads": "six",
        "vocab_size": None,
        "tie_word_embeddings": 3,
        "num_hidden_layers": -1,
    }
    with pytest.raises(ConfigError) as caught:
        read_hf_config(LLAMA | bad, "hostile")
    found = [fault.where for fault in caught.value.faults]
    assert sorted(found) == sorted(f"config: {key}" for key in bad)  # heads that are no number contradict nothing


def test_a_key_read_twice_is_one_fault() -> None:
    with pytest.raises(ConfigError) as caught:
        read_hf_config({"model_type": "mpt", "n_layers": 2, "n_heads": 2, "vocab_size": 5}, "hostile")
    assert [fault.message for fault in caught.value.faults] == ["missing key hidden_size"]


MANY = 100_000
LARGE = [
    LLAMA | {"num_hidden_layers": MANY},
    LLAMA | {"num_hidden_layers": MANY, "num_key_value_heads": 6, "unknown": "x" * MANY},
    QWEN | {"num_hidden_layers": MANY, "mlp_only_layers": list(range(0, MANY, 3))},
    LLAMA
    | {"model_type": "qwen2", "use_sliding_window": True, "sliding_window": 9, "num_hidden_layers": MANY}
    | {"layer_types": ["full_attention", "sliding_attention"] * (MANY // 2)},
    T5 | {"num_layers": MANY},
    GPT2 | {"n_layer": MANY},
]


@pytest.mark.parametrize("values", LARGE, ids=lambda values: values["model_type"])
def test_a_hundred_thousand_layers_are_quick(values: dict[str, Any]) -> None:
    start = time.process_time()
    arch = read_hf_config(values, "tall")
    assert arch.params_total > MANY
    assert len(arch.leaves()) < 200
    assert time.process_time() - start < 3  # alone a fifth of a second; cores may be shared


def test_many_keys_are_quick() -> None:
    start = time.process_time()
    with pytest.raises(ConfigError, match="missing key hidden_size"):
        read_hf_config({f"hidden_sizes_{i}" * 9: i for i in range(200_000)} | {"model_type": "llama"}, "wide")
    assert time.process_time() - start < 3  # alone a fifth of a second; cores may be shared


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(-3, 3), st.integers(), st.floats(), st.text(max_size=5),
    st.lists(st.integers(-1, 3), max_size=3), st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)  # fmt: skip
MORE = (
    "layer_types head_dim sliding_window text_config vision_config attn_config ffn_config depths hidden_sizes "
    "image_size d_model moe_layers n_layers n_heads tie_word_embeddings first_k_dense_replace no_rope_layers"
)
KEYS = sorted({*LLAMA, *MIXTRAL, *QWEN, *GPT2, *T5, *VIT, *MORE.split()} - {"model_type"})


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(READERS)), st.dictionaries(st.sampled_from(KEYS), JUNK, max_size=25))
def test_junk_is_read_or_refused(model_type: str, values: dict[str, Any]) -> None:
    for base in ({}, LLAMA, QWEN):
        try:
            arch = read_hf_config(base | values | {"model_type": model_type}, "junk")
        except InputError:
            continue
        assert arch.params_total > 0


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(sorted(PAPER)), st.dictionaries(st.sampled_from(
    ["hidden", "heads", "kv_heads", "ffn", "vocab", "num_layers", "gated", "experts", "experts_per_token", "norm",
     "learned_positions", "encoder_layers", "decoder_layers", "tied", "head_dim", "params_per_expert", "shared_params"]
), JUNK, max_size=17))  # fmt: skip
def test_junk_of_papers_is_read_or_refused(kind: str, values: dict[str, Any]) -> None:
    try:
        arch = PAPER[kind](values, "junk", "config")
    except InputError:
        return
    assert arch.params_total >= 0


# --- every family -------------------------------------------------------------------------------------------------

JUNK = (0, -1, 1, 3, 7, "x", None, [], {}, True, 1.5, 1e30, float("nan"), 10**12, [1, 2], {"a": 1})


def default_of(model_type: str) -> dict[str, Any] | None:
    """What transformers would write for a type; None where its config has no default."""
    transformers = pytest.importorskip("transformers")
    try:
        return transformers.AutoConfig.for_model(model_type).to_dict() | {"model_type": model_type}
    except Exception:  # noqa: BLE001  any of theirs: such types are left out
        return None


def with_junk(values: dict[str, Any], draw: random.Random) -> dict[str, Any]:
    """One to three keys without their value, here or in a nested description."""
    changed = dict(values)
    for key in draw.sample(list(values), min(len(values), draw.randint(1, 3))):
        if isinstance(values[key], dict) and values[key] and draw.random() < 0.7:
            changed[key] = with_junk(values[key], draw)
        elif draw.random() < 0.2:
            del changed[key]
        else:
            changed[key] = draw.choice(JUNK)
    return changed


@pytest.mark.torch
@pytest.mark.parametrize("model_type", sorted({*READERS, *CAUSAL}))
def test_junk_is_read_or_refused_in_words(model_type: str) -> None:
    values, draw = default_of(model_type), random.Random(model_type)
    if values is None:
        pytest.skip("transformers has no default of it")
    for _ in range(25):
        junk = with_junk(values, draw) | {"model_type": model_type}
        with contextlib.suppress(ConfigError):
            assert read_hf_config(junk, "junk").params_total >= 0


@pytest.mark.torch
@pytest.mark.parametrize(
    ("model_type", "change", "words"),
    [
        ("aria", {"projector_patch_to_query_dict": {"4900": "x", "1225": None}}, "a number of queries is not a whole"),
        ("qwen3_vl", {"text_config": {}}, "the nested description is empty in config: text_config"),
        ("textnet", {"conv_layer_strides": [1, 2]}, "conv_layer_strides does not have one number a kernel"),
    ],
)
def test_faults_of_one_family(model_type: str, change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        read_hf_config((default_of(model_type) or {}) | change, "config")


@pytest.mark.torch
def test_more_sparse_layers_than_layers_are_none() -> None:
    """As in its class: a step of 12 // 13 = 0 makes no mixture."""
    values = default_of("switch_transformers") or {}
    none, many = (read_hf_config(values | {"num_sparse_encoder_layers": n}, "config") for n in (0, 13))
    assert many.params_total == none.params_total
