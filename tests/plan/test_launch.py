"""Layouts as other tools' flags: every axis comes out, degrees multiply to the GPUs, and refusals say why."""

from __future__ import annotations

import json
import re

import pytest

from suanli.errors import InputError, UnknownNameError
from suanli.nouns.layout import Layout, chunk_sizes
from suanli.plan.launch import TOOLS, Job, launch, pipeline_text

LLAMA = Job(model="llama-3.1-405b", layers=126, seq=8192, global_batch=2048)
GPT = Job(model="gpt3-175b", layers=96, seq=2048, global_batch=1024)
DEEPSEEK = Job(model="deepseek-v3", layers=61, seq=4096, global_batch=15360, dtype="fp8", experts=True)
META = Layout(tp=8, pp=16, dp=128, zero=1, sp=True, recompute="none")
INTERLEAVED = Layout(tp=8, pp=16, dp=8, vpp=6, schedule="interleaved", zero=1, sp=True, recompute="selective")


def flags(text: str) -> dict[str, str]:
    """`--name value` lines as a mapping."""
    found = {}
    for line in text.split(" \\\n"):
        name, _, value = line.removeprefix("--").partition(" ")
        found[name] = value
    return found


def test_megatron_whole():
    assert launch("megatron", META, LLAMA).text.split(" \\\n") == [
        "--tensor-model-parallel-size 8",
        "--pipeline-model-parallel-size 16",
        "--context-parallel-size 1",
        "--pipeline-model-parallel-layout 'Ettttttt|(tttttttt|)*14tttttttL'",
        "--sequence-parallel",
        "--micro-batch-size 1",
        "--global-batch-size 2048",
        "--seq-length 8192",
        "--use-distributed-optimizer",
        "--overlap-grad-reduce",
        "--overlap-param-gather",
        "--bf16",
    ]


def test_megatron_equal_stages_take_a_number():
    found = flags(launch("megatron", INTERLEAVED, GPT).text)
    assert found["num-virtual-stages-per-pipeline-rank"] == "6"
    assert "pipeline-model-parallel-layout" not in found
    assert found["recompute-granularity"] == "selective"


@pytest.mark.parametrize(("zero", "strategy"), [(0, None), (1, None), (2, "optim_grads"), (3, "optim_grads_params")])
def test_megatron_sharding(zero, strategy):
    found = flags(launch("megatron", Layout(dp=8, zero=zero, recompute="full"), GPT).text)
    assert found.get("data-parallel-sharding-strategy") == strategy
    assert ("use-distributed-optimizer" in found) == (zero > 0)
    assert (found["recompute-granularity"], found["recompute-method"], found["recompute-num-layers"]) == (
        "full", "uniform", "1"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("bf16", {"bf16": ""}), ("fp16", {"fp16": ""}), ("fp8", {"bf16": "", "fp8-format": "hybrid"}),
     ("mxfp8", {"bf16": "", "fp8-format": "e4m3", "fp8-recipe": "mxfp8"}),
     ("nvfp4", {"bf16": "", "fp4-format": "e2m1"})],
)  # fmt: skip
def test_megatron_dtypes(dtype, expected):
    job = Job(model="m", layers=4, seq=8, global_batch=8, dtype=dtype)
    found = flags(launch("megatron", Layout(), job).text)
    kept = {name: value for name, value in found.items() if name in ("bf16", "fp16") or name.startswith(("fp8", "fp4"))}
    assert kept == expected


def unrolled(text: str) -> list[int]:
    """Transformer layers of each stage of Megatron-core's string, by its own rules."""
    text = re.sub(r"\(([^)]+)\)\*(\d+)", lambda m: m[1] * int(m[2]), text)
    assert text.count("E") == text.count("L") == 1
    assert text.startswith("E")
    assert text.endswith("L")
    return [stage.count("t") for stage in text.split("|")]


@pytest.mark.parametrize(
    ("layers", "pp", "vpp"), [(126, 16, 1), (126, 16, 7), (126, 16, 8), (61, 16, 1), (61, 2, 1), (10, 3, 2)]
)
def test_uneven_stages_are_written_out(layers, pp, vpp):
    layout = Layout(pp=pp, vpp=vpp, schedule="interleaved" if vpp > 1 else "1f1b")
    assert unrolled(pipeline_text(layout, layers)) == list(chunk_sizes(layers, pp, vpp))


def test_equal_stages_need_no_string():
    assert pipeline_text(Layout(pp=16), 96) is None


def test_a_mixture():
    layout = Layout(tp=1, pp=16, dp=128, ep=64, zero=1)
    found = flags(launch("megatron", layout, DEEPSEEK).text)
    assert (found["expert-model-parallel-size"], found["expert-tensor-parallel-size"]) == ("64", "1")
    assert found["fp8-format"] == "hybrid"


def test_nemo():
    lines = launch("nemo", META, LLAMA).text.split(" \\\n")
    found = dict(line.split("=", 1) for line in lines)
    assert int(found["trainer.num_nodes"]) * int(found["trainer.devices"]) == META.gpus
    assert found["trainer.strategy.tensor_model_parallel_size"] == "8"
    assert found["model.config.pipeline_model_parallel_layout"] == "'Ettttttt|(tttttttt|)*14tttttttL'"
    assert found["trainer.strategy.ddp.use_distributed_optimizer"] == "True"
    assert found["data.global_batch_size"] == "2048"


def test_torchtitan():
    layout = Layout(tp=8, pp=2, dp=4, zero=3, sp=True, recompute="selective", micro_batch=2)
    job = Job(model="m", layers=5, seq=100, global_batch=64)
    lines = launch("torchtitan", layout, job).text.splitlines()
    config: dict[str, object] = {}
    for line in lines[:-1]:
        name, _, value = line.removeprefix("config.").partition(" = ")
        config[name] = json.loads(value.replace("'", '"').replace("True", "true").replace("False", "false"))
    axes = (
        "data_parallel_replicate",
        "data_parallel_shard",
        "tensor_parallel",
        "context_parallel",
        "pipeline_parallel",
    )
    degrees = [config[f"parallelism.{each}_degree"] for each in axes]
    assert degrees == [1, 4, 8, 1, 2]
    assert config["parallelism.fsdp_reshard_after_forward"] == "always"
    assert config["parallelism.enable_sequence_parallel"] is True
    assert config["parallelism.num_pp_microbatches"] == 8  # 64 sequences / (4 · 2)
    assert config["training.num_tokens_per_microbatch_per_dp_rank"] == 200
    assert config["training.num_tokens_per_train_step"] == 6400
    assert config["parallelism.module_fqns_per_model_part"] == [
        ["tok_embeddings", "layers.0", "layers.1", "layers.2"], ["layers.3", "layers.4", "norm", "lm_head"]
    ]  # fmt: skip
    assert lines[-1] == "config.activation_checkpoint = SelectiveAC.Config()"


def test_deepspeed():
    layout = Layout(tp=2, dp=8, zero=3, recompute="full", micro_batch=2)
    found = launch("deepspeed", layout, GPT)
    config = json.loads(found.text)
    assert config["train_batch_size"] == 1024
    assert config["train_batch_size"] == (
        config["train_micro_batch_size_per_gpu"] * config["gradient_accumulation_steps"] * layout.dp
    )
    assert config["zero_optimization"] == {"stage": 3, "overlap_comm": True}
    assert config["tensor_parallel"] == {"autotp_size": 2}
    assert config["bf16"] == {"enabled": True}
    assert "call deepspeed.checkpointing.checkpoint around every block" in found.notes


# --- states shared by fewer ranks, on the host; some layers recomputed ---------------------------------------------

SHARED = Layout(tp=2, dp=16, zero=1, shards=4, offload=True, recompute="full", recompute_layers=5)


def test_megatron_shares_offloads_and_recomputes_some():
    found = flags(launch("megatron", SHARED, GPT).text)
    assert (found["recompute-granularity"], found["recompute-method"], found["recompute-num-layers"]) == (
        "full", "block", "5"
    )  # fmt: skip
    assert found["num-distributed-optimizer-instances"] == "4"  # 16 replicas in groups of 4
    assert (found["optimizer-cpu-offload"], found["optimizer-offload-fraction"]) == ("", "1.0")
    assert "use-precision-aware-optimizer" in found
    assert "outer-dp-sharding-strategy" not in found
    fsdp = flags(launch("megatron", Layout(dp=16, zero=3, shards=8), GPT).text)
    assert (fsdp["num-distributed-optimizer-instances"], fsdp["outer-dp-sharding-strategy"]) == ("2", "no_shard")


def test_nemo_shares_offloads_and_recomputes_some():
    found = dict(line.split("=", 1) for line in launch("nemo", SHARED, GPT).text.split(" \\\n"))
    assert found["model.config.recompute_method"] == "block"
    assert found["model.config.recompute_num_layers"] == "5"
    assert found["trainer.strategy.ddp.num_distributed_optimizer_instances"] == "4"
    assert found["optim.config.optimizer_cpu_offload"] == "True"


def test_torchtitan_replicates_groups():
    lines = launch("torchtitan", Layout(dp=16, cp=2, zero=3, shards=8, offload=True), GPT).text.splitlines()
    found = dict(line.removeprefix("config.").split(" = ") for line in lines)
    # 32 ranks of dp · cp in groups of 8: four copies, each of 4 replicas with their two parts of a sequence
    assert found["parallelism.data_parallel_replicate_degree"] == "4"
    assert found["parallelism.data_parallel_shard_degree"] == "4"
    assert found["training.enable_cpu_offload"] == "True"


def test_deepspeed_shares_offloads_and_recomputes_some():
    layout = Layout(dp=16, zero=3, shards=8, offload=True, recompute="full", recompute_layers=2)
    found = launch("deepspeed", layout, GPT)
    assert json.loads(found.text)["zero_optimization"] == {
        "stage": 3, "overlap_comm": True, "offload_optimizer": {"device": "cpu", "pin_memory": True},
        "mics_shard_size": 8,
    }  # fmt: skip
    assert "call deepspeed.checkpointing.checkpoint around the first 2 blocks of every stage" in found.notes
    assert any(note.startswith("MiCS: ") for note in found.notes)


REFUSED = [
    ("megatron", Layout(pp=2, schedule="zero-bubble"), GPT, ["the zero-bubble schedule ZB-H1"]),
    ("nemo", Layout(pp=2, schedule="dualpipe"), GPT, ["DualPipe"]),
    ("megatron", Layout(tp=2, ep=2), DEEPSEEK, ["experts with tensor parallelism and no sequence parallelism"]),
    ("torchtitan", Layout(dp=2, zero=1), GPT, ["ZeRO 1"]),
    ("torchtitan", Layout(cp=2), GPT, ["context parallelism without sharding"]),
    ("torchtitan", Layout(dp=4, zero=2, etp=2), DEEPSEEK,
     ["tensor parallelism of experts", "training in fp8 by the layout alone"]),
    ("deepspeed", Layout(pp=2, dp=2, zero=3), GPT, ["a pipeline with ZeRO 3"]),
    ("deepspeed", Layout(tp=2, cp=2, sp=True, recompute="selective"), GPT,
     ["context parallelism", "sequence parallelism over tp", "selective recompute"]),
    ("deepspeed", Layout(pp=2, vpp=2, schedule="interleaved"), GPT, ["interleaved stages"]),
    ("megatron", Layout(pp=2, dp=2, zero=2), GPT, ["a pipeline with ZeRO 2"]),
    ("nemo", Layout(dp=2, zero=3, offload=True), GPT, ["optimizer states on the host under ZeRO 3"]),
    ("megatron", Layout(dp=2, offload=True), GPT, ["optimizer states on the host under ZeRO 0"]),
    ("torchtitan", Layout(dp=2, zero=2, recompute="full", recompute_layers=3), GPT,
     ["recompute of 3 layers of a stage"]),
    ("torchtitan", Layout(dp=2, cp=4, zero=3, shards=2), GPT, ["states shared by 2 ranks"]),
    ("deepspeed", Layout(dp=8, zero=2, shards=4), GPT, ["states shared by 4 ranks under ZeRO 2"]),
    ("deepspeed", Layout(dp=8, shards=4, offload=True), GPT,
     ["states shared by 4 ranks under ZeRO 0", "optimizer states on the host under ZeRO 0"]),
]  # fmt: skip


@pytest.mark.parametrize(("tool", "layout", "job", "expected"), REFUSED, ids=[f"{r[0]} {r[3][0]}" for r in REFUSED])
def test_what_a_tool_cannot_express_is_refused(tool, layout, job, expected):
    with pytest.raises(InputError) as caught:
        launch(tool, layout, job)
    assert [fault.message for fault in caught.value.faults] == [f"{tool} cannot express {what}" for what in expected]
    assert all(fault.got for fault in caught.value.faults)


def test_an_unknown_tool():
    with pytest.raises(UnknownNameError) as caught:
        launch("megatrom", Layout(), GPT)
    assert str(caught.value) == (
        "unknown tool 'megatrom' in --emit; expected one of 4 known; nearest: megatron. "
        "Tools: megatron, torchtitan, deepspeed, nemo."
    )


@pytest.mark.parametrize("tool", TOOLS)
def test_every_tool_takes_plain_data_parallelism(tool):
    found = launch(tool, Layout(dp=8, zero=3), GPT)
    assert (found.tool, bool(found.version), bool(found.text)) == (tool, True, True)


T5 = Job(model="t5-base", layers=24, seq=512, global_batch=64, stacks=("encoder", "tokens"), masked=False)


@pytest.mark.parametrize(("tool", "layout"), [("megatron", Layout()), ("torchtitan", Layout()),
                                              ("deepspeed", Layout(pp=2))])  # fmt: skip
def test_several_stacks_of_blocks_are_refused(tool, layout):
    with pytest.raises(InputError) as caught:
        launch(tool, layout, T5)
    assert str(caught.value) == (
        f"{tool} cannot express blocks over several streams (encoder, tokens) in --emit; got {tool} lays out one stack "
        "of blocks; t5-base has 2; expected no --emit: the layout's degrees by hand in a program for this model."
    )


@pytest.mark.parametrize("tool", ["deepspeed", "nemo"])
def test_what_wraps_any_model_takes_several_stacks(tool):
    assert launch(tool, Layout(dp=8), T5).text


# what the model has → how the line that names another program begins
PROGRAMS = [
    ({}, None),
    ({"scans": ("selective",)}, "not for pretrain_gpt.py, which has no state spaces: pretrain_hybrid.py"),
    ({"scans": ("ssd",)}, "not for pretrain_gpt.py, which has no state spaces: pretrain_hybrid.py"),
    ({"scans": ("decay",)}, "not for pretrain_gpt.py as it is, which lacks running states by the rule decay"),
    ({"masked": False}, "not for pretrain_gpt.py, whose attention is causal: pretrain_bert.py"),
]


@pytest.mark.parametrize(("has", "begins"), PROGRAMS, ids=[str(each[0]) for each in PROGRAMS])
def test_another_program_is_named_where_pretrain_gpt_cannot(has, begins):
    job = Job(model="m", layers=4, seq=128, global_batch=8, **has)
    found = [note for note in launch("megatron", Layout(dp=8), job).notes if "pretrain_gpt" in note]
    assert len(found) == (begins is not None)
    assert all(note.startswith(begins) for note in found)


def test_one_gpu_is_not_several():
    assert launch("megatron", Layout(), GPT).notes == ("data parallelism is what is left of 1 GPU: 1",)
