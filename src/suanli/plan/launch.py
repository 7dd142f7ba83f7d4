"""A layout as the flags or the configuration of a training tool; what the tool cannot express is refused, and why.

Names checked in August 2026 against Megatron-LM (core 0.20) and torchtitan; DeepSpeed 0.17's JSON and NeMo 2.4's
overrides as documented in 2025.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from suanli.errors import FaultList, InputError, unknown_name
from suanli.nouns.layout import Layout, chunk_sizes


def _doc(doc: str, **more: Any) -> Any:
    return field(metadata={"unit": "", "doc": doc}, **more)


@dataclass(frozen=True, kw_only=True)
class Job:
    """What a launch needs beside its layout."""

    model: str
    layers: int
    seq: int
    global_batch: int
    dtype: str = "bf16"
    experts: bool = False
    per_node: int = 8
    stacks: tuple[str, ...] = ("tokens",)  # streams that have blocks of their own
    masked: bool = True  # whether every attention is causal
    scans: tuple[str, ...] = ()  # rules of running states


@dataclass(frozen=True, kw_only=True)
class Launch:
    """What to give a tool."""

    tool: str = _doc("megatron, torchtitan, deepspeed or nemo")
    version: str = _doc("the version whose names these are")
    text: str = _doc("flags, or a piece of its configuration")
    notes: tuple[str, ...] = _doc("what it leaves to you", default=())


def launch(tool: str, layout: Layout, job: Job) -> Launch:
    """The launch of a layout. Raises UnknownNameError for another tool, InputError with all it cannot express."""
    if tool not in TOOLS:
        raise unknown_name("tool", tool, TOOLS, where="--emit", hint="Tools: " + ", ".join(TOOLS) + ".")
    refused = list(_REFUSALS[tool](layout, job))
    several = list(_several_stacks(tool, layout, job))
    if refused or several:
        faults = FaultList(InputError)
        for what, why in several:
            faults.add(code="cannot_express", message=f"{tool} cannot express {what}", where="--emit", got=why,
                       expected="no --emit: the layout's degrees by hand in a program for this model")  # fmt: skip
        for what, why in refused:
            faults.add(code="cannot_express", message=f"{tool} cannot express {what}", where="--emit", got=why,
                       expected=f"another layout: pin what {tool} has")  # fmt: skip
        faults.raise_if_any()
    return TOOLS[tool](layout, job)


Refusal = tuple[str, str]


def _shared_refusals(layout: Layout, tool: str) -> Iterator[Refusal]:
    if layout.schedule == "zero-bubble":
        yield "the zero-bubble schedule ZB-H1", f"{tool} has no schedule of that name and memory"
    if layout.schedule == "dualpipe":
        yield "DualPipe", f"{tool} has no pipeline entered from both ends"
    if layout.shards and not layout.zero:
        yield f"states shared by {layout.shards} ranks under ZeRO 0", "ZeRO 0 shares none"


def _several_stacks(tool: str, layout: Layout, job: Job) -> Iterator[Refusal]:
    """A model whose blocks are not one stack. DeepSpeed without a pipeline wraps any model; NeMo's recipes bring it."""
    one = tool in ("megatron", "torchtitan") or (tool == "deepspeed" and layout.pp > 1)
    if one and len(job.stacks) > 1:
        why = f"{tool} lays out one stack of blocks; {job.model} has {len(job.stacks)}"
        yield f"blocks over several streams ({', '.join(job.stacks)})", why


# --- Megatron-LM and NeMo -----------------------------------------------------------------------------------------

_STRATEGIES = {2: "optim_grads", 3: "optim_grads_params"}
_CORE_DTYPES: dict[str, dict[str, str]] = {
    "bf16": {},
    "fp16": {},
    "fp8": {"fp8-format": "hybrid"},
    "mxfp8": {"fp8-format": "e4m3", "fp8-recipe": "mxfp8"},
    "nvfp4": {"fp4-format": "e2m1"},
}


def _core_refusals(layout: Layout, job: Job) -> Iterator[Refusal]:
    yield from _shared_refusals(layout, "Megatron-core")
    if layout.zero > 1 and layout.pp > 1:
        yield f"a pipeline with ZeRO {layout.zero}", "Megatron-FSDP goes with tp, ep and cp, not with pp"
    if layout.offload and not layout.zero:
        yield "optimizer states on the host under ZeRO 0", "--optimizer-cpu-offload is of the distributed optimizer"
    if layout.offload and layout.zero > 1:
        yield f"optimizer states on the host under ZeRO {layout.zero}", "Megatron-FSDP keeps them on the device"
    if job.experts and layout.tp > 1 and not layout.sp:
        yield "experts with tensor parallelism and no sequence parallelism", "its mixture layer refuses to train so"
    if job.dtype not in _CORE_DTYPES:
        yield f"training in {job.dtype}", "it trains in " + ", ".join(_CORE_DTYPES)


def pipeline_text(layout: Layout, layers: int) -> str | None:
    """Megatron-core's string for stages that are not equal: `Ettttttt|(tttttttt|)*14tttttttL`; None where they are."""
    sizes = chunk_sizes(layers, layout.pp, layout.vpp)
    if len(set(sizes)) == 1:
        return None
    parts = []
    inner = sizes[1:-1]
    for size, group in groupby(inner):
        times = len(list(group))
        parts.append(f"({'t' * size}|)*{times}" if times > 1 else f"{'t' * size}|")
    return f"E{'t' * sizes[0]}|{''.join(parts)}{'t' * sizes[-1]}L"


def _core_options(layout: Layout, job: Job) -> dict[str, Any]:
    """Options of Megatron-core by the names its command line has; True stands for a flag without a value."""
    found: dict[str, Any] = {
        "tensor-model-parallel-size": layout.tp,
        "pipeline-model-parallel-size": layout.pp,
        "context-parallel-size": layout.cp,
    }
    if job.experts:
        found |= {"expert-model-parallel-size": layout.ep, "expert-tensor-parallel-size": layout.etp}
    uneven = pipeline_text(layout, job.layers) if layout.pp > 1 else None
    if uneven:
        found["pipeline-model-parallel-layout"] = uneven
    elif layout.vpp > 1:
        found["num-virtual-stages-per-pipeline-rank"] = layout.vpp
    if layout.sp:
        found["sequence-parallel"] = True
    if layout.recompute == "selective":
        found["recompute-granularity"] = "selective"
    if layout.recompute == "full":
        found |= {"recompute-granularity": "full", "recompute-method": "uniform", "recompute-num-layers": 1}
    if layout.recompute_layers:  # the first layers of every (virtual) stage
        found |= {"recompute-method": "block", "recompute-num-layers": layout.recompute_layers}
    return found


def _instances(layout: Layout) -> int:
    """Groups of ranks that share states, each with a whole copy of them."""
    return layout.dp * layout.cp // layout.shards if layout.shards else 1


def _megatron(layout: Layout, job: Job) -> Launch:
    found = _core_options(layout, job)
    found |= {"micro-batch-size": layout.micro_batch, "global-batch-size": job.global_batch, "seq-length": job.seq}
    if layout.zero:
        found["use-distributed-optimizer"] = True
    if layout.zero > 1:
        found |= {"use-megatron-fsdp": True, "data-parallel-sharding-strategy": _STRATEGIES[layout.zero],
                  "ckpt-format": "fsdp_dtensor"}  # fmt: skip
    if _instances(layout) > 1:
        found["num-distributed-optimizer-instances"] = _instances(layout)
        if layout.zero > 1:
            found["outer-dp-sharding-strategy"] = "no_shard"
    if layout.offload:
        found |= {"optimizer-cpu-offload": True, "optimizer-offload-fraction": "1.0",
                  "use-precision-aware-optimizer": True}  # fmt: skip
    if layout.dp > 1:
        found["overlap-grad-reduce"] = True
        if layout.zero:
            found["overlap-param-gather"] = True
    found["fp16" if job.dtype == "fp16" else "bf16"] = True
    found |= _CORE_DTYPES[job.dtype]
    flags = [f"--{name}" if value is True else f"--{name} {_quoted(value)}" for name, value in found.items()]
    notes = [
        f"data parallelism is what is left of {layout.gpus:,} {'GPU' if layout.gpus == 1 else 'GPUs'}: {layout.dp}"
    ]
    if layout.zero > 1:
        notes.append("Megatron-FSDP wants CUDA_DEVICE_MAX_CONNECTIONS above 1 or unset")
    notes += _other_programs(job)
    return Launch(tool="megatron", version="Megatron-LM, core 0.20", text=" \\\n".join(flags), notes=tuple(notes))


def _other_programs(job: Job) -> Iterator[str]:
    """Which program takes the flags where pretrain_gpt.py, a stack of causal attention, cannot run the model."""
    if any(rule in ("selective", "ssd") for rule in job.scans):
        yield (
            "not for pretrain_gpt.py, which has no state spaces: pretrain_hybrid.py (pretrain_mamba.py in older "
            "versions), with the pattern of layers"
        )
    elif job.scans:
        yield f"not for pretrain_gpt.py as it is, which lacks running states by the rule {', '.join(job.scans)}"
    if not job.masked:
        yield "not for pretrain_gpt.py, whose attention is causal: pretrain_bert.py"


def _quoted(value: Any) -> str:
    text = str(value)
    return f"'{text}'" if any(each in text for each in "|()*") else text


def _nemo(layout: Layout, job: Job) -> Launch:
    options = _core_options(layout, job)
    of_model = ("pipeline-model-parallel-layout", "recompute-granularity", "recompute-method", "recompute-num-layers")
    renamed = {"num-virtual-stages-per-pipeline-rank": "virtual_pipeline_model_parallel_size"}
    lines = [f"trainer.num_nodes={-(-layout.gpus // job.per_node)}",
             f"trainer.devices={min(layout.gpus, job.per_node)}"]  # fmt: skip
    for name, value in options.items():
        key = renamed.get(name, name.replace("-", "_"))
        lines.append(f"{'model.config' if name in of_model else 'trainer.strategy'}.{key}={_quoted(value)}")
    ddp: dict[str, Any] = {"use_distributed_optimizer": layout.zero > 0, "overlap_grad_reduce": layout.dp > 1}
    if _instances(layout) > 1:
        ddp["num_distributed_optimizer_instances"] = _instances(layout)
        lines.append(f"trainer.strategy.num_distributed_optimizer_instances={_instances(layout)}")
    if layout.offload:
        lines += ["optim.config.optimizer_cpu_offload=True", "optim.config.optimizer_offload_fraction=1.0",
                  "optim.config.use_precision_aware_optimizer=True"]  # fmt: skip
    lines += [f"trainer.strategy.ddp.{name}={value}" for name, value in ddp.items()]
    if layout.zero > 1:
        lines += ["trainer.strategy.fsdp=megatron",
                  f"trainer.strategy.ddp.data_parallel_sharding_strategy={_STRATEGIES[layout.zero]}"]  # fmt: skip
    lines += [f"data.micro_batch_size={layout.micro_batch}", f"data.global_batch_size={job.global_batch}",
              f"data.seq_length={job.seq}"]  # fmt: skip
    notes = ["overrides of `nemo llm pretrain --factory RECIPE`"]
    if job.dtype != "bf16":
        notes.append(f"take a recipe whose precision plugin trains in {job.dtype}")
    return Launch(tool="nemo", version="NeMo 2.4", text=" \\\n".join(lines), notes=tuple(notes))


# --- torchtitan ---------------------------------------------------------------------------------------------------

_TITAN_SCHEDULES = {"1f1b": "1F1B", "interleaved": "Interleaved1F1B"}


def _torchtitan_refusals(layout: Layout, job: Job) -> Iterator[Refusal]:
    yield from _shared_refusals(layout, "torchtitan")
    if layout.zero == 1:
        yield "ZeRO 1", "FSDP2 shards gradients with the optimizer states (ZeRO 2), or everything (ZeRO 3)"
    if layout.zero == 0 and layout.cp > 1:
        yield "context parallelism without sharding", "its shards always span dp and cp"
    if layout.zero and layout.dp % _instances(layout):
        yield f"states shared by {layout.shards} ranks", f"its groups are of whole cp {layout.cp}: copies divide dp"
    if layout.etp > 1:
        yield "tensor parallelism of experts", "expert ranks are taken out of dp, cp and tp, each expert whole"
    if layout.recompute_layers:
        yield (
            f"recompute of {layout.recompute_layers} layers of a stage",
            "it is of every block, or by operator",
        )
    if job.dtype != "bf16":
        yield f"training in {job.dtype} by the layout alone", "8-bit products are a change of the model configuration"


def _torchtitan(layout: Layout, job: Job) -> Launch:
    sharded = layout.zero > 0
    copies = _instances(layout) if sharded else layout.dp
    found: dict[str, Any] = {
        "parallelism.data_parallel_replicate_degree": copies,
        "parallelism.data_parallel_shard_degree": layout.dp // copies,
        "parallelism.tensor_parallel_degree": layout.tp,
        "parallelism.context_parallel_degree": layout.cp,
        "parallelism.pipeline_parallel_degree": layout.pp,
        "training.num_tokens_per_microbatch_per_dp_rank": layout.micro_batch * job.seq,
        "training.num_tokens_per_train_step": job.global_batch * job.seq,
        "training.max_context_length": job.seq,
    }
    if sharded:
        found["parallelism.fsdp_reshard_after_forward"] = "always" if layout.zero == 3 else "never"
    if layout.offload:
        found["training.enable_cpu_offload"] = True
    if layout.tp > 1:
        found["parallelism.enable_sequence_parallel"] = layout.sp
    if job.experts:
        found["parallelism.expert_parallel_degree"] = layout.ep
    if layout.pp > 1:
        found |= {
            "parallelism.pipeline_parallel_schedule": _TITAN_SCHEDULES[layout.schedule],
            "parallelism.num_pp_microbatches": layout.micro_batches(job.global_batch),
            "parallelism.module_fqns_per_model_part": _parts(layout, job.layers),
        }
    lines = [f"config.{name} = {value!r}" for name, value in found.items()]
    policy = {"none": "None", "selective": "SelectiveAC.Config()", "full": "FullAC.Config()"}[layout.recompute]
    lines.append(f"config.activation_checkpoint = {policy}")
    notes = ["assignments in a function that returns a Trainer.Config; SelectiveAC and FullAC are those of "
             "torchtitan.distributed.activation_checkpoint"]  # fmt: skip
    if layout.recompute == "selective":
        notes.append("its selective recompute is by operator: every second product is kept, not the scores alone")
    return Launch(tool="torchtitan", version="torchtitan, August 2026", text="\n".join(lines), notes=tuple(notes))


def _parts(layout: Layout, layers: int) -> list[list[str]]:
    found, start = [], 0
    for size in chunk_sizes(layers, layout.pp, layout.vpp):
        found.append([f"layers.{at}" for at in range(start, start + size)])
        start += size
    found[0].insert(0, "tok_embeddings")
    found[-1] += ["norm", "lm_head"]
    return found


# --- DeepSpeed ----------------------------------------------------------------------------------------------------


def _deepspeed_refusals(layout: Layout, job: Job) -> Iterator[Refusal]:
    yield from _shared_refusals(layout, "DeepSpeed")
    if layout.vpp > 1:
        yield "interleaved stages", "its pipeline engine runs 1F1B with one stage a rank"
    if layout.pp > 1 and layout.zero > 1:
        yield f"a pipeline with ZeRO {layout.zero}", "its pipeline engine takes ZeRO 0 and 1"
    if layout.cp > 1:
        yield "context parallelism", "its Ulysses cuts heads, and is set up in code"
    if layout.sp:
        yield "sequence parallelism over tp", "its tensor parallelism keeps whole activations"
    if layout.etp > 1:
        yield "tensor parallelism of experts", "its expert groups are set up in code"
    if layout.recompute == "selective":
        yield "selective recompute", "its checkpointing makes whole blocks again"
    if layout.shards and layout.zero in (1, 2):
        yield f"states shared by {layout.shards} ranks under ZeRO {layout.zero}", "its MiCS groups are of ZeRO 3"
    if layout.offload and not layout.zero:
        yield "optimizer states on the host under ZeRO 0", "offload_optimizer is of ZeRO 1 to 3"
    if job.dtype not in ("bf16", "fp16", "fp32"):
        yield f"training in {job.dtype}", "it trains in bf16, fp16 or fp32"


def _deepspeed(layout: Layout, job: Job) -> Launch:
    found: dict[str, Any] = {
        "train_batch_size": job.global_batch,
        "train_micro_batch_size_per_gpu": layout.micro_batch,
        "gradient_accumulation_steps": layout.micro_batches(job.global_batch),
        "zero_optimization": {"stage": layout.zero, **({"overlap_comm": True} if layout.zero else {})},
    }
    if layout.offload:
        found["zero_optimization"]["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if layout.shards:
        found["zero_optimization"]["mics_shard_size"] = layout.shards
    if job.dtype != "fp32":
        found[job.dtype] = {"enabled": True}
    if layout.tp > 1:
        found["tensor_parallel"] = {"autotp_size": layout.tp}
    if layout.recompute == "full":
        found["activation_checkpointing"] = {"partition_activations": False}
    notes = [f"run on {layout.gpus:,} ranks"]
    if layout.pp > 1:
        sizes = ", ".join(map(str, chunk_sizes(job.layers, layout.pp, 1)))
        notes.append(f"PipelineModule(num_stages={layout.pp}) in your code, its layers {sizes}")
    if job.experts:
        notes.append(f"MoE(ep_size={layout.ep}) in your code")
    if layout.recompute == "full":
        which = (
            f"the first {layout.recompute_layers} blocks of every stage" if layout.recompute_layers else "every block"
        )
        notes.append(f"call deepspeed.checkpointing.checkpoint around {which}")
    if layout.shards:
        notes.append(
            "MiCS: set the model up under deepspeed.zero.MiCS_Init; zero_hpz_partition_size would copy the weights "
            "into every node and shard the other states over all"
        )
    return Launch(tool="deepspeed", version="DeepSpeed 0.17", text=json.dumps(found, indent=2), notes=tuple(notes))


TOOLS: dict[str, Callable[[Layout, Job], Launch]] = {
    "megatron": _megatron, "torchtitan": _torchtitan, "deepspeed": _deepspeed, "nemo": _nemo,
}  # fmt: skip
_REFUSALS: dict[str, Callable[[Layout, Job], Iterator[Refusal]]] = {
    "megatron": _core_refusals, "torchtitan": _torchtitan_refusals, "deepspeed": _deepspeed_refusals,
    "nemo": _core_refusals,
}  # fmt: skip
