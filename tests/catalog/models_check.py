"""Check the parameter counts of the model presets against transformers.

Run by hand, pytest does not collect it:

    HF_HUB_OFFLINE=1 python tests/catalog/models_check.py [NAME ...]

Each preset of format "hf" is built on the meta device by the class its task
names, and its parameters (tied weights once) are compared with the preset's
"params". The script also checks the entries' keys and that no name or alias
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
    for family, entry in pairs:
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
    return sum(parameter.numel() for parameter in model.parameters())


def main(names):
    """Check the named presets, or all; return the exit status."""
    pairs = load()
    faults = check_entries(pairs)
    by_name = {entry["name"]: entry for _, entry in pairs}
    for name, params in REQUIRED.items():
        if by_name.get(name, {}).get("params") != params:
            print(f"{name}: params is not {params}")
            faults += 1
    equal, unverified = 0, []
    for _, entry in pairs:
        if names and entry["name"] not in names:
            continue
        if entry["format"] != "hf":
            unverified.append(f"{entry['name']} ({entry['format']}, {entry['params']})")
            continue
        params = count(entry)
        if params == entry["params"]:
            equal += 1
        else:
            print(f"{entry['name']}: params {entry['params']}, the class has {params}")
            faults += 1
    print(f"{len(pairs)} presets, {equal} built on meta and equal, {faults} faults")
    print("not built here: " + (", ".join(unverified) or "none"))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
