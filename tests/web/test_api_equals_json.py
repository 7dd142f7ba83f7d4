"""/api/VERB gives what `--json` prints: twenty requests of every verb, but for times and names of input files."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import suanli
import suanli.errors
from suanli.web.verbs import verbs

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
GPT2 = {"model_type": "gpt2", "n_layer": 3, "n_embd": 96, "n_head": 4, "vocab_size": 1000, "n_positions": 128}
LLAMA = {"model_type": "llama", "hidden_size": 256, "num_hidden_layers": 2, "num_attention_heads": 8,
         "num_key_value_heads": 2, "intermediate_size": 512, "vocab_size": 2000}  # fmt: skip
POINTS = "64:1.0,128:1.9,256:3.5,512:6.1"
GOODPUT = json.dumps(suanli.goodput(gpus=1000, mtbf="50000h", checkpoint_save="30s", restart="5min").to_dict())
LAYOUT = json.dumps(suanli.layout("gpt2", gpu="h100-sxm", gpus=8, global_batch=64, pin="tp=1,pp=1,zero=1").to_dict())
RUNS = (EXAMPLES / "runs.csv").read_text(encoding="utf-8")
SERVED = "model,gpu"
EVENTS = "start,end,kind\n"

Files = dict[str, list[tuple[str, bytes | str]]]  # option → names and contents
Asked = dict[str, Any] | tuple[dict[str, Any], Files]


def each(base: dict[str, Any], *more: dict[str, Any]) -> list[dict[str, Any]]:
    return [base | one for one in more]


def trace(**given: Any) -> Asked:
    return given, {"traces": [("step.json", (EXAMPLES / "step.json").read_bytes())]}


def fleet(number: int, **given: Any) -> Asked:
    files = sorted((EXAMPLES / "fleet").iterdir())[:number]
    return given, {"traces": [(file.name, file.read_bytes()) for file in files]}


TRAIN = {"model": "gpt3-175b", "tokens": "300B", "gpu": "a100-80gb-sxm", "gpus": "1024", "mfu": "0.44"}
MFU = {"model": "llama-3-8b", "gpu": "h100-sxm", "seq": "8192", "tokens_per_second": "8000"}
PLAN = {"model": "gpt2", "gpu": "h100-sxm", "gpus": "8", "global_batch": "64", "pin": "tp=1,pp=1,zero=1"}
SERVE = {"model": "llama-3.1-8b", "gpu": "h100-sxm"}
FAIL = {"gpus": 16384, "mtbf": "50000h", "checkpoint_save": "30s", "restart": "5min"}
SCALE = {"points": POINTS, "metric": "tokens_per_s"}

REQUESTS: dict[str, list[Asked]] = {
    "count": [
        *({"model": name} for name in ("gpt2", "llama-3.1-8b", "deepseek-v3", "resnet50", "LLAMA-3.1-405B", "nobody")),
        *each({"model": "gpt2"}, {"seq": "512"}, {"seq": 512, "batch": 4}, {"phase": "train", "recompute": "full"},
              {"phase": "decode", "kv_len": "1Ki"}, {"by": "kind"}, {"by": "layers"}, {"convention": "megatron"},
              {"trainable": "lora:r=8"}, {"symbolic": True}, {"sweep": "seq=128:1024:128"}, {"seq": "-3"}),
        {"model": "linear(4096, 11008)"}, {"model": "conv2d(3, 64, kernel=7, stride=2, padding=3) @ 224x224"},
        {"model": GPT2}, {"model": LLAMA, "phase": "train"}, {"model": {"model_type": "nobody"}},
        ({}, {"model": [("config.json", json.dumps(GPT2))]}), ({"seq": 64}, {"model": [("m.json", json.dumps(LLAMA))]}),
        {"model": "gpt2", "like": "megatron", "phase": "train"},
    ],
    "compare": [
        *({"model": name, "tools": tools} for name in ("gpt2", "llama-3.1-8b", "mixtral-8x7b", GPT2)
          for tools in ("megatron", "palm", "megatron,palm", ["palm"])),
        *each({"model": "gpt2", "tools": "palm"}, {"seq": "128"}, {"batch": 2}, {"device": "moon"}),
        {"model": "gpt2", "tools": "nothing"}, {"model": "nobody"},
    ],
    "mfu": [
        MFU, *({**MFU, "convention": name} for name in ("full", "palm", "6n", "megatron", "hardware", "mine")),
        *each(MFU, {"gpus": 8}, {"recompute": "full"}, {"dtype": "fp8"}, {"peak": "989TFLOPS"}, {"memory_used": "60GB"},
              {"tokens_per_second": "800000"}, {"tokens_per_second": -1}, {"gpu": "h200"}, {"gpu": "h1000"},
              {"seq": 4096}),
        {"model": "gpt2", "gpu": "a100-80gb-sxm", "step_time": "120ms", "global_batch": 8},
        {"model": "gpt2", "gpu": "a100-80gb-sxm", "tflops_per_gpu": 100}, {"model": GPT2, "gpu": "h100-sxm",
        "tflops_per_gpu": 10}, {"model": "gpt2"},
    ],
    "layout": [
        PLAN, *each(PLAN, {"gpus": 16}, {"gpus": [8, 16]}, {"gpus": "8,16"}, {"seq": 512}, {"top": 3}, {"top": 0},
                    {"pin": {"tp": 1, "pp": 1}}, {"pin": "tp=3"}, {"pin": "no=1"}, {"dtype": "fp8"}, {"dtype": "int3"},
                    {"stack": "nemo"}, {"stack": "none"}, {"memory_limit": "40GB"}, {"why": ["1", "2"]},
                    {"emit": "megatron"}, {"fabric": "8x450GB/s+400GB/s"}, {"gpu": "a100-80gb-sxm"}, {"model": LLAMA}),
        {"model": "gpt2"},
    ],
    "calibrate": [
        *(({"stack": stack, **more}, {"file": [("runs.csv", RUNS)]}) for stack in ("nemo", "megatron-core", "x")
          for more in ({}, {"name": "mine"}, {"gpu": "h100-sxm"}, {"name": ""}, {"fabric": "hgx-h100"})),
        {}, {"stack": "nemo"}, ({}, {"file": [("runs.csv", "a,b\n1,2\n")]}), ({}, {"file": [("runs.csv", "")]}),
        ({"gpu": "h1000"}, {"file": [("mine.csv", RUNS)]}),
    ],
    "summarise": [
        *(trace(gpu=gpu) for gpu in ("h100-sxm", "a100-80gb-sxm", "h200", "h1000", None)),
        *(fleet(number, gpu=gpu) for number, gpu in ((1, None), (2, None), (2, "nothing"))),
        *(({}, {"traces": [(name, text)]}) for name in ("a.json", "b.json.gz") for text in ("", "{", "[]", "{}", "PK",
              "7")),
    ],
    "train": [
        TRAIN, *each(TRAIN, {"convention": "full"}, {"seq": 1024}, {"recompute": "full"}, {"goodput": 0.9},
                     {"goodput": "90%"}, {"price": 2}, {"power": "700W"}, {"pue": 1.2}, {"carbon": "0.4kg/kWh"},
                     {"mfu": "38%..44%"}, {"tokens": "1e300"}, {"tokens": "many"}, {"failures": "llama-3-405b"},
                     {"gpus": None, "deadline": "30d"}, {"gpus": None}, {"mfu": None, "hfu": "0.5"},
                     {"mfu": None, "tflops_per_gpu": 140}, {"model": None, "params": "175B"}),
        (TRAIN, {"goodput": [("goodput.json", GOODPUT)]}), (TRAIN, {"goodput": [("goodput.json", "{}")]}),
    ],
    "scale": [
        SCALE, *each(SCALE, {"project": 1024}, {"project": "1024,2048"}, {"project": [1024]}, {"global_batch": 512},
                     {"metric": "step_time_s"}, {"metric": "wrong"}, {"points": {"64": 1.0, "128": 1.8}},
                     {"points": "64:1"}, {"points": "no"}, {"points": [[64, 1.0], [128, 1.9]]}, {"series": "x"}),
        {"metric": "tokens_per_s"}, {},
        *(({"metric": metric, **more}, {"file": [("sizes.csv", "gpus,tokens_per_s\n8,100\n16,190\n32,350\n")]})
          for metric in (None, "tokens_per_s") for more in ({}, {"project": 64}, {"global_batch": 64})),
        ({}, {"file": [("sizes.csv", "nothing")]}),
    ],
    "goodput": [
        FAIL, *each(FAIL, {"days": 54}, {"spares": 16}, {"seed": 1}, {"mfu": 0.4}, {"interval": "10min"},
              {"detect": "1min"},
                    {"stragglers": "1%"}, {"maintenance": "2%"}, {"repair": "1d"}, {"checkpoint_mode": "async"},
                    {"checkpoint_load": "2min"}, {"mtbf": "-1h"}, {"gpus": 0}, {"restart": None}),
        {"gpus": 1000, "failures": "llama-3-405b", "checkpoint_save": "30s", "restart": "5min"},
        {"mtti": "3h", "checkpoint_save": "30s", "restart": "5min"}, {"failures": "nothing"}, {},
        ({}, {"events": [("log.csv", EVENTS)]}), ({"gpus": 8}, {"events": [("log.csv", "what,ever\n1,2\n")]}),
    ],
    "infer": [
        SERVE, *each(SERVE, {"concurrency": 64}, {"isl": "2Ki", "osl": 128}, {"dtype": "fp8"}, {"kv_dtype": "fp8"},
                     {"tp": 2}, {"tp": 1, "gpus": 2}, {"rate": 5}, {"ttft": "500ms", "tpot": "30ms"}, {"batch": 8},
                     {"preset": "sglang"}, {"preset": "ideal"}, {"preset": "none"}, {"draft_tokens": 3,
              "acceptance": 0.7},
                     {"chunk": 512}, {"price": 2.5}, {"sell": 1, "utilisation": "60%"}, {"stages": "pre=5ms:4"},
                     {"gpu": "h100-sxm,h200"}, {"gpu": "none"}, {"draft_model": "gpt2"}),
        (SERVE, {"calibrate": [("points.csv", SERVED)]}),
    ],
    "explain": [
        *(trace(**more) for more in (
            {}, {"gpu": "h100-sxm"}, {"gpu": "h1000"}, {"steps": "1..2"}, {"steps": 1}, {"steps": "9"}, {"device": 0},
            {"device": "7"}, {"model": "gpt2", "seq": 128}, {"model": LLAMA}, {"model": "nobody"}, {"seq": 128},
            {"model": "gpt2", "dtype": "fp8", "gpu": "h100-sxm"}, {"model": "gpt2", "convention": "full"},
            {"model": "gpt2", "batch": 2, "gpus": 8})),
        fleet(2), fleet(2, steps="1"),
        ({}, {"traces": [("step.json", "{}")]}),
        ({"gpu": "h100-sxm"}, {**trace()[1], "against": [("plan.json", LAYOUT)]}),
        ({"gpu": "h100-sxm"}, {**trace()[1], "compare": trace()[1]["traces"]}),
    ],
    "gpus": [
        {}, *({"name": name} for name in ("h100-sxm", "a100-80gb-sxm", "h200", "mi300x", "b200", "tpu-v5p", "h1000")),
        *({"filter": text} for text in ("nvidia hopper", "amd", "tdp_w>500", "nothing>x", "zzz", "2024")),
        *({"sort": key} for key in ("memory_bytes", "id", "nothing")), {"filter": "hopper", "sort": "id"},
        {"name": "h100-sxm", "sort": "id"}, {"sort": "5"},
    ],
    "models": [
        *({"name": name} for name in ("gpt2", "llama-3.1-405b", "deepseek-v3", "gpt3-175b", "bert-base", "nobody")),
        *({"filter": text} for text in ("gpt2", "llama-3.1", "qwen2.5", "bert", "params>300B", "params>x", "zzz")),
        *({"filter": "gpt", "sort": key} for key in ("params", "name", "date", "nothing")), {"name": "gpt2",
              "sort": "name"},
        {"filter": "mixtral", "sort": "params_active"}, {"filter": "3"},
    ],
    "why": [
        {}, *({"id": name, "model": "gpt2"} for name in ("params.total", "flops.model", "flops.forward",
              "bytes.weights",
              "nothing", "params.active", "flops_per_token", "macs")),
        *({"id": name} for name in ("params.total", "mfu", "gpu_hours", "attention_flops")),
        {"id": "mfu", **MFU}, {"id": "hfu", **MFU}, {"id": "gpu_hours", **TRAIN}, {"id": "days", **TRAIN},
        {"id": "cost_usd", **TRAIN}, {"id": "params.total", "model": LLAMA}, {"id": "flops.model", "model": "gpt2",
              "seq": 64},
        {"id": "mfu", "model": "gpt2", "tokens": 5},
    ],
    "verify": [
        {"only": "articles"}, {"only": ["articles"]}, {"only": "articles", "every": True}, {"only": "nothing"},
        {"only": ["articles", "nothing"]}, {"only": "articles,nothing"}, {"only": ""}, {"only": []},
        {"only": "articles", "types": "llama"}, {"only": "scaling", "types": ["x"]}, {"types": "z", "only": "articles"},
        {"only": "Articles"}, {"only": " articles"}, {"only": "ARTICLES", "every": False}, {"only": "runs,none"},
        {"only": ["none"]}, {"only": "none", "every": True}, {"only": "article"}, {"only": "run"}, {"only": "scaling"},
    ],
    "learn": [
        {}, *({"topic": topic} for topic in ("backprop", "transformer", "flops", "roofline", "mfu", "precision",
              "cost", "moe",
              "goodput", "nothing")),
        *({"topic": topic, "lang": "zh"} for topic in ("backprop", "scaling", "parallel", None)),
        *each({"topic": "backprop"}, {"rate": 1}, {"steps": 10}, {"inputs": [0.1, 0.2]}, {"weights": "1,2,3,4,5,6,7,8"},
              {"rate": "fast"}, {"lang": "xx"}),
    ],
}  # fmt: skip


def report(verb: str, **given: Any) -> str:
    return json.dumps(getattr(suanli, verb)(**given).to_dict())


SHORT = [report("count", model="gpt2", seq=seq) for seq in range(64, 64 * 11, 64)]
OTHERS = [
    report("mfu", **MFU), report("gpus", name="h100-sxm"), report("models", name="gpt2"), report("goodput", **FAIL),
    report("why", id="params.total", model="gpt2"), report("learn", topic="flops"), report("scale", **SCALE),
]  # fmt: skip
MOVED = SHORT[0].replace('"macs": ', '"macs": 1')
CODE = SHORT[0].replace('"gpt2"', '"torch:os.path:join"', 1)
REQUESTS["rerun"] = [({}, {"file": [("r.json", text)]}) for text in (*SHORT, *OTHERS, MOVED, CODE, "{}", "no report")]
REQUESTS["diff"] = [
    ({}, {"first": [("a.json", one)], "second": [("b.json", other)]})
    for one, other in ((SHORT[0], SHORT[0]), *pairwise(SHORT), *zip(SHORT[2:], SHORT, strict=False),
                       (SHORT[0], MOVED), (SHORT[0], OTHERS[0]), ("{}", SHORT[0]))
]  # fmt: skip


def test_a_report_that_names_a_file_of_the_server_is_refused(client: TestClient) -> None:
    """What a report names is no upload: not even whether it exists can be told."""
    for trace in (EXAMPLES / "step.json", "/nowhere/step.json"):
        text = report("explain", trace=EXAMPLES / "step.json").replace(str(EXAMPLES / "step.json"), str(trace))
        answer = client.post("/api/rerun", files=[("file", ("r.json", text))])
        assert (answer.status_code, answer.json()["error"]["code"]) == (422, "path_refused")


def test_every_verb_has_twenty_requests() -> None:
    assert set(REQUESTS) == set(verbs())
    assert {verb: len(asked) for verb, asked in REQUESTS.items() if len(asked) < 20} == {}


@pytest.mark.parametrize("verb", REQUESTS)
def test_same_as_json(client: TestClient, tmp_path: Path, verb: str) -> None:
    for place, asked in enumerate(REQUESTS[verb]):
        given, files = asked if isinstance(asked, tuple) else (asked, {})
        own = in_python(verb, given, files, tmp_path / str(place))
        answer = over_http(client, verb, given, files)
        assert answer.headers["content-type"] == "application/json"
        assert plain(verb, answer.json(), files) == plain(verb, own, files), (verb, given)
        assert answer.status_code == (200 if "kind" in own else 422), (verb, given)


def in_python(verb: str, given: dict[str, Any], files: Files, folder: Path) -> dict[str, Any]:
    """What Python gives for the same request."""
    options = {name: value for name, value in given.items() if value is not None}
    for name, several in files.items():
        (folder / name / "uploaded").mkdir(parents=True)
        paths = [folder / name / "uploaded" / file for file, _ in several]
        for path, (_, text) in zip(paths, several, strict=True):
            path.write_bytes(text if isinstance(text, bytes) else text.encode())
        options[name] = [str(path) for path in paths] if name == "traces" else MODEL_PATH.get(name, str)(paths[0])
    try:
        found = called(verb, options, folder)
    except suanli.errors.SuanliError as problem:
        return problem.to_dict()
    return json.loads(found.to_json())


MODEL_PATH = {"model": Path, "goodput": Path, "stack": Path}  # texts where they are no files


def called(verb: str, options: dict[str, Any], folder: Path) -> Any:
    if verb == "explain":
        traces = options.pop("traces")
        return suanli.explain(*traces, **options, **({"workers": 1} if len(traces) > 1 else {}))
    if verb == "summarise":
        name = "summary.parquet" if len(options["traces"]) == 1 else "summaries"
        return suanli.summarise(options.pop("traces"), folder / name, workers=1, **options)
    return getattr(suanli, verb)(**options)


def over_http(client: TestClient, verb: str, given: dict[str, Any], files: Files) -> Any:
    if not files:
        return client.post(f"/api/{verb}", json=given)
    sent = [(name, file) for name, several in files.items() for file in several]
    kept = {name: value for name, value in given.items() if not isinstance(value, str | int | float | None)}
    if kept or not all(
        isinstance(value, str | None) for value in given.values()
    ):  # forms carry texts: keep files first
        names = client.post("/api/uploads", files=sent).json()["names"]
        named = {name: found if name == "traces" else found[0] for name, found in names.items()}
        return client.post(f"/api/{verb}", json=given | named)
    return client.post(f"/api/{verb}", data={k: v for k, v in given.items() if v is not None}, files=sent)


# times, and the size of a file that holds the name of another
TIMES = {"search_s", "refine_s", "seconds", "date", "summary_bytes"}


def plain(verb: str, said: Any, files: Files) -> Any:
    """Without times, and files by their names alone."""
    if isinstance(said, dict):
        return {key: plain(verb, value, files) for key, value in said.items() if key not in TIMES}
    if isinstance(said, list):
        return [plain(verb, value, files) for value in said]
    if isinstance(said, str):
        return re.sub(r"(/[\w.-]+)+/", "", said) if files and "/tmp" in said else said
    return said
