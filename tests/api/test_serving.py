"""`suanli.infer`: figures by hand, searches, and every fault of a request word by word."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import suanli
from suanli.errors import InputError, SuanliError
from suanli.nouns.result import Result
from suanli.plan.serving import DoesNotFitError

EIGHT: dict[str, Any] = {"gpu": "h100-sxm", "gpus": 8, "dtype": "fp8"}


def seventy(**options: Any) -> Result:
    return suanli.infer("llama-3.1-70b", **{**EIGHT, **options})


def faults(**options: Any) -> list[str]:
    model = options.pop("model", "llama-3.1-70b")
    with pytest.raises(SuanliError) as caught:
        suanli.infer(model, **{**EIGHT, **options})
    return [fault.sentence() for fault in caught.value.faults]


# --- one answer ---------------------------------------------------------------------------------------------------


def test_the_keys_of_the_contract_are_there() -> None:
    found = seventy(concurrency=64).to_dict()["result"]
    for key in (
        "ttft_s", "tpot_s", "tokens_per_second", "kv_bytes_per_token", "weights_bytes", "max_concurrency",
        "usd_per_million_tokens", "joules_per_token", "fits",
    ):  # fmt: skip
        assert found[key] is not None
    assert set(found["kv_bytes_per_sequence"]) == {"ideal", "paged"}
    assert found["kv_bytes_per_token"] == 327_680  # 2 · 80 · 8 · 128 · 2


def test_what_was_not_given_is_said() -> None:
    found = suanli.infer("llama-3.1-8b", gpu="h100-sxm")
    assert found.inputs["assumed"] == {
        "isl": 1024, "osl": 1024, "concurrency": 1, "dtype": "bf16", "kv_dtype": "bf16", "preset": "vllm", "tp": 1,
    }  # fmt: skip
    assert found.notes[0].startswith("assumed: isl 1,024, osl 1,024, concurrency 1, dtype bf16")


def test_parts_add_up_to_the_whole() -> None:
    found = seventy(concurrency=64)
    step = sum(each.seconds for each in found.decode)
    prefill = sum(each.seconds for each in found.prefill)
    assert step == pytest.approx(found.load.decode_s)
    assert found.tpot_s == pytest.approx(step + 64 / 1024 * prefill)  # prompts of the others between the tokens
    assert found.ttft_s == pytest.approx(found.load.queue_s + found.load.schedule_s + found.load.prefill_s)
    assert found.weights_bytes == pytest.approx(sum(found.weights.parts.values()))
    memory = found.memory
    assert memory.weights + memory.activations + memory.cache == pytest.approx(memory.usable)
    assert found.tokens_per_second == pytest.approx(64 * 1024 / (found.ttft_s + 1023 * found.tpot_s))


def test_a_step_with_drafts_adds_up_too() -> None:
    found = seventy(concurrency=16, draft_tokens=3, acceptance=0.7)
    step = sum(each.seconds for each in found.decode)
    assert step == pytest.approx(found.load.decode_s * found.speculation.tokens_per_step)
    assert "drafts" in {each.entry for each in found.decode}
    assert found.reasons["joules_per_token"].startswith("power was fitted to engines without drafts")
    assert found.speculation.speed_up == pytest.approx(found.speculation.plain_s / found.load.decode_s)


def test_replicas_share_the_load() -> None:
    one, four = seventy(gpus=8, tp=8, concurrency=32), seventy(gpus=32, tp=8, concurrency=128)
    assert (one.replicas, four.replicas) == (1, 4)
    assert four.tokens_per_second == pytest.approx(4 * one.tokens_per_second)
    assert four.max_concurrency == 4 * one.max_concurrency
    assert four.usd_per_million_tokens == pytest.approx(one.usd_per_million_tokens)


def test_a_static_batch_by_its_parts() -> None:
    """All prompts, then 1,023 steps of 16; nobody is disturbed, and nobody else is served."""
    found = seventy(batch=16)
    prompt = sum(each.seconds for each in found.prefill)
    step = sum(each.seconds for each in found.decode)
    assert found.ttft_s == pytest.approx(16 * prompt)
    assert found.tpot_s == pytest.approx(step) and found.interference is None
    assert found.tokens_per_second == pytest.approx(16 * 1024 / (16 * prompt + 1023 * step))


def test_a_batch_past_the_cache_is_cut_and_said() -> None:
    found = seventy(gpus=2, tp=2, batch=1000)
    most = found.max_concurrency
    assert found.load.concurrency == most
    assert f"the caches hold {most} of a batch of 1,000: the figures are of those" in found.notes


@settings(max_examples=20)
@given(st.integers(1, 300), st.integers(1, 300))
def test_a_larger_static_batch_never_decodes_fewer_tokens(few: int, more: int) -> None:
    """In a second, until the cache is full."""
    low, high = seventy(batch=few), seventy(batch=few + more)
    assert high.load.concurrency / high.tpot_s >= low.load.concurrency / low.tpot_s * (1 - 1e-9)


def test_users_beyond_the_cache_wait() -> None:
    found = seventy(gpus=2, tp=2, concurrency=1000)
    most = found.max_concurrency
    assert found.load.concurrency == most < 1000
    assert found.load.waiting == 1000 - most
    assert found.load.queue_s == pytest.approx(found.load.waiting / found.load.requests_per_s)
    assert f"{1000 - most:,} users of a replica wait for room in the cache: more GPUs, or fewer users" in found.notes


def test_more_requests_than_are_finished() -> None:
    found = seventy(rate=50)
    assert found.ttft_s is None and found.percentiles is None and found.load.saturated
    assert found.notes[-1].endswith("a second that are finished: the queue grows without end")


def test_a_context_past_the_models_is_warned_of() -> None:
    """Llama 3 8B knows 8,192 positions."""
    found = suanli.infer("llama-3-8b", gpu="h100-sxm", isl=16_000, osl=100)
    assert "16,100 positions are more than the model's 8,192" in found.notes
    assert not any("positions are more" in note for note in suanli.infer("llama-3-8b", gpu="h100-sxm").notes)


def test_a_gpu_that_nothing_was_fitted_on_is_said() -> None:
    found = suanli.infer("llama-3.1-8b", gpu="a100-80gb-sxm")
    said = "preset vllm was fitted on b200, h100-sxm, h200-sxm: on a100-80gb-sxm it extrapolates"
    assert said in found.notes


def test_energy_never_comes_without_concurrency() -> None:
    found = seventy(concurrency=64, pue=1.2, carbon="0.4kg/kWh")
    assert found.energy.concurrency == found.cost.concurrency == 64
    # J a token · tokens of a day, in kWh
    day = found.joules_per_token * found.tokens_per_second * 86_400 / 3.6e6
    assert found.energy.kwh_per_day == pytest.approx(day)
    assert found.energy.co2_kg_per_day == pytest.approx(0.4 * day)


def test_money_as_typed() -> None:
    """8 GPUs at $2.50: 20 $/h over the tokens of an hour."""
    found = seventy(concurrency=64, price="$2.50", sell="10", utilisation="50%")
    assert found.usd_per_million_tokens == pytest.approx(20 / 0.5 / (found.tokens_per_second * 3600 / 1e6))
    assert found.cost.margin == pytest.approx(1 - found.usd_per_million_tokens / 10)


# --- ways ---------------------------------------------------------------------------------------------------------


def test_chunks_make_steps_even_and_prompts_longer() -> None:
    whole, cut = (seventy(concurrency=16, isl=8192, chunk=chunk) for chunk in (None, 1024))
    assert cut.interference.chunks == 8
    assert cut.interference.mixed_s < whole.interference.mixed_s
    assert cut.ttft_s > whole.ttft_s
    assert cut.tpot_s >= whole.tpot_s


def test_pools_take_prefills_from_decode() -> None:
    together = seventy(gpus=8, tp=4, concurrency=32)
    apart = suanli.infer("llama-3.1-70b", gpu="h100-sxm", dtype="fp8", tp=4, disaggregate="4:4", concurrency=32)
    told = apart.disaggregation
    assert (apart.gpus, apart.replicas, told.prefill_replicas, told.decode_replicas) == (8, 1, 1, 1)
    assert apart.interference is None
    assert apart.tpot_s == pytest.approx(sum(each.seconds for each in apart.decode))
    assert together.tpot_s > together.load.decode_s
    assert told.transfer_bytes == 1024 * 327_680 and told.link == "the node's own links"
    assert apart.cost.gpus == 8
    assert apart.usd_per_million_tokens == pytest.approx(
        apart.cost.usd_per_hour / (apart.tokens_per_second * 3600 / 1e6)
    )


def test_a_link_between_pools() -> None:
    """320 MiB of a prompt over four ranks at 25 GB/s: 3.36 ms."""
    typed = {"dtype": "fp8", "tp": 4, "concurrency": 32, "disaggregate": "4:8"}
    found = suanli.infer("llama-3.1-70b", gpu="h100-sxm", link="25GB/s", **typed).disaggregation
    assert found.transfer_s == pytest.approx(1024 * 327_680 / 4 / 25e9)
    assert found.link == "an adapter of 25 GB/s for each GPU, as given"
    assumed = suanli.infer("llama-3.1-70b", gpu="h100-sxm", **typed).disaggregation
    assert assumed.link == "an adapter of 50 GB/s for each GPU, assumed: 400 Gbit/s"


def test_stages_beside_the_model() -> None:
    found = seventy(rate=5, stages="pre=2s:4,post=2ms:4")
    assert (found.service.limit, found.service.requests_per_s) == ("pre", 2.0)  # 4 workers of 2 s
    said = "stage pre finishes 2 requests a second at most, and all wait for it"
    assert found.service.latency_s is None and said in found.notes
    assert "stages: Erlang C (M/M/c), the least capacity of all" in found.sources
    assert found.tokens_per_second == pytest.approx(2 * 1024)  # the model has what the stage lets through
    assert found.tpot_s == pytest.approx(seventy(rate=2).tpot_s)
    users = seventy(concurrency=64, stages="pre=2s:4").service
    assert users.requests_per_s == 2 < users.offered_per_s


def test_a_draft_model_takes_memory() -> None:
    plain = seventy(concurrency=16)
    found = seventy(concurrency=16, draft_tokens=3, acceptance=0.7, draft_model="llama-3.1-8b")
    assert found.max_concurrency < plain.max_concurrency
    assert found.speculation.draft == "llama-3.1-8b"


POINTS = """model,hw,n_gpus,tp,precision,framework,isl,osl,concurrency,ttft_ms,tpot_ms,source
meta-llama/Llama-3.1-70B,h100_sxm,8,8,fp8,vllm 0.9,1024,1024,16,100,13.0,mine
meta-llama/Llama-3.1-70B,h100_sxm,8,8,fp8,vllm 0.9,1024,1024,64,200,18.0,mine
"""


def test_calibration_from_two_points(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text(POINTS)
    plain, found = seventy(concurrency=64), seventy(concurrency=64, calibrate=path)
    assert abs(found.tpot_s / 0.018 - 1) < 0.02 < abs(plain.tpot_s / 0.018 - 1)
    assert found.calibration.points == 2
    low, high = found.tpot_interval_s
    assert high / low < plain.tpot_interval_s[1] / plain.tpot_interval_s[0]
    assert found.notes[-1].startswith("preset vllm drawn to 2 points of vllm: off by 18.4% before".replace("%", " %"))


def test_measured_points_beside_the_answer() -> None:
    found = seventy(concurrency=64).neighbours
    assert len(found) == 3 and found[0].distance == 0
    assert 0.8 < found[0].ratio < 1.2


# --- searches -----------------------------------------------------------------------------------------------------


def test_a_search_meets_its_targets_waits_included() -> None:
    found = suanli.infer("llama-3.1-70b", gpu="h100-sxm,h200,b200", dtype="fp8", rate=20, tpot="30ms", ttft="1s")
    assert found.ttft_s <= 1 and found.tpot_s <= 0.03
    assert not found.load.saturated
    hourly = [each.usd_per_hour for each in found.choices]
    assert hourly == sorted(hourly)
    assert len({each.gpu for each in found.choices}) == 3


def test_a_search_keeps_to_what_was_pinned() -> None:
    found = suanli.infer("llama-3.1-70b", gpu="h100-sxm", dtype="fp8", rate=5, tpot="30ms", tp=4)
    assert {each.layout.tp for each in found.choices} == {4}


def test_no_choice_on_the_front_is_beaten() -> None:
    front = suanli.infer("llama-3.1-70b", gpu="h100-sxm,b200", dtype="fp8", tpot="60ms").front
    assert len(front) > 3
    for one in front:
        assert not any(
            other.tpot_s <= one.tpot_s and other.tokens_per_s_per_gpu > one.tokens_per_s_per_gpu for other in front
        )


def test_nothing_meets_the_targets() -> None:
    (said,) = faults(tpot="1ms", gpus=None)
    assert said.startswith("nothing meets the targets in --tpot; got h100-sxm; expected a longer time")
    assert "The shortest found: a token in" in said
    (said,) = faults(model="llama-3.1-405b", tpot="1s", gpus=4)
    assert said.startswith("the weights of llama-3.1-405b in fp8 do not fit in --gpu h100-sxm --gpus 4; got 410.1 GB")
    assert "What would fit: 8 × h100-sxm (--tp 8)" in said
    (said,) = faults(model="llama-3.1-8b", tpot="1s", gpus=1, dtype="bf16", isl="10M")
    assert said.startswith("nothing holds the model in --tpot; got h100-sxm")


def test_kinds_side_by_side() -> None:
    """Each is what it is alone; the cheapest tokens first."""
    found = suanli.infer("llama-3.1-8b", gpu="a100-80gb-sxm,h100-sxm", concurrency=64)
    alone = {name: suanli.infer("llama-3.1-8b", gpu=name, concurrency=64) for name in ("a100-80gb-sxm", "h100-sxm")}
    assert {each.gpu: each.tpot_s for each in found.choices} == {name: each.tpot_s for name, each in alone.items()}
    costs = [each.usd_per_million_tokens for each in found.choices]
    assert costs == sorted(costs) and found.gpu == found.choices[0].gpu


def test_kinds_that_do_not_hold_the_model_are_left_out() -> None:
    found = suanli.infer("llama-3.1-70b", gpu="l40s,h200", concurrency=4, tp=1, gpus=1, dtype="fp8")
    assert [each.gpu for each in found.choices] == ["h200-sxm"]
    with pytest.raises(SuanliError, match="do not fit"):
        suanli.infer("llama-3.1-70b", gpu="l40s,l4", concurrency=4, tp=1, gpus=1)


# --- faults -------------------------------------------------------------------------------------------------------


def test_all_faults_of_one_request_come_together() -> None:
    found = faults(gpus="1e30", isl="1e30", osl=0, concurrency=-4, dtype="fp9", sell="x", price=0, pue=0.5, rate="9/h")
    assert len(found) == 9  # concurrency is not read beside a rate
    assert found[0] == "isl is not possible in --isl; got '1e30'; expected at most 100,000,000."
    assert "osl is not possible in --osl; got 0; expected at least 1." in found
    assert "two loads are given in --rate; got --concurrency and --rate; expected one." in found
    assert "gpus is not possible in --gpus; got '1e30'; expected at most 1,000,000." in found
    assert "price is not possible in --price; got 0; expected dollars, above 0." in found
    assert "pue is not possible in --pue; got 0.5; expected 1 to 10." in found


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"tp": 6, "gpus": 6}, "attention heads cannot be cut evenly in --tp; got 64 heads over 6; expected one of 1, 2, "
     "4, 8, 16, 32, 64."),
    ({"gpus": 12, "tp": 8},
     "GPUs do not make whole replicas in --gpus; got 12 for replicas of 8; expected a multiple of 8."),
    ({"concurrency": "1e30"}, "concurrency is not possible in --concurrency; got '1e30'; expected at most "
     "1,000,000,000."),
    ({"rate": 0}, "rate is not possible in --rate; got 0; expected requests a second, above 0 and at most 1e9."),
    ({"batch": 8, "concurrency": 8}, "two loads are given in --batch; got --concurrency and --batch; expected one."),
    ({"batch": 8, "chunk": 512}, "a static batch is one engine's, prompts whole in --batch; got --chunk; expected "
     "--batch with one --gpu and a layout."),
    ({"batch": 8, "tpot": "1s"}, "a static batch is one engine's, prompts whole in --batch; got a search; expected "
     "--batch with one --gpu and a layout."),
    ({"tpot": "0s"}, "no time at all in --tpot; got '0s'; expected above 0, like 50ms."),
    ({"gpu": "h100-sxm,h20000"}, "unknown device 'h20000' in --gpu; "),
    ({"preset": "vlm"}, "unknown preset 'vlm' in --preset; "),
    ({"kv_dtype": "fp9"}, "unknown storage format 'fp9' in --kv-dtype; "),
    ({"model": "bert-base"}, "the model generates no tokens in --model; got bert-base; expected a model that decodes "
     "one token after another."),
    ({"isl": 300_000, "osl": 100, "gpus": 1, "tp": 1, "gpu": "h200"},
     "the cache has no room for one sequence in --isl; got 300,100 positions; expected at most "),
    ({"draft_tokens": 3}, "drafts need their number and their acceptance in --acceptance; expected --draft-tokens 3 "
     "--acceptance 0.7."),
    ({"draft_tokens": 3, "acceptance": "120%"}, "acceptance is not possible in --acceptance; got '120%'; expected 0 to "
     "1."),
    ({"draft_tokens": 99, "acceptance": 0.5}, "draft_tokens is not possible in --draft-tokens; got 99; expected at "
     "most 64."),
    ({"draft_tokens": 1, "acceptance": 0.5, "tpot": "1s"}, "a search over layouts or GPUs takes engines as they are in "
     "--draft-tokens; got --draft-tokens; expected one --gpu and a layout, without --ttft and --tpot."),
    ({"disaggregate": "4"}, "these are no two pools in --disaggregate; got '4'; expected GPUs of prefill and of "
     "decode, like 4:8."),
    ({"disaggregate": "4:4", "chunk": 512, "tp": 4}, "pools of their own need no chunks in --chunk; got --chunk and "
     "--disaggregate; expected one of them."),
    ({"disaggregate": "4:8", "tp": 4}, "the pools are another number of GPUs in --gpus; got 8; expected 12, or none "
     "given."),
    ({"disaggregate": "4:6", "tp": 4, "gpus": None}, "GPUs do not make whole replicas in --disaggregate; got 6 for "
     "replicas of 4; expected a multiple of 4."),
    ({"link": "2PB/s"},
     "link is not possible in --link; got '2PB/s'; expected above 0, like 50GB/s, and at most 1 PB/s."),
    ({"gpu": "m2", "dtype": "awq-4bit-128", "model": "llama-3.2-1b"},
     "the links between m2 are not known in --gpu; got 8 of them in a replica; expected one GPU a replica, or --link "
     "RATE, like 50GB/s."),
    ({"gpu": "ascend-910b", "gpus": 1, "model": "llama-3.2-1b"},
     "the catalogue does not know the memory rate of ascend-910b in --gpu. Choose another GPU."),
    ({"stages": "pre=5:4"}, "a number without its unit in --stages; got '5'; expected a number like 50ms."),
    ({"stages": "pre=5ms"}, "a stage cannot be read in --stages; got 'pre=5ms'; expected NAME=TIME:WORKERS with "
     "commas, like pre=5ms:4,post=2ms:4."),
    ({"stages": "a=5ms:1,a=2ms:1"}, "a stage has another's name in --stages; got a; expected each name once, and not "
     "model."),
    ({"calibrate": "nowhere.csv"}, "the file cannot be opened: No such file or directory in nowhere.csv."),
]  # fmt: skip


@pytest.mark.parametrize(("options", "said"), FAULTS, ids=[str(row[0])[:40] for row in FAULTS])
def test_a_fault(options: dict[str, Any], said: str) -> None:
    assert faults(**options)[0].startswith(said)


def test_a_model_that_does_not_fit_says_by_how_much_and_what_would() -> None:
    with pytest.raises(DoesNotFitError) as caught:
        suanli.infer("llama-3.1-405b", gpu="h100-sxm")
    assert str(caught.value) == (
        "the weights of llama-3.1-405b in bf16 do not fit in --gpu h100-sxm --gpus 1; got 811.7 GB, 811.7 GB on the "
        "fullest GPU of 80.0 GB: 731.7 GB more than it has; expected weights, activations and some cache within a "
        "GPU's memory. What would fit: 16 × h100-sxm (--tp 8 --pp 2)."
    )


def test_the_article_s_model_does_not_fit_its_machine() -> None:
    with pytest.raises(InputError, match=r"gpt3-175b in bf16 do not fit .* What would fit"):
        suanli.infer("gpt3-175b", gpu="a100-40gb-sxm", gpus=8)


# --- models with an encoder or a tower ----------------------------------------------------------------------------


def test_an_encoder_takes_the_prompt() -> None:
    """T5-3B reads 512 tokens in its encoder; the decoder begins with one of its own."""
    found = suanli.infer("t5-3b", gpu="h100-sxm", isl=512, osl=64)
    kinds = {line.kind: line for line in found.kv_cache.lines}
    assert kinds["cross"].bytes_constant == 512 * 24 * 2 * 32 * 128 * 2
    assert found.kv_cache.tokens == 65
    assert suanli.infer("t5-3b", gpu="h100-sxm", isl=1024, osl=64).ttft_s > found.ttft_s


def test_lengths_not_given_fit_the_model() -> None:
    found = suanli.infer("whisper-tiny", gpu="h100-sxm")
    assert found.inputs["assumed"]["isl"] == found.inputs["assumed"]["osl"] == 224
    assert not any("positions are more" in note for note in found.notes)


# --- caches side by side, prices by kind, longer pipelines --------------------------------------------------------


def test_pages_of_every_engine_stand_side_by_side() -> None:
    """gpt-oss-20b, 8,192 positions: 12 of 24 layers see 128, and vLLM's pages of one kind hold all of them."""
    found = suanli.infer("gpt-oss-20b", gpu="h100-sxm", isl=8000, osl=192, preset="sglang")
    layer = 2 * 8 * 64 * 2  # K and V, 8 heads of 64, bf16
    assert found.kv_bytes_per_sequence.ideal == layer * 12 * (8192 + 128)
    assert found.kv_paged_by_engine == {
        "vllm": layer * 24 * 8192, "sglang": layer * 12 * (8192 + 129), "tensorrt-llm": layer * 12 * (8192 + 160),
    }  # fmt: skip
    assert found.kv_paged_by_engine["sglang"] == found.kv_bytes_per_sequence.paged
    assert found.kv_expanded_bytes_per_token is None


def test_what_latents_save_is_told() -> None:
    found = suanli.infer("deepseek-v3", gpu="h200-sxm", gpus=8, dtype="fp8-block")
    assert (found.kv_bytes_per_token, found.kv_expanded_bytes_per_token) == (70_272, 4_997_120)


def test_a_kind_of_price() -> None:
    paid, spot = (suanli.infer("llama-3.1-8b", gpu="h200-sxm", price=kind) for kind in (None, "Spot"))
    assert "on-demand" in paid.cost.price_said and "spot" in spot.cost.price_said
    assert spot.usd_per_million_tokens < paid.usd_per_million_tokens
    assert spot.inputs["price"] == "spot"
    assert faults(gpu="l4", gpus=1, model="llama-3.1-8b", price="reserved")[0].startswith(
        "no reserved price for l4 in prices.toml. Pass --price in $ per GPU-hour"
    )


def test_a_faulty_price_list_is_no_missing_price(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "suanli").mkdir()
    (tmp_path / "suanli" / "prices.toml").write_text("[[price]]\ndevice = 'h100-sxm'\n", encoding="utf-8")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    with pytest.raises(SuanliError, match="usd_per_gpu_hour"):
        suanli.infer("llama-3.1-8b", gpu="h100-sxm")


def test_a_search_goes_over_nodes_where_one_is_too_small() -> None:
    found = suanli.infer("llama-3.1-405b", gpu="h100-sxm", tpot="80ms")
    assert (found.layout.tp, found.layout.pp, found.gpus) == (8, 2, 16)
    assert {each.layout.pp for each in found.choices} == {2}


def test_a_search_that_nothing_fits_says_what_would() -> None:
    said = faults(model="llama-3.1-405b", gpu="a100-40gb-sxm", gpus=8, dtype="bf16", tpot="80ms")[0]
    assert said.startswith(
        "the weights of llama-3.1-405b in bf16 do not fit in --gpu a100-40gb-sxm --gpus 8; got 811.7 GB"
    )
    assert "What would fit: 32 × a100-40gb-sxm (--tp 8 --pp 4)" in said


@pytest.mark.parametrize(("model", "gpus", "tp"), [
    ("llama-3.1-70b", 6, 2), ("llama-3.1-8b", 3, 1), ("llama-3.1-8b", 12, 4), ("llama-3.1-8b", 16, 8),
    ("smollm-135m", 6, 3), ("smollm-135m", 8, 1), ("qwen2.5-7b", 8, 4),
])  # fmt: skip
def test_ranks_that_were_not_asked_for_cut_the_model(model: str, gpus: int, tp: int) -> None:
    """Heads of Qwen2.5-7B: 28, of SmolLM-135M: 9 with 3 of keys."""
    found = suanli.infer(model, gpu="b200", gpus=gpus)
    assert (found.layout.tp, found.replicas, found.inputs["assumed"]["tp"]) == (tp, gpus // tp, tp)
