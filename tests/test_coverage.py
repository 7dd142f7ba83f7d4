"""Formula against trace, type by type: a sample by default, every type and both configs by `make test-full`.

Also that it can fail: a formula that is off is told, with the term.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("transformers")
import suanli
from suanli import coverage, coverage_pool, coverage_worker
from suanli.coverage import DECLARED as DECLARED_DIFFERENCES
from suanli.coverage_memory import TYPES as MEMORY_TYPES
from suanli.coverage_memory import check_memory
from suanli.errors import InputError, UnknownNameError
from suanli.nouns.coverage import DECLARED, DEFAULT, EXACT, NOT_RUN, SMALL, WRONG, ConfigCheck
from suanli.nouns.result import plain
from suanli.readers.hf import CAUSAL, READERS
from suanli.readers.hf_types.mappings import TypeOfTask, types_of_tasks

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore")]

TASKS = types_of_tasks()
READ = [task for task in TASKS if task.model_type in READERS or task.model_type in CAUSAL]
STEP = 24  # every so many types by default


def sampled(tasks: list[TypeOfTask], step: int) -> list[Any]:
    return [
        pytest.param(each, marks=() if i % step == 0 else pytest.mark.full, id=f"{each.model_type}-{each.mapping}")
        for i, each in enumerate(tasks)
    ]


def task(model_type: str, mapping: str = "causal-lm") -> TypeOfTask:
    return next(each for each in TASKS if (each.model_type, each.mapping) == (model_type, mapping))


@pytest.mark.parametrize("each", sampled(READ, STEP))
def test_small_config(each: TypeOfTask) -> None:
    assert_not_wrong(coverage.check_config(each, SMALL))


@pytest.mark.full
@pytest.mark.parametrize("each", sampled(READ, 1))
def test_default_config(each: TypeOfTask) -> None:
    assert_not_wrong(coverage.check_config(each, DEFAULT))


def assert_not_wrong(check: ConfigCheck) -> None:
    assert check.terms == ()
    assert not check.wrong
    assert check.compared or check.not_run or check.not_read


def test_there_are_as_many_types_as_transformers_says() -> None:
    """402 types in 461 pairs of type and task in 5.24, 196 of them causal language models."""
    assert len({each.model_type for each in TASKS}) == 402
    assert (len(TASKS), sum(each.mapping == "causal-lm" for each in TASKS)) == (461, 196)


# --- that it can fail ---------------------------------------------------------------------------------------------


def test_a_formula_that_is_off_is_told_with_its_term(monkeypatch: pytest.MonkeyPatch) -> None:
    """Read with an MLP a column too narrow, a Llama has less than it runs: in three matrices of 72 in four layers."""
    real = coverage.read_hf_config

    def off(values: Any, name: str) -> Any:
        return real({**values, "intermediate_size": values["intermediate_size"] - 1}, name)

    monkeypatch.setattr(coverage, "read_hf_config", off)
    found = coverage.check_type(task("llama"), (SMALL,))
    assert found.status == WRONG
    assert found.checks[0].params_error == 4 * 3 * 72  # a column of three matrices in four layers
    assert found.checks[0].lengths[0].error == 4 * 2 * 24 * 72 * 3
    assert "model.layers.*.mlp.gate_proj forward" in "".join(found.terms)


def test_a_type_without_a_formula_is_counted_by_trace() -> None:
    found = coverage.check_type(task("cpmant"), (SMALL,))
    (check,) = found.checks
    assert found.status == "by trace only"
    assert found.why == "unknown model_type 'cpmant'"
    assert check.lengths[0].flops_trace and check.lengths[0].flops_formula is None


def test_what_transformers_cannot_build_is_said() -> None:
    found = coverage.check_type(task("musicgen"), (DEFAULT,))
    assert found.status == NOT_RUN
    assert found.why.startswith("transformers cannot build the model: ")


# --- declared differences and scans -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["llama4_text", "fnet"])
def test_declared_differences_are_exact_in_amount(name: str) -> None:
    each = next(one for one in TASKS if one.model_type == name)
    found = coverage.check_type(each, (SMALL,))
    assert (found.status, found.why) == (DECLARED, coverage.said_of(each))
    assert all(length.declared and length.error == 0 for length in found.checks[0].lengths)


def test_every_declared_difference_is_of_a_known_type() -> None:
    assert {name for types, _ in DECLARED_DIFFERENCES for name in types} <= {each.model_type for each in TASKS}


def test_scans_are_compared_apart() -> None:
    """Qwen3-Next on 57 tokens: 57 steps of 3 layers, 32 heads, keys of 10 and values of 14; one padded chunk of 64."""
    found = coverage.check_type(task("qwen3_next"), (SMALL,))
    scans = found.checks[0].lengths[1].scans
    assert found.status == EXACT
    assert scans is not None
    assert scans.recurrence == 6 * 57 * 3 * 32 * 10 * 14  # three products of k × v a step
    assert scans.solved == 3 * 32 * 64 * 64 * (10 + 14)
    assert scans.kernel != scans.fallback != scans.recurrence


# --- memory -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "mapping"), [("llama", "causal-lm"), ("vit", "image-classification")])
def test_memory_by_trace_beside_the_memory_model(name: str, mapping: str) -> None:
    """Transformers runs norms and activations in small steps and keeps more than fused kernels would, never less."""
    found = check_memory(task(name, mapping))
    assert found is not None
    assert 1 <= found.ratio < 2


def test_memory_is_not_compared_where_layers_are_of_another_kind() -> None:
    assert check_memory(task("mamba")) is None
    assert {each.model_type for each in TASKS} >= MEMORY_TYPES


# --- processes ----------------------------------------------------------------------------------------------------


def test_a_type_that_takes_too_long_is_ended_and_the_next_goes_on() -> None:
    """A tenth of a second is not enough to import torch: all are ended, none hangs, each says why."""
    told: list[tuple[int, int]] = []
    found = coverage_pool.check_types(
        [task("gpt2"), task("llama")], (SMALL,), processes=1, seconds=0.1,
        progress=lambda done, total, _: told.append((done, total)),
    )  # fmt: skip
    assert [each.why for each in found] == ["took more than 0.1 s"] * 2
    assert [each.status for each in found] == [NOT_RUN] * 2
    assert told == [(1, 2), (2, 2)]


def test_a_process_that_dies_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_pool.sys, "executable", "/bin/false")
    (found,) = coverage_pool.check_types([task("gpt2")], (SMALL,), processes=1)
    assert found.why == "the process that checked it ended"


def test_the_worker_answers_a_line_each(tmp_path: Any) -> None:
    asked = plain(task("gpt2")) | {"configs": [SMALL]}
    bad = asked | {"configs": ["another"]}
    questions, answers = tmp_path / "questions", tmp_path / "answers"
    questions.write_text("".join(json.dumps(each) + "\n" for each in (asked, bad)))
    with questions.open() as read, answers.open("w") as write:
        coverage_worker.serve(read, write)
    good, wrong = (json.loads(line) for line in answers.read_text().splitlines())
    assert (good["status"], good["checks"][0]["params_torch"]) == (EXACT, good["checks"][0]["params_formula"])
    assert (wrong["status"], wrong["why"]) == (NOT_RUN, "KeyError: 'another'")


# --- the verb -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def verified() -> Any:
    return suanli.verify("models", types="gpt2")


def test_the_verb_gives_coverage(verified: Any) -> None:
    found = verified.to_dict()["result"]
    (row,) = found["coverage"]
    assert (row["model_type"], row["mapping"], row["status"]) == ("gpt2", "causal-lm", EXACT)
    assert {"params_formula", "params_torch", "lengths"} <= set(row["checks"][0])
    assert {"flops_formula", "flops_trace", "scans"} <= set(row["checks"][0]["lengths"][0])
    assert verified.ok
    (note,) = verified.notes
    assert note == "a small odd config of each type; --all tries the default configs too (a quarter of an hour)"


def test_without_models_nothing_is_run() -> None:
    assert suanli.verify("articles").coverage == ()
    assert suanli.verify([]).coverage == ()


def test_unknown_types_and_types_without_models_are_refused() -> None:
    with pytest.raises(UnknownNameError) as caught:
        suanli.verify("models", types="lama")
    said = "unknown model type 'lama' in --types; expected one of 402 known; nearest: llama, mllama, llama4. "
    assert str(caught.value) == said + "Types are those of transformers' mappings by task."
    with pytest.raises(InputError) as refused:
        suanli.verify("articles", types="llama")
    assert str(refused.value) == (
        "types are checked with the models in --types; got llama. Add --only models."
    )  # fmt: skip


def test_without_torch_it_is_skipped_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(coverage_pool.importlib.util, "find_spec", lambda name: None)
    found = suanli.verify("models")
    assert found.coverage == ()
    assert found.ok
    assert found.notes == (
        "formula against trace was skipped: torch and transformers not installed (pip install 'suanli[torch]')",
    )
