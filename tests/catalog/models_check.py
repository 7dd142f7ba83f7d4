# ruff: noqa: T201
"""Check the parameter counts of the model presets against transformers.

Run by hand, pytest does not collect it:

    HF_HUB_OFFLINE=1 python tests/catalog/models_check.py [NAME ...]

Each preset of format "hf" is built on the meta device by the class its task
names, and its parameters (tied weights once) are compared with the preset's
"params". An untied T5 is the exception: transformers 5 ties the output
projection of every T5, so the script adds the matrix that the releases store.
The other formats have no class; their params are compared with a closed form
written here, except where params is null. The script also checks the entries' keys and that no name or alias
belongs to two presets. Its exit status is 1 when anything differs.
"""

import json
import os
import re
import sys
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

FOLDER = Path(__file__).resolve().parents[2] / "src" / "suanli" / "catalog" / "models"
KEYS = [
    "name",
    "aliases",
    "title",
    "task",
    "format",
    "config",
    "params",
    "params_published",
    "source",
    "date",
    "max_positions",
    "notes",
]
CLASSES = {
    "causal-lm": "AutoModelForCausalLM",
    "masked-lm": "AutoModelForMaskedLM",
    "seq2seq-lm": "AutoModelForSeq2SeqLM",
    "image-classification": "AutoModelForImageClassification",
    "speech-seq2seq": "AutoModelForSpeechSeq2Seq",
    "contrastive": "AutoModel",
    "encoder": "AutoModel",
    "image-text-to-text": "AutoModelForImageTextToText",
}
REQUIRED = {
    "gpt2": 124439808,
    "llama-2-7b": 6738415616,
    "llama-3.1-8b": 8030261248,
    "llama-3.1-70b": 70553706496,
    "llama-3.1-405b": 405853388800,
    "mistral-7b": 7241732096,
    "mixtral-8x7b": 46702792704,
    "qwen2.5-7b": 7615616512,
    "gemma-2-9b": 9241705984,
    "deepseek-v3": 671026404352,
    "bert-base": 109514298,
    "t5-small": 60506624,
    "resnet-50": 25557032,
    "resnet-152": 60192808,
    "alexnet": 61100840,
}


def plain(name, dots):
    """A name as it is compared: lower case, without '-', '_', ' ' and maybe dots."""
    name = re.sub(r"[-_ ]", "", name.lower())
    return name if dots else name.replace(".", "")


def load():
    """All presets as (family, entry) pairs."""
    pairs = []
    for path in sorted(FOLDER.glob("*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        assert data["family"] == path.stem, path
        pairs += [(data["family"], entry) for entry in data["models"]]
    return pairs


def check_entries(pairs):
    """Say what is wrong with keys and names; return the number of faults."""
    faults = 0
    owner, dotless = {}, {}
    for _, entry in pairs:
        name = entry["name"]
        if list(entry) != KEYS:
            print(f"{name}: keys {list(entry)}")
            faults += 1
        if not re.fullmatch(r"[a-z0-9.-]+", name):
            print(f"{name}: not lower case, digits, dashes and dots")
            faults += 1
        for alias in [name, *entry["aliases"]]:
            other = owner.setdefault(plain(alias, True), name)
            if other != name or (alias != name and plain(alias, True) == plain(name, True)):
                print(f"{name}: the alias {alias} is also a name of {other}")
                faults += 1
            other = dotless.setdefault(plain(alias, False), name)
            if other != name:
                print(f"note: {alias} and {other} differ only in a dot")
    return faults


def count(entry):
    """Parameters of the class that the entry's task names, tied weights once."""
    import torch
    import transformers

    config = dict(entry["config"])
    config = transformers.AutoConfig.for_model(config.pop("model_type"), **config)
    with torch.device("meta"):
        model = getattr(transformers, CLASSES[entry["task"]]).from_config(config)
    total = sum(parameter.numel() for parameter in model.parameters())
    if config.model_type == "t5" and not entry["config"]["tie_word_embeddings"]:
        total += config.vocab_size * config.d_model
    return total


def count_decoder(c):
    """Closed form of format "decoder"."""
    hidden = c["hidden"]
    query, key_value = c["heads"] * c["head_dim"], c["kv_heads"] * c["head_dim"]
    matrices = 3 if c["gated"] else 2

    def ffn(width):
        biases = (matrices - 1) * width + hidden if c["mlp_bias"] else 0
        return matrices * hidden * width + biases

    norm = hidden * (2 if c["norm"] == "layernorm" else 1)
    attention = 2 * hidden * (query + key_value)
    if c["attention_bias"]:
        attention += query + 2 * key_value + hidden
    total = c["num_layers"] * (attention + norm * (1 if c["parallel_block"] else 2))
    if "experts" in c:
        dense = c["first_dense_layers"]
        experts = c["experts"] * (ffn(c["expert_ffn"]) + hidden)
        if c["shared_experts"]:
            experts += c["shared_experts"] * ffn(c["shared_ffn"])
        total += dense * ffn(c["ffn"]) + (c["num_layers"] - dense) * experts
    else:
        total += c["num_layers"] * ffn(c["ffn"])
    total += c["vocab"] * hidden * (1 if c["tied"] else 2)
    total += norm if c["final_norm"] else 0
    return total + (c["max_positions"] * hidden if c["learned_positions"] else 0)


def count_encoder_decoder(c):
    """Closed form of format "encoder-decoder"."""
    hidden, norm = c["hidden"], 2 * c["hidden"]
    attention = 4 * hidden * hidden + (4 * hidden if c["attention_bias"] else 0)
    ffn = 2 * hidden * c["ffn"] + (c["ffn"] + hidden if c["mlp_bias"] else 0)
    total = c["encoder_layers"] * (attention + ffn + 2 * norm)
    total += c["decoder_layers"] * (2 * attention + ffn + 3 * norm)
    return total + c["vocab"] * hidden * (1 if c["tied"] else 3)


def count_expression(c):
    """Count of the elements of format "expression" that hold weights."""
    total = 0
    for element in re.sub(r"@ \S+", "", c["expression"]).split("->"):
        kind, *words = re.findall(r"[\w.]+", element)
        numbers = [int(word) for word in words if word.isdigit()]
        named = dict(re.findall(r"(\w+)=(\w+)", element))
        if kind == "conv2d":
            total += numbers[0] * numbers[1] * int(named["kernel"]) ** 2 + numbers[1]
        elif kind == "linear":
            total += (numbers[0] + 1) * numbers[1]
        elif kind == "lstm":
            width, hidden, ways = numbers[0], numbers[1], 1 + ("bidirectional" in words)
            for _ in range(int(named["layers"])):
                total += ways * 4 * hidden * (width + hidden + 2)
                width = ways * hidden
    return total


def count_estimate(c):
    """Total of format "estimate"."""
    return c["experts"] * c["params_per_expert"] + c["shared_params"]


CLOSED_FORMS = {
    "decoder": count_decoder,
    "encoder-decoder": count_encoder_decoder,
    "expression": count_expression,
    "estimate": count_estimate,
}


def main(names):
    """Check the named presets, or all; return the exit status."""
    pairs = load()
    faults = check_entries(pairs)
    by_name = {entry["name"]: entry for _, entry in pairs}
    for name, params in REQUIRED.items():
        if by_name.get(name, {}).get("params") != params:
            print(f"{name}: params is not {params}")
            faults += 1
    built = closed = 0
    unverified = []
    for _, entry in pairs:
        if names and entry["name"] not in names:
            continue
        if entry["params"] is None:
            params = CLOSED_FORMS[entry["format"]](entry["config"])
            unverified.append(f"{entry['name']} (this config counts {params})")
            continue
        if entry["format"] == "hf":
            params, where = count(entry), "the class"
            built += params == entry["params"]
        else:
            params, where = CLOSED_FORMS[entry["format"]](entry["config"]), "the closed form"
            closed += params == entry["params"]
        if params != entry["params"]:
            print(f"{entry['name']}: params {entry['params']}, {where} has {params}")
            faults += 1
    print(f"{len(pairs)} presets, {faults} faults")
    print(f"equal: {built} built on the meta device, {closed} by a closed form")
    print("params null: " + (", ".join(unverified) or "none"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
