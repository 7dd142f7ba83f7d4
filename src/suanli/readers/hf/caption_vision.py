"""Pictures told in words by older decoders: GIT and BLIP (BERT's shape), Kosmos 2 and 2.5 (queries that look once)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from suanli.nouns.arch import TOKENS, Arch, Module, Shape, Stream
from suanli.nouns.layers import Embedding, Linear, Parameter
from suanli.readers.blocks import AttentionNames, AttentionSpec, Node, attention, mlp, norm, stack
from suanli.readers.config import Config
from suanli.readers.hf.composed import image_stream, of_image
from suanli.readers.hf.query_vision import eva_tower
from suanli.readers.hf.towers import (
    PATCHES,
    Tower,
    TowerLayer,
    clip_tower,
    heads_of,
    in_patches,
    refuse_picture,
    tower_stack,
)
from suanli.readers.hf.untied import unties
from suanli.readers.hf.vision_language import said

CONTEXT = "patches and queries"


@dataclass(frozen=True, kw_only=True)
class Words:
    """The numbers of an old decoder."""

    hidden: int
    heads: int
    ffn: int
    layers: int
    vocab: int
    positions: int

    def shape(self) -> Shape:
        """The letters of the formulas."""
        return Shape(
            num_layers=self.layers, hidden=self.hidden, heads=self.heads, kv_heads=self.heads,
            head_dim=max(1, self.hidden // self.heads), ffn=self.ffn, vocab=self.vocab,
        )  # fmt: skip


def _words(text: Config, *, hidden: str, heads: str, ffn: str, layers: str) -> Words:
    h = text.need(hidden)
    return Words(
        hidden=h, heads=heads_of(text, h, heads), ffn=text.need(ffn), layers=text.layers(layers),
        vocab=text.need("vocab_size"), positions=text.need("max_position_embeddings"),
    )  # fmt: skip


def _bert_words(text: Config) -> Words:
    return _words(
        text, hidden="hidden_size", heads="num_attention_heads", ffn="intermediate_size", layers="num_hidden_layers"
    )


def _attend(words: Words, at: str, inner: str, key_width: int | None = None) -> tuple[Node, ...]:
    """BERT's attention with the norm after it; across at the patches where their width is given."""
    names = AttentionNames(at=at, q=f"{inner}.query", k=f"{inner}.key", v=f"{inner}.value", o="output.dense")
    spec = AttentionSpec(
        hidden=words.hidden, heads=words.heads, kv_heads=words.heads, head_dim=max(1, words.hidden // words.heads),
        names=names, qkv_bias=True, o_bias=True, key_stream=None if key_width is None else PATCHES,
        key_width=key_width, mask="causal" if key_width is None else "full",
    )  # fmt: skip
    return (*attention(spec), norm(f"{at}.output.LayerNorm", words.hidden, "layer"))


def _bert_layer(words: Words, key_width: int | None = None) -> tuple[Node, ...]:
    across = () if key_width is None else _attend(words, "crossattention", "self", key_width)
    return (
        *_attend(words, "attention", "self"),
        *across,
        *mlp(words.hidden, words.ffn, at="", names=("intermediate.dense", "output.dense"), bias=True),
        norm("output.LayerNorm", words.hidden, "layer"),
    )


def _embeddings(words: Words, at: str) -> tuple[Node, ...]:
    return (
        Embedding(name=f"{at}.word_embeddings", num=words.vocab, dim=words.hidden),
        Embedding(name=f"{at}.position_embeddings", num=words.positions, dim=words.hidden, role="position"),
        norm(f"{at}.LayerNorm", words.hidden, "layer"),
    )


def _told(name: str, words: Words, nodes: tuple[Node, ...], streams: tuple[Stream, ...], extra: int, note: str) -> Arch:
    where = f"{extra:,} of the picture" if extra else "none of the picture, at which they look across"
    return Arch(
        name=name,
        root=Module(name="", children=nodes),
        streams=(Stream(name=TOKENS, decodes=True, extra=extra), *streams),
        shape=words.shape(),
        max_positions=words.positions,
        task="image-text-to-text",
        notes=(f"{note}; the decoder's positions are --seq tokens of text and {where}",),
    )


def _picture(config: Config, read: Callable[[Config, str], Tower], at: str) -> Tower:
    tower = read(config.part("vision_config"), at)
    refuse_picture(config, tower.size)
    return tower


def read_git(config: Config, name: str) -> Arch:
    """GIT: CLIP's patches through a matrix and a norm, before the words of a small causal BERT."""
    words = _bert_words(config)
    tower = _picture(config, clip_tower, "git.image_encoder.vision_model")
    frames = config.maybe("num_image_with_embedding", low=0, high=1000) or 0
    tied = config.flag("tie_word_embeddings", default=False)
    config.check()
    h, at = words.hidden, "git.visual_projection.visual_projection"
    moments = tuple(
        Parameter(name=f"git.img_temporal_embedding.{frame}", shape=(1, 1, tower.width)) for frame in range(frames)
    )
    nodes = (
        *tower.nodes,
        *moments,
        of_image(
            Linear(name=f"{at}.0", in_features=tower.width, out_features=h, bias=True), norm(f"{at}.1", h, "layer")
        ),
        Module(name="", stream=TOKENS, children=_embeddings(words, "git.embeddings")),
        *stack("git.encoder.layer", (0,) * words.layers, lambda _: _bert_layer(words)),
        Linear(name="output", in_features=h, out_features=words.vocab, bias=True, role="lm_head", tied=tied),
    )
    streams = (*tower.streams, image_stream(tower.positions))
    ahead = "its tokens see one another; pairs that look ahead are charged by convention full alone"
    return _told(name, words, nodes, streams, tower.positions, f"{said(tower)}; {ahead}")


@unties
def read_blip(config: Config, name: str) -> Arch:
    """BLIP's captioner: a BERT whose every layer looks across at the patches."""
    text = config.part("text_config")
    words = _bert_words(text)
    tower = _picture(config, eva_tower, "vision_model")
    width = text.whole("encoder_hidden_size", default=tower.width)
    config.check()
    h, at = words.hidden, "text_decoder.cls.predictions"
    head = (
        Linear(name=f"{at}.transform.dense", in_features=h, out_features=h, bias=True),
        norm(f"{at}.transform.LayerNorm", h, "layer"),
        Linear(name=f"{at}.decoder", in_features=h, out_features=words.vocab, role="lm_head", tied=True),
        Parameter(name=f"{at}.bias", shape=(words.vocab,)),
    )
    layers = stack("text_decoder.bert.encoder.layer", (0,) * words.layers, lambda _: _bert_layer(words, width))
    nodes = (*tower.nodes, *_embeddings(words, "text_decoder.bert.embeddings"), *layers, *head)
    return _told(name, words, nodes, tower.streams, 0, said(tower))


# --- Kosmos -------------------------------------------------------------------------------------------------------


def _kosmos_words(text: Config) -> Words:
    return _words(text, hidden="embed_dim", heads="attention_heads", ffn="ffn_dim", layers="layers")


def _kosmos_layer(words: Words, *, inner_norm: bool) -> tuple[Node, ...]:
    """Pre-norm, with norms inside the MLP and (Kosmos 2) before the output projection."""
    h = words.hidden
    spec = AttentionSpec(
        hidden=h, heads=words.heads, kv_heads=words.heads, head_dim=max(1, h // words.heads),
        names=AttentionNames(o="out_proj"), qkv_bias=True, o_bias=True,
    )  # fmt: skip
    *before, out = attention(spec)
    inner = (norm("self_attn.inner_attn_ln", h, "layer"),) if inner_norm else ()
    first, act, last = mlp(h, words.ffn, at="ffn", names=("fc1", "fc2"), bias=True)
    return (
        norm("self_attn_layer_norm", h, "layer"),
        *before,
        *inner,
        out,
        norm("final_layer_norm", h, "layer"),
        first,
        act,
        norm("ffn.ffn_layernorm", words.ffn, "layer"),
        last,
    )


def _looking_once(words: Words, width: int, queries: int) -> tuple[Node, ...]:
    """Latent queries that look at the projected patches and at one another, once."""
    at, h = "image_to_text_projection", words.hidden
    spec = AttentionSpec(
        hidden=h, heads=words.heads, kv_heads=words.heads, head_dim=max(1, h // words.heads),
        names=AttentionNames(at=f"{at}.x_attn", o="out_proj"), qkv_bias=True, o_bias=True, key_stream=CONTEXT,
        mask="full",
    )  # fmt: skip
    dense = Linear(name=f"{at}.dense", in_features=width, out_features=h, bias=True)
    queried = (Parameter(name=f"{at}.latent_query", shape=(queries, h)), *attention(spec))
    return (in_patches((dense,)), of_image(*queried))


def _kosmos(
    config: Config, name: str, tower: Tower, *, segments: bool, inner_norm: bool, note: str
) -> Arch:  # fmt: skip
    words = _kosmos_words(config.part("text_config"))
    queries = config.whole("latent_query_num", default=64)
    tied = config.flag("tie_word_embeddings", default=True)
    config.check()
    at, h = "text_model.model", words.hidden
    told_apart = (Embedding(name=f"{at}.segment_emb", num=2, dim=h, role="type"),) if segments else ()
    nodes = (
        *tower.nodes,
        *_looking_once(words, tower.width, queries),
        Embedding(name=f"{at}.embed_tokens", num=words.vocab, dim=h),
        *told_apart,
        *stack(f"{at}.layers", (0,) * words.layers, lambda _: _kosmos_layer(words, inner_norm=inner_norm)),
        norm(f"{at}.layer_norm", h, "layer"),
        Linear(name="text_model.lm_head", in_features=h, out_features=words.vocab, role="lm_head", tied=tied),
    )
    streams = (*tower.streams, image_stream(queries), Stream(name=CONTEXT, length=tower.positions + queries))
    return _told(name, words, nodes, streams, queries, note)


def read_kosmos2(config: Config, name: str) -> Arch:
    """Kosmos 2: CLIP's tower, 64 queries."""
    tower = _picture(config, clip_tower, "vision_model.model")
    return _kosmos(config, name, tower, segments=False, inner_norm=True, note=said(tower))


def read_kosmos2_5(config: Config, name: str) -> Arch:
    """Kosmos 2.5: Pix2Struct's tower on as many patches as it takes, 2,048 queries."""
    vision = config.part("vision_config")
    h, heads = vision.need("hidden_size"), vision.need("num_attention_heads", high=1_000_000)
    patches, pixels = vision.need("max_num_patches"), vision.need("patch_embed_hidden_size")
    at = "vision_model"
    layer = TowerLayer(
        hidden=h, heads=heads, head_dim=vision.head_dim(h, heads), ffn=vision.need("intermediate_size"),
        names=AttentionNames(at="attention", q="query", k="key", v="value", o="output"), norm_kind="rms",
        norms=("pre_attention_layer_norm", "pre_mlp_layer_norm"), mlp_names=("wi_0", "wi_1", "wo"), mlp_bias=False,
        qkv_bias=False, o_bias=False,
    )  # fmt: skip
    nodes: tuple[Node, ...] = (
        Linear(name=f"{at}.embeddings.patch_projection", in_features=pixels, out_features=h, bias=True, raw_input=True),
        Embedding(name=f"{at}.embeddings.row_embedder", num=patches, dim=h, role="position"),
        Embedding(name=f"{at}.embeddings.column_embedder", num=patches, dim=h, role="position"),
        *tower_stack(f"{at}.encoder.layer", vision.layers("num_hidden_layers"), layer),
        norm(f"{at}.layernorm", h),
    )
    tower = Tower(nodes=(in_patches(nodes),), width=h, grid=(1, patches), size=(1, 1), positions=patches)
    note = f"one picture in {patches:,} patches, empty ones among them"
    return _kosmos(config, name, tower, segments=True, inner_norm=False, note=note)


FAMILIES = {
    "git": read_git,
    "blip": read_blip,
    "kosmos-2": read_kosmos2,
    "kosmos-2.5": read_kosmos2_5,
}
