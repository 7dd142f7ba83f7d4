"""A config of diffusers as a model of its class on the meta device, and the inputs of one denoising step.

A class is looked for in diffusers alone; no code of a config is ever run.
"""

from __future__ import annotations

import importlib
import inspect
import os
import warnings
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from suanli.errors import ConfigError, Fault, InputError, MissingExtraError, nearest_names, shown
from suanli.nouns.arch import Arch
from suanli.readers.diffusers import CLASS, known_classes, read_diffusers_config
from suanli.readers.diffusers.pieces import SIZES
from suanli.readers.torch_module.books import Traced
from suanli.readers.torch_module.hf_meta import refuse_remote_code
from suanli.readers.torch_module.load import DTYPES, import_torch, read_inputs, shorten
from suanli.readers.torch_module.trace import Options, trace_copy

OURS = ("image_size", "num_frames", "vae_scale_factor", "vae_scale_factor_temporal", "name")


def import_diffusers() -> Any:
    """Diffusers, told to stay quiet while it loads, or the error that says how to get it."""
    import_torch()
    os.environ.setdefault("DIFFUSERS_VERBOSITY", "error")
    try:
        return importlib.import_module("diffusers")
    except ImportError as problem:
        raise MissingExtraError(
            Fault(
                code="missing_extra", message="diffusers is needed to trace this config",
                hint="Install it with: pip install 'suanli[diffusers]'",
            )
        ) from problem  # fmt: skip


def trace_diffusers(
    config: Mapping[str, Any], *, seq: int | None = None, batch: int = 1, train: bool = False, inputs: Any = None,
    dtype: str = "bfloat16", device: str = "meta", time_limit: float = 300.0, where: str = "config",
) -> Traced:  # fmt: skip
    """Count one forward (and backward where `train`) of the class a config names.

    Inputs are made for classes that are also read by formula; else `inputs` gives them. A class whose forward looks
    at values (a mask's sum) needs `device` cpu. Raises ConfigError where no model can be built, InputError where it
    cannot run.
    """
    with warnings.catch_warnings():  # of things deprecated in diffusers, and of fp32 autocast
        warnings.simplefilter("ignore")
        return _traced(config, seq, batch, train, inputs, dtype, device, time_limit, where)


def _traced(
    config: Mapping[str, Any], seq: int | None, batch: int, train: bool, inputs: Any, dtype: str, device: str,
    time_limit: float, where: str,
) -> Traced:  # fmt: skip
    model = build_diffusers(config, dtype=dtype, device=device, where=where)
    if inputs is not None:
        made = read_inputs(inputs, model)
    elif config[CLASS] in known_classes():
        made = (), step_inputs(model, read_diffusers_config(config, "traced", where), batch, seq)
    else:
        raise _inputs_wanted(model, _required(model))
    model.train(train)
    options = Options(train=train, device=device, whole=True, time_limit=time_limit)
    found = trace_copy(model, made[0], made[1], options)
    return replace(found, name=type(model).__name__)


def build_diffusers(
    config: Mapping[str, Any], *, dtype: str = "bfloat16", device: str = "meta", where: str = "config"
) -> Any:
    """Diffusers' model of a config, without weights of anybody. Raises ConfigError."""
    torch, diffusers = import_torch(), import_diffusers()
    refuse_remote_code(config, where)
    word = config.get(CLASS)
    factory: Any = getattr(diffusers, word, None) if isinstance(word, str) else None
    if not (isinstance(factory, type) and issubclass(factory, diffusers.ModelMixin)):
        known = [name for name in dir(diffusers) if name.endswith(("Model", "KL"))]
        raise ConfigError(
            Fault(
                code="unknown_class", message="diffusers has no such class of models", where=f"{where}: {CLASS}",
                got=shown(word), nearest=nearest_names(str(word)[:100], known),
            )
        )  # fmt: skip
    values = {key: value for key, value in config.items() if key not in OURS}
    try:
        with torch.device(device), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            build: Any = factory.from_config  # type: ignore[attr-defined]
            return torch.nn.Module.to(build(values), getattr(torch, DTYPES[dtype]))  # its own `to` warns
    except Exception as problem:
        raise ConfigError(
            Fault(
                code="cannot_build", where=where, got=shown(word),
                message=f"diffusers cannot build the model: {type(problem).__name__}: {shorten(problem)}",
            )
        ) from problem  # fmt: skip


# --- inputs -------------------------------------------------------------------------------------------------------


class _Given:
    """What the inputs of one step are made from."""

    def __init__(self, model: Any, arch: Arch, batch: int, seq: int | None) -> None:
        self.torch = import_torch()
        self.model, self.arch, self.batch = model, arch, batch
        self.text = seq or arch.max_positions or 1
        self.dtype, self.device = model.dtype, model.device
        self.sizes = {name: arch.extra[name] for name in arch.extra}

    @property
    def told(self) -> bool:
        """Whether there is a prompt."""
        return self.arch.task not in ("class-to-image", "autoencoder")

    def number(self, *names: str, default: int = 1) -> int:
        """The first of these keys that the model's config has."""
        found = (self.model.config.get(name) for name in names)
        return next((value for value in found if isinstance(value, int)), default)

    def real(self, *shape: int) -> Any:
        """A tensor of one row a sample."""
        return self.torch.ones(self.batch, *shape, dtype=self.dtype, device=self.device)

    def whole(self, *shape: int) -> Any:
        """A tensor of ones to look up with, one row a sample."""
        return self.torch.ones(self.batch, *shape, dtype=self.torch.int64, device=self.device)

    def latent(self) -> Any:
        """The latent: a map, a clip, or patches that are already packed."""
        channels = self.number("in_channels")
        given = "pixels_" if "pixels_height" in self.sizes else "latent_"
        sides = [size for name, size in self.sizes.items() if name.startswith(given)]
        takes = inspect.signature(self.model.forward).parameters
        if "img_ids" in takes or "img_shapes" in takes or "video_coords" in takes:
            return self.real(self.positions, channels)
        if type(self.model).__name__.startswith("CogVideoX"):  # frames before channels, in whole patches
            frames = self.sizes["patches_frames"] * self.number("patch_size_t")
            return self.real(frames, channels, *sides[1:])
        return self.real(channels, *sides)

    @property
    def positions(self) -> int:
        """Patches of one picture or clip."""
        count = 1
        for name, size in self.sizes.items():
            count *= size if name.startswith("patches_") else 1
        return count

    def prompt(self) -> Any:
        """The prompt as its encoder leaves it."""
        names = ("joint_attention_dim", "text_embed_dim", "caption_channels", "cap_feat_dim", "text_dim")
        length = self.number("text_len", default=self.text)
        return self.real(length, self.number("encoder_hid_dim", *names, "cross_attention_dim"))

    def ids(self, length: int) -> Any:
        """Places of positions: one row each, or one a sample and position where a class wants that."""
        axes = len(self.model.config.get("axes_dims_rope") or (0, 0, 0))
        made = self.torch.zeros(length, axes, dtype=self.dtype, device=self.device)
        return made[None].expand(self.batch, length, axes) if axes == 4 else made


def _asked(given: _Given) -> Any:
    return given.real() if given.model.config.get("guidance_embeds") else None


def _conditions(given: _Given) -> Any:
    if given.model.config.get("addition_embed_type") == "text_time":
        width = given.number("addition_time_embed_dim")
        pooled = given.number("projection_class_embeddings_input_dim") - SIZES * width
        return {"text_embeds": given.real(pooled), "time_ids": given.real(SIZES)}
    return {"resolution": given.real(2), "aspect_ratio": given.real(1)}


def _labels(given: _Given) -> Any:
    """A class to look up, or the vector a config calls its class."""
    config = given.model.config
    kind = config.get("class_embed_type")
    if kind is not None:
        width = "projection_class_embeddings_input_dim" if "projection" in kind else "time_embedding_dim"
        return given.real() if kind == "timestep" else given.real(given.number(width))
    wanted = config.get("num_class_embeds") is not None or (not given.told and "num_embeds_ada_norm" in config)
    return given.whole() if wanted else None


def _first_picture(given: _Given) -> Any:
    width = given.model.config.get("image_dim")
    rows = next((stream.length for stream in given.arch.streams if "first picture" in stream.name), None)
    if width is None or rows is None:
        return None
    copies = 1 if given.model.config.get("pos_embed_seq_len") is None else 2
    torch = given.torch
    shape = (copies * given.batch, rows // copies, width)
    return torch.ones(*shape, dtype=given.dtype, device=given.device)


_MASK = "encoder_attention_mask"
# What a parameter of `forward` is given, by its name; a None is left out.
_MADE: dict[str, Callable[[_Given], Any]] = {
    "hidden_states": lambda g: g.latent(),
    "sample": lambda g: g.latent(),
    "encoder_hidden_states": lambda g: g.prompt() if g.told or "encoder_hidden_states" in _required(g.model) else None,
    "encoder_attention_mask": lambda g: g.whole(g.text).bool() if _MASK in _required(g.model) else None,
    "timestep": lambda g: g.real(),
    "class_labels": _labels,
    "pooled_projections": lambda g: g.real(g.number("pooled_projection_dim")),
    "guidance": _asked,
    "img_ids": lambda g: g.ids(g.positions),
    "txt_ids": lambda g: g.ids(g.text),
    "img_shapes": lambda g: [[(1, g.sizes["patches_height"], g.sizes["patches_width"])]] * g.batch,
    "original_size": lambda g: g.real(2),
    "target_size": lambda g: g.real(2),
    "crop_coords": lambda g: g.real(2),
    "added_cond_kwargs": _conditions,
    "encoder_hidden_states_image": _first_picture,
    "encoder_hidden_states_t5": lambda g: g.real(g.number("text_len_t5"), g.number("cross_attention_dim_t5")),
    "text_embedding_mask": lambda g: g.whole(g.number("text_len")),
    "text_embedding_mask_t5": lambda g: g.whole(g.number("text_len_t5")),
    "image_meta_size": lambda g: g.real(SIZES),
    "style": lambda g: g.whole() * 0,
    "additional_t_cond": lambda g: g.whole() if g.model.config.get("use_additional_t_cond") else None,
    "ofs": lambda g: g.real() if g.model.config.get("ofs_embed_dim") else None,
    "num_frames": lambda g: g.sizes.get("patches_frames"),
    "height": lambda g: g.sizes["patches_height"],
    "width": lambda g: g.sizes["patches_width"],
}


def _required(model: Any) -> set[str]:
    parameters = inspect.signature(model.forward).parameters.values()
    return {each.name for each in parameters if each.default is inspect.Parameter.empty}


def step_inputs(model: Any, arch: Arch, batch: int = 1, seq: int | None = None) -> dict[str, Any]:
    """Inputs of one denoising step on the model's device, made by the names of what `forward` takes."""
    given = _Given(model, arch, batch, seq)
    made = {name: _MADE[name](given) for name in inspect.signature(model.forward).parameters if name in _MADE}
    missing = _required(model) - {name for name, value in made.items() if value is not None}
    if missing:
        raise _inputs_wanted(model, missing)
    return {name: value for name, value in made.items() if value is not None}


def _inputs_wanted(model: Any, names: Collection[str]) -> InputError:
    return InputError(
        Fault(
            code="missing_option", message=f"inputs of {type(model).__name__} must be given", where="--input",
            expected=", ".join(f"{name}=SHAPE" for name in sorted(names)),
        )
    )  # fmt: skip
