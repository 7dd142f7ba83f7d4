"""Rows of serving benchmarks, and what a faulty table is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from suanli.errors import InputError
from suanli.readers.serving_points import read_serving_points

HEAD = "model,hw,n_gpus,tp,ep,dp_attn,precision,framework,isl,osl,concurrency,ttft_ms,tpot_ms,out_tok_s,source,notes\n"
GOOD = "m,h100_sxm,1,1,1,1,fp8,vllm,1,1,1,1,1,,s,"


def points(tmp_path: Path, *rows: str):
    path = tmp_path / "points.csv"
    path.write_text(HEAD + "\n".join(rows) + "\n", encoding="utf-8")
    return read_serving_points(path)


def test_a_row_in_base_units(tmp_path: Path) -> None:
    (point,) = points(
        tmp_path, "meta-llama/Llama-3.1-8B-Instruct,h100_sxm,2,2,1.0,1,bf16?,trtllm 1.0,1024,512,16,120,5.5,,here,"
    )
    assert (point.preset, point.gpu, point.dtype, point.engine) == ("llama-3.1-8b", "h100-sxm", "bf16", "tensorrt-llm")
    assert (point.ttft_s, point.tpot_s, point.concurrency) == (0.12, 0.0055, 16.0)
    assert (point.layout.tp, point.kind, point.row, point.fold) == (2, "served", 2, "llama-3.1-8b on h100-sxm")


def test_words_where_numbers_stand_elsewhere(tmp_path: Path) -> None:
    chat, offline, unknown = points(
        tmp_path,
        "deepseek-ai/DeepSeek-V3.1,B200,8,1,8,1,fp8,vLLM (x),chats,840.4,16.0,,20.3,728.9,here,median ITL",
        "Llama-3.1-8B,H100,1,1,,,fp8,TensorRT-LLM 1.0,128,128,max,,,28312,here,offline max throughput",
        "nobody/Unheard-3B,Unheard 9,1,1,,,fp8,sglang,1,1,1,1,1,,here,",
    )
    assert (chat.isl, chat.kind, chat.preset, chat.layout.dp_attention) == (None, "chat", "deepseek-v3", 8)
    assert (offline.concurrency, offline.kind, offline.tokens_per_s, offline.gpu) == (
        None,
        "offline",
        28312.0,
        "h100-sxm",
    )
    assert (unknown.preset, unknown.gpu) == (None, None)


def test_mixtures_published_in_mxfp4_stay_in_it(tmp_path: Path) -> None:
    (point,) = points(tmp_path, "openai/gpt-oss-120b,b200_sxm,1,1,1.0,1.0,fp4,vllm 0.15,1024,1024,4,46,3.5,,here,")
    assert point.dtype == "mxfp4"


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"n_gpus": "two"}, "n_gpus is no number: 'two'"),
        ({"tpot_ms": "-3"}, "tpot_ms is not above 0: '-3'"),
        ({"osl": ""}, "no osl"),
        ({"osl": "inf"}, "osl is not above 0: 'inf'"),
        ({"precision": "fp3"}, "unknown precision 'fp3'"),
        ({"framework": "magic"}, "unknown engine 'magic'; known: sglang, tensorrt-llm, vllm"),
    ],
)
def test_faulty_cells(tmp_path: Path, cells: dict[str, str], message: str) -> None:
    row = dict(zip(HEAD.strip().split(","), GOOD.split(","), strict=True)) | cells
    with pytest.raises(InputError) as caught:
        points(tmp_path, ",".join(row.values()))
    assert message in str(caught.value)
    assert "line 2" in str(caught.value)


def test_all_faulty_lines_and_missing_columns_are_named(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        points(tmp_path, "m,h100_sxm,x,1,1,1,fp8,vllm,1,1,1,1,1,,s,", "m,h100_sxm,1,y,1,1,fp8,vllm,1,1,1,1,1,,s,")
    assert [fault.where.split(", ")[-1] for fault in caught.value.faults if fault.where] == ["line 2", "line 3"]
    path = tmp_path / "other.csv"
    path.write_text("a,b\n1,2\n", encoding="utf-8")
    with pytest.raises(InputError, match="no column model, hw, n_gpus, tp, precision, framework, osl, source"):
        read_serving_points(path)
