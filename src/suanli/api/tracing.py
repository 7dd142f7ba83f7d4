"""`suanli.count` of a module: `torch:package.module:factory`, a live module, or a config that is to be run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from suanli.api.parts import as_asked, assumed_line, read_convention
from suanli.api.request import Request, read_image
from suanli.catalog.presets import find_preset
from suanli.errors import ConfigError, Fault, InputError, UnknownNameError, shown
from suanli.nouns.result import Result
from suanli.nouns.workload import Workload
from suanli.readers import files, gate, hub
from suanli.readers.configs import with_clip
from suanli.readers.diffusers import is_diffusers
from suanli.readers.torch_module import Traced, hf_meta, is_module, load_factory, trace
from suanli.readers.torch_module.load import DTYPES, PREFIX
from suanli.traced import check_convention, count_traced

SOURCE = "operators seen by torch's dispatcher in one run, each with the formula of its row"
_HEADS = {  # what the class counted does -> transformers' name of its head
    "causal-lm": "AutoModelForCausalLM", "masked-lm": "AutoModelForMaskedLM", "seq2seq-lm": "AutoModelForSeq2SeqLM",
    "speech-seq2seq": "AutoModelForSpeechSeq2Seq", "contrastive": "AutoModel",
    "image-classification": "AutoModelForImageClassification", "image-text-to-text": "AutoModelForImageTextToText",
}  # fmt: skip


def count_by_trace(
    model: Any, *, input_: Any, typed: Mapping[str, Any], convention: str | None, by: str, strict: bool
) -> Result:
    """Run the model once and give its books. Raises InputError listing every fault of the request."""
    if isinstance(input_, list) and all(isinstance(part, str) for part in input_):
        input_ = ",".join(input_)  # as the option was repeated
    request = Request()
    rule = read_convention(request, convention)
    if rule is not None:
        request.attempt(lambda: check_convention(rule))
    workload = _workload(request, typed)
    _refuse_others(request, typed)
    request.check()
    assert rule is not None and workload is not None
    traced = _trace(request, model, input_, typed, workload)
    request.check()
    books = count_traced(traced, workload, rule, by=by)
    if input_ is not None:
        request.given["input"] = input_ if isinstance(input_, str) else shown(type(input_).__name__)
    bound = ("operators without a formula were called: every total is a LOWER BOUND",) if books.lower_bound else ()
    return Result(
        kind="count",
        inputs={"model": as_asked(model), **request.given, "assumed": request.assumed},
        convention=rule.name,
        result=books,
        uncounted=books.ledger_uncounted,
        sources=(SOURCE, f"convention {rule.name}: {rule.source}"),
        ok=not (strict and books.lower_bound),
        notes=(*bound, *assumed_line(request), *traced.notes),
    )


def _workload(request: Request, typed: Mapping[str, Any]) -> Workload | None:
    values: dict[str, Any] = {
        "phase": request.word("phase", typed.get("phase"), "forward"),
        "recompute": request.word("recompute", typed.get("recompute"), "none"),
        "optimizer": typed.get("optimizer") or "adamw",
        "dtype": typed.get("dtype") or "bf16",
    }
    values |= {name: request.whole(name, typed[name]) for name in ("batch", "seq") if typed.get(name) is not None}
    sound: dict[str, Any] = {
        name: 1 if value is None else value for name, value in values.items()
    }  # a None is a fault already
    return request.attempt(lambda: Workload(**sound))


def _refuse_others(request: Request, typed: Mapping[str, Any]) -> None:
    """Options that only a formula can follow are faults, not ignored."""
    if typed.get("phase") == "decode":
        request.fault("phase_impossible", "a trace runs no decoding", "phase", got="decode", expected="forward, train")
    for name in ("kv_len", "kv_dtype", "trainable", "params"):
        if typed.get(name) is not None:
            request.fault("not_traced", "a trace takes no such option", name, got=shown(typed[name]))


def _trace(request: Request, model: Any, input_: Any, typed: Mapping[str, Any], workload: Workload) -> Traced:
    train = workload.phase == "train"
    if is_module(model) or (isinstance(model, str) and model.startswith(PREFIX)):
        if workload.recompute != "none":
            raise _no_recompute(workload.recompute)
        module, made = (model, None) if is_module(model) else load_factory(model)
        return trace(module, made if input_ is None else input_, train=train)
    if workload.recompute == "selective":
        raise _no_recompute("selective")
    config, head, where = config_of(model)
    if not gate.may_build(where):
        raise _not_run_here()
    if is_diffusers(config):
        return _denoiser(request, config, input_, typed, workload, where)
    if typed.get("frames") is not None:
        request.fault("not_traced", "only a model of diffusers takes frames", "frames", got=shown(typed["frames"]))
        request.check()
    seq = None if typed.get("seq") is None else workload.seq
    batch = request.whole("batch", typed.get("batch"), 1) or 1
    dtype = DTYPES.get(workload.dtype, "bfloat16")
    return hf_meta.trace_config(
        config, seq=seq, batch=batch, train=train, inputs=input_, head=head, dtype=dtype,
        checkpointing=workload.recompute == "full", where=where,
    )  # fmt: skip


def _denoiser(
    request: Request, config: Mapping[str, Any], input_: Any, typed: Mapping[str, Any], workload: Workload, where: str
) -> Traced:
    """One step of a class of diffusers."""
    from suanli.readers.torch_module.diffusers_meta import trace_diffusers  # noqa: PLC0415  loaded where it is needed

    if workload.recompute != "none":
        raise _no_recompute(workload.recompute)
    image = request.attempt(lambda: read_image(typed.get("image")))
    frames = request.whole("frames", typed.get("frames"), low=1)
    batch = request.whole("batch", typed.get("batch"), 1) or 1
    request.check()
    return trace_diffusers(
        with_clip(config, image, frames), seq=None if typed.get("seq") is None else workload.seq, batch=batch,
        train=workload.phase == "train", inputs=input_, dtype=DTYPES.get(workload.dtype, "bfloat16"), where=where,
    )  # fmt: skip


def _no_recompute(policy: str) -> InputError:
    return InputError(
        Fault(
            code="not_traced",
            message="a module is traced with the checkpointing it has",
            where="--recompute",
            got=policy,
            expected="none",
            hint="Use torch.utils.checkpoint in the module; what is run again is seen and shown apart.",
        )
    )


def config_of(model: Any) -> tuple[Mapping[str, Any], str | None, str]:
    """A Hugging Face config, its head, and where it is from."""
    if isinstance(model, Mapping):
        return model, None, "the config"
    if hasattr(model, "to_dict") and hasattr(model, "model_type"):
        return model.to_dict(), None, "the config"
    if isinstance(model, Path):
        return files.read_json_config(files.config_file(model)), None, str(model)
    if isinstance(model, str):
        return _named_config(model.strip())
    raise ConfigError(
        Fault(code="not_traced", message="not a model that can be run", where="MODEL", got=type(model).__name__)
    )


def _not_run_here() -> ConfigError:
    """The error of a config from outside: building it, transformers would import and fetch what it names."""
    return ConfigError(
        Fault(
            code="not_run_here", message=gate.NOT_BUILT,
            where="MODEL", expected="a preset, or a layer expression",
            hint="Formulas count it: leave out --trace and --input; or run Suanli on a machine of yours.",
        )
    )  # fmt: skip


def _named_config(text: str) -> tuple[Mapping[str, Any], str | None, str]:
    try:
        preset = find_preset(text, "MODEL")
    except UnknownNameError:
        path = Path(text).expanduser()
        if "\0" not in text and gate.may_open(path) and path.exists():
            return files.read_json_config(files.config_file(path)), None, text
        if hub.HUB_ID.fullmatch(text):
            return hub.read_hub_config(text), None, text
        raise
    if preset.format not in ("hf", "diffusers"):
        raise ConfigError(
            Fault(
                code="not_traced",
                message=f"{preset.name} is described by its paper, so there is no module to run",
                where="MODEL",
                hint="Count it by formula: leave out --input and --trace.",
            )
        )
    return preset.config, _HEADS.get(preset.task), f"preset {preset.name}"
