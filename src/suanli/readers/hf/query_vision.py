"""Pictures as the answers of learned queries: Idefics 2's perceiver, Aria's projector, the Q-Former of BLIP-2."""

from __future__ import annotations

from collections.abc import Mapping

from suanli.nouns.arch import Arch, Module, Stream
from suanli.nouns.layers import Attention, Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, mlp, norm, stack
from suanli.readers.config import MAX_WIDTH, Config
from suanli.readers.hf.composed import Language, of_image, with_vision
from suanli.readers.hf.towers import (
    PATCHES,
    Tower,
    TowerLayer,
    Vision,
    grid_of,
    heads_of,
    in_patches,
    of_picture,
    patch_conv,
    patch_of,
    picture,
    refuse_picture,
    siglip_tower,
    tile_size,
    tower_stack,
)
from suanli.readers.hf.vision_language import said, seen_by, text_width

# --- Idefics 2 ----------------------------------------------------------------------------------------------------

CONTEXT = "patches and queries"  # what Idefics 2's queries look at: the patches and one another


def _perceiver(at: str, config: Config, width: int) -> tuple[Node, ...]:
    """Layers in which the latents look at the patches and at themselves."""
    heads = config.need("resampler_n_heads", high=1_000_000)
    kv_heads = config.kv_heads(heads)
    head_dim, depth = config.need("resampler_head_dim"), config.layers("resampler_depth")
    query, key = heads * head_dim, kv_heads * head_dim

    def layer() -> tuple[Node, ...]:
        keys = (
            norm("input_context_norm", width),
            Linear(name="self_attn.k_proj", in_features=width, out_features=key),
            Linear(name="self_attn.v_proj", in_features=width, out_features=key, shares_input=True),
        )
        return (
            norm("input_latents_norm", width),
            Linear(name="self_attn.q_proj", in_features=width, out_features=query),
            Module(name="", stream=CONTEXT, children=keys),
            Attention(
                name="self_attn.attention", heads=heads, kv_heads=kv_heads, qk_dim=head_dim, v_dim=head_dim,
                mask="full", key_stream=CONTEXT,
            ),
            Linear(name="self_attn.o_proj", in_features=query, out_features=width),
            norm("post_attention_layernorm", width),
            *mlp(width, 4 * width),
        )  # fmt: skip

    return (*stack(f"{at}.layers", (0,) * depth, lambda _: layer()), norm(f"{at}.norm", width))


def read_idefics2(config: Config, name: str) -> Arch:
    """Idefics 2: a gated MLP on the patches, then latents that look at them; pictures of any size up to the tower's."""
    language = Language(default="mistral", at="model.text_model")
    vision, perceiver = config.part("vision_config"), config.part("perceiver_config")
    out = text_width(config, language)
    size = picture(config, vision, patch_of(vision))
    tower = siglip_tower(vision, "model.vision_model", head=False, size=size)
    ffn = config.part("text_config").need("intermediate_size")
    at, names = "model.connector", ("gate_proj", "up_proj", "down_proj")
    # the gated MLP goes from the tower's width to the decoder's
    patches = (
        *mlp(tower.width, ffn, at=f"{at}.modality_projection", names=names)[:-1],
        Linear(name=f"{at}.modality_projection.down_proj", in_features=ffn, out_features=out),
    )
    latents = perceiver.whole("resampler_n_latents", default=64)
    resampler = f"{at}.perceiver_resampler"
    nodes = (
        Parameter(name=f"{resampler}.latents", shape=(latents, out)),
        *_perceiver(resampler, perceiver, out),
    )
    seen = seen_by(tower, nodes, latents)
    found = Vision(
        nodes=(*tower.nodes, in_patches(patches), of_image(*nodes)),
        streams=(*seen.streams, Stream(name=CONTEXT, length=tower.positions + latents)),
        tokens=latents,
        note=seen.note,
    )
    return with_vision(config, name, found, language)


# --- Aria ---------------------------------------------------------------------------------------------------------


def read_aria(config: Config, name: str) -> Arch:
    """Aria: queries, as many as the number of patches asks for, look at the patches once; an MLP."""
    language = Language(default="aria_text")
    vision = config.part("vision_config")
    tower = siglip_tower(vision, "model.vision_tower", head=False, size=picture(config, vision, patch_of(vision)))
    h, heads = tower.width, heads_of(vision, tower.width)
    asked = config.raw("projector_patch_to_query_dict")
    table = {int(k): v for k, v in asked.items() if str(k).isdecimal()} if isinstance(asked, Mapping) else {}
    if not all(isinstance(v, int) and not isinstance(v, bool) and 0 < v <= MAX_WIDTH for v in table.values()):
        config.fault("bad_value", "a number of queries is not a whole number", "projector_patch_to_query_dict")
        table = {}
    queries = table.get(tower.patches, 0)  # none: no picture of this size is foreseen
    at, out = "model.multi_modal_projector", text_width(config, language)
    held = config.whole("max_value_projector_patch_to_query_dict", default=max([*table.values(), 1]))
    cross, packed = f"{at}.cross_attn", f"{at}.cross_attn.multihead_attn"
    keys = (
        norm(f"{cross}.layer_norm_kv", h, "layer"),
        Linear(name=f"{cross}.k_proj", in_features=h, out_features=h),
        Linear(name=f"{cross}.v_proj", in_features=h, out_features=h, shares_input=True),
        Linear(name=packed, in_features=h, out_features=h, bias=True),
        Linear(name=packed, in_features=h, out_features=h, bias=True),
    )
    nodes = (
        Parameter(name=f"{at}.query", shape=(held, h)),
        norm(f"{cross}.layer_norm", h, "layer"),
        Linear(name=f"{cross}.q_proj", in_features=h, out_features=h),
        Linear(name=packed, in_features=h, out_features=h, bias=True),
        Module(name="", stream=PATCHES, children=keys),
        Attention(
            name=f"{cross}.attention", heads=heads, kv_heads=heads, qk_dim=max(1, h // heads),
            v_dim=max(1, h // heads), mask="full", key_stream=PATCHES,
        ),
        Linear(name=f"{packed}.out_proj", in_features=h, out_features=h, bias=True),
        Linear(name=f"{cross}.linear", in_features=h, out_features=h, bias=True),
        norm(f"{at}.layer_norm", h, "layer"),
        Linear(name=f"{at}.feed_forward.linear_in", in_features=h, out_features=out),
        Linear(name=f"{at}.feed_forward.linear_out", in_features=out, out_features=out),
    )  # fmt: skip
    return with_vision(config, name, seen_by(tower, nodes, queries), language)


# --- BLIP-2 -------------------------------------------------------------------------------------------------------

QFORMER, PROMPT = "queries and prompt", "prompt"
_SELF = AttentionNames(at="attention", q="attention.query", k="attention.key", v="attention.value", o="output.dense")
_CROSS = AttentionNames(
    at="crossattention", q="attention.query", k="attention.key", v="attention.value", o="output.dense"
)


def eva_tower(vision: Config, at: str) -> Tower:
    """The tower of BLIP-2: fused QKV, a class token, learned positions."""
    h = vision.need("hidden_size")
    heads, ffn, layers = heads_of(vision, h), vision.need("intermediate_size"), vision.layers("num_hidden_layers")
    patch, size = patch_of(vision), tile_size(vision)
    grid = grid_of(vision, size, patch)
    positions = grid[0] * grid[1] + 1
    layer = TowerLayer(
        hidden=h, heads=heads, ffn=ffn, names=AttentionNames(fused="qkv", o="projection"),
        qkv_bias=vision.flag("qkv_bias", default=True),
    )  # fmt: skip
    channels = vision.whole("num_channels", default=3)
    nodes: tuple[Node, ...] = (
        of_picture(patch_conv(f"{at}.embeddings.patch_embedding", channels, h, patch, size, grid, bias=True)),
        Parameter(name=f"{at}.embeddings.class_embedding", shape=(1, 1, h)),
        Embedding(name=f"{at}.embeddings.position_embedding", num=positions, dim=h, role="position"),
        *tower_stack(f"{at}.encoder.layers", layers, layer),
        norm(f"{at}.post_layernorm", h, "layer"),
        # the pooled output is normed by the same weights
    )
    return Tower(nodes=(in_patches(nodes),), width=h, grid=grid, size=size, positions=positions)


def _qformer(config: Config, width: int, *, prompted: bool) -> tuple[Node, ...]:
    """A BERT whose queries look at the patches on every second layer; the prompt's words have an MLP of their own."""
    h = config.need("hidden_size")
    heads, ffn, layers = heads_of(config, h), config.need("intermediate_size"), config.layers("num_hidden_layers")
    every = config.whole("cross_attention_frequency", default=2)
    both = QFORMER if prompted else None

    def post(at: str) -> tuple[Node, ...]:
        return (norm(f"{at}.LayerNorm", h, "layer"),)

    def attend(crossing: bool) -> tuple[Node, ...]:
        names = _CROSS if crossing else _SELF
        spec = AttentionSpec(
            hidden=h, heads=heads, kv_heads=heads, head_dim=max(1, h // heads), names=names, qkv_bias=True, o_bias=True,
            mask="full", key_stream=PATCHES if crossing else None, key_width=width if crossing else None,
        )  # fmt: skip
        return (*attention(spec), *post(f"{names.at}.output"))

    def feed(suffix: str) -> tuple[Node, ...]:
        names = (f"intermediate{suffix}.dense", f"output{suffix}.dense")
        return (*mlp(h, ffn, at="", names=names, bias=True), *post(f"output{suffix}"))

    def layer(crossing: bool) -> tuple[Node, ...]:
        words = (Module(name="", stream=PROMPT, children=feed("")),) if prompted else ()
        return (
            Module(name="", stream=both, children=attend(False)),
            *(attend(True) if crossing else ()),
            *feed("_query"),
            *words,
        )

    crossings = tuple(i % every == 0 for i in range(layers))
    words: tuple[Node, ...] = ()
    if prompted:
        words = (
            Embedding(name="qformer.embeddings.word_embeddings", num=config.need("vocab_size"), dim=h),
            Embedding(
                name="qformer.embeddings.position_embeddings", num=config.need("max_position_embeddings"), dim=h,
                role="position",
            ),
        )  # fmt: skip
        words = (Module(name="", stream=PROMPT, children=words),)
    first = norm("qformer.embeddings.layernorm" if prompted else "qformer.layernorm", h, "layer")
    return (*words, Module(name="", stream=both, children=(first,)), *stack("qformer.encoder.layer", crossings, layer))


def _blip(config: Config, name: str, *, prompted: bool) -> Arch:
    language = Language(default="opt", at="language_model", nested=True)
    tower = eva_tower(config.part("vision_config"), "vision_model")
    refuse_picture(config, tower.size)
    former = config.part("qformer_config")
    queries, h = config.whole("num_query_tokens", default=32), former.need("hidden_size")
    config.check()
    nodes = (
        Parameter(name="query_tokens", shape=(1, queries, h)),
        *_qformer(former, former.whole("encoder_hidden_size", default=tower.width), prompted=prompted),
        Linear(
            name="language_projection", in_features=h, out_features=text_width(config, language), bias=True
        ),
    )  # fmt: skip
    seen = seen_by(tower, nodes, queries)
    more = (Stream(name=QFORMER, extra=queries), Stream(name=PROMPT)) if prompted else ()
    note = f"{said(tower)}, whose {queries} queries read the --seq tokens of the prompt too" if prompted else seen.note
    found = Vision(nodes=seen.nodes, streams=(*seen.streams, *more), tokens=queries, note=note)
    return with_vision(config, name, found, language)


def read_blip2(config: Config, name: str) -> Arch:
    """BLIP-2 before OPT or T5."""
    return _blip(config, name, prompted=False)


def read_instructblip(config: Config, name: str) -> Arch:
    """InstructBLIP, and its video model on one frame: the Q-Former reads the prompt too."""
    return _blip(config, name, prompted=True)


FAMILIES = {
    "idefics2": read_idefics2,
    "aria": read_aria,
    "blip-2": read_blip2,
    "instructblip": read_instructblip,
    "instructblipvideo": read_instructblip,
}
