"""Bytes kept for backward: the memory model of the formulas beside what autograd keeps in a run of the class."""

from __future__ import annotations

from suanli.errors import SuanliError
from suanli.footprint import activations
from suanli.nouns.coverage import SMALL, MemoryCheck
from suanli.nouns.workload import Workload
from suanli.readers.hf import read_hf_config
from suanli.readers.hf_types.configs import given_configs
from suanli.readers.hf_types.mappings import TypeOfTask
from suanli.readers.hf_types.runs import build, kept_bytes, sizes

SEQ = 24
# Dense types whose layers are built of the same parts as most others': one of each style.
TYPES = frozenset({"bert", "gpt2", "gpt_neox", "llama", "mistral", "olmo2", "opt", "phi", "qwen2", "t5", "vit"})


def check_memory(task: TypeOfTask) -> MemoryCheck | None:
    """The small config trained on 24 tokens; None for types that are not compared, or do not run."""
    if task.model_type not in TYPES:
        return None
    try:
        built = build(task, next(given_configs(SMALL, task.model_type, task.mapping)).keys)
        keys = sizes(built, SEQ, second=False)
        arch = read_hf_config(built.values | keys, task.model_type)
        found = kept_bytes(built, SEQ, keys)
    except SuanliError:
        return None
    workload = Workload(seq=SEQ, phase="train")
    return MemoryCheck(seq=SEQ, by_formula=activations(arch, workload)["none"], by_trace=sum(found.values()))
