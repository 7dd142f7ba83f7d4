"""The page used as a person would: choose, slide, drop, copy the address, go back, change language, cancel."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
TINY = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 256, "intermediate_size": 512,
        "num_attention_heads": 4, "num_hidden_layers": 3, "vocab_size": 1000}  # fmt: skip


def test_choose_slide_go_back_and_hand_on(person: Any, browser: Any) -> None:
    """A device by keyboard, a rate by slider; the address says all, another window shows it, back undoes it."""
    person.opens("/mfu")
    window = person.window
    window.locator("#f-gpu").fill("b200")
    window.get_by_role("option", name="b200").first.wait_for()
    window.keyboard.press("ArrowDown")
    window.keyboard.press("Enter")
    person.waits()
    assert person.query["gpu"] == "b200"
    assert "2,250 dense bf16" in person.headline

    chosen = person.headline
    slider = window.locator("[data-field=tokens_per_second] .slider")
    slider.focus()
    for _ in range(3):  # held: one entry of the history
        window.keyboard.down("ArrowLeft")
    window.keyboard.up("ArrowLeft")
    slider.blur()
    person.waits()
    slid = person.headline
    assert slid != chosen
    assert int(person.query["tokens_per_second"]) < 64000

    other = browser.new_context().new_page()
    other.goto(window.url)
    other.wait_for_selector("#answer[aria-busy=false]")
    assert other.locator("#shown .headline").inner_text() == slid
    other.context.close()

    while person.query["tokens_per_second"] != "64000":
        window.go_back()
        person.waits()
    assert person.headline == chosen
    assert window.locator("#f-tokens_per_second").input_value() == "64000"
    window.go_forward()
    person.waits()
    assert int(person.query["tokens_per_second"]) < 64000


def test_language_units_and_theme_stay_with_the_state(person: Any) -> None:
    person.opens("/count")
    person.types("seq", "4096")
    window = person.window
    window.locator("select[name=units]").select_option("si")
    person.waits()
    assert person.query["units"] == "si"
    window.locator(".lang").click()
    person.waits()
    assert (person.query["lang"], person.query["seq"], person.query["units"]) == ("zh", "4096", "si")
    assert window.locator("h1").inner_text() == "计数"
    assert window.locator("#f-seq").input_value() == "4096"
    window.locator(".shade").click()
    window.reload()
    person.waits()
    assert window.locator("html").get_attribute("data-theme") == "dark"
    person.pictures("count-dark-chinese")


def test_a_wrong_name_is_told_at_its_field_and_mended_by_a_click(person: Any) -> None:
    person.opens("/train")
    before = person.headline
    person.types("gpu", "h100-smx")
    window = person.window
    told = window.locator("#e-gpu")
    assert "unknown device 'h100-smx'" in told.inner_text()
    assert window.locator("#f-gpu").get_attribute("aria-invalid") == "true"
    assert person.headline == before  # the last answer stays, dimmed
    person.pictures("train-fault")
    told.get_by_role("button").first.click()
    person.waits()
    assert told.is_hidden()
    assert person.query["gpu"].startswith("h")
    assert window.locator("#shown .problem").count() == 0


def test_every_number_says_where_it_comes_from(person: Any) -> None:
    person.opens("/mfu")
    window = person.window
    numbers = window.locator("#shown button.why")
    assert numbers.count() > 20
    numbers.first.click()
    dialog = window.locator("dialog.note[open]")
    dialog.wait_for()
    assert "41.62 %" in dialog.inner_text() or "model FLOPs" in dialog.inner_text()
    assert dialog.locator(".formula").count() == 1
    assert window.evaluate("document.activeElement.className") == "close"
    person.pictures("mfu-why")
    window.keyboard.press("Escape")
    dialog.wait_for(state="hidden")
    assert person.query == {}


def test_one_of_several_ways_to_say_it(person: Any) -> None:
    """Only the alternative that is shown is asked about."""
    person.opens("/train")
    person.window.get_by_role("radio", name="Deadline").click()
    person.types("deadline", "54d")
    assert "gpus" not in person.query
    assert person.query["deadline"] == "54d"
    assert "GPUs" in person.headline
    person.opens(f"/train{person.window.evaluate('location.search')}")
    assert person.window.locator("#f-gpus").is_hidden()
    assert person.window.locator("#f-deadline").input_value() == "54d"


def test_a_config_is_pasted(person: Any) -> None:
    person.opens("/count")
    window = person.window
    window.get_by_text("Paste or drop a config.json").click()
    area = window.locator(".paste textarea")
    area.fill("[1, 2]")
    area.blur()
    window.locator("#e-model", has_text="This is no JSON object").wait_for()
    area.fill(json.dumps(TINY))
    area.blur()
    window.wait_for_url("**/count?model=cfg-*")
    person.waits()
    assert person.query["model"].startswith("cfg-")
    # two matrices of 1000·256, three layers of 4·256² + 3·256·512 + 2·256, and the last norm's 256
    assert "2,479,872" in window.locator("#shown section[data-block=Parameters]").inner_text()
    person.sees("self_attn")


def test_two_layouts_are_set_beside_each_other(person: Any) -> None:
    person.opens("/layout")
    window = person.window
    window.locator(".pickrow").nth(0).click()
    assert window.locator(".pickrow").nth(0).get_attribute("aria-pressed") == "true"
    window.locator(".pickrow").nth(4).click()
    person.waits()
    assert window.evaluate("new URLSearchParams(location.search).getAll('why')") == ["1", "5"]
    assert window.locator("tr.picked").count() == 2
    person.pictures("layout-two")
    window.get_by_text("Choose axis by axis").click()
    window.locator("select[data-axis=tp]").select_option("4")
    person.waits()
    assert person.query["pin"] == "tp=4"
    assert "tp4" in person.headline


def test_traces_are_dropped_and_the_example_gives_way(person: Any) -> None:
    person.opens("/explain")
    assert person.window.locator(".files li").count() == 1
    person.window.locator("#f-traces").set_input_files(ROOT / "examples" / "step.json")
    person.window.wait_for_url("**/explain?traces=up-*")
    person.waits()
    assert "step.json: 40.1 %" in person.headline
    assert person.window.locator(".files .name").all_inner_texts() == ["step.json"]
    person.pictures("explain-uploaded")
    person.window.locator(".files button").click()
    person.waits()
    assert "traces" not in person.query


def test_points_of_a_cluster_from_a_file(person: Any, tmp_path: Path) -> None:
    file = tmp_path / "sizes.csv"
    file.write_text("gpus,step_time_s\n64,10.0\n128,5.2\n256,2.8\n")
    person.opens("/scale")
    window = person.window
    window.locator("#f-points").fill("")
    window.locator("#f-metric").select_option("")
    window.locator("#f-project").fill("")
    window.locator("#f-file").set_input_files(file)
    window.wait_for_url("**file=up-*")
    person.waits()
    assert "64 to 256 GPUs" in person.headline


def test_long_work_outlives_a_reload_and_is_cancelled(person: Any) -> None:
    person.opens("/verify")
    window = person.window
    window.locator("#f-only").select_option("predictions")
    cancel = window.locator(".job .cancel")
    cancel.wait_for()
    told = window.evaluate("Object.entries(sessionStorage).find(([name]) => name.includes('predictions'))[1]")
    person.pictures("verify-working")
    window.reload()
    cancel.wait_for()
    again = window.evaluate("Object.entries(sessionStorage).find(([name]) => name.includes('predictions'))[1]")
    assert again == told
    cancel.click()
    person.sees("Cancelled.")
    assert window.locator(".job").is_hidden()
    window.locator("#f-only").select_option("scaling")
    person.waits()
    assert "hold" in person.headline


def test_the_answer_is_taken_along(person: Any) -> None:
    person.opens("/goodput")
    window = person.window
    window.get_by_text("Command", exact=True).click()
    line = window.locator(".code pre").first.inner_text()
    assert line == "suanli goodput --gpus 16384 --failures llama-3-405b --restart 10min --checkpoint-save 60s"
    window.locator(".code .copy").first.click()
    assert window.evaluate("navigator.clipboard.readText()") == line
    window.get_by_text("Download", exact=True).click()
    for suffix, start in ((".json", '{\n  "ok": true'), (".csv", ""), (".md", "# "), (".html", "<!doctype html>")):
        with window.expect_download() as taken:
            window.locator(f'.sheet a[download$="{suffix}"]').click()
        assert Path(taken.value.path()).read_text(encoding="utf-8").startswith(start)
        window.get_by_text("Download", exact=True).click() if not window.locator(".take[open]").count() else None
    window.get_by_role("button", name="Copy link").click()
    assert window.evaluate("navigator.clipboard.readText()") == window.url


def test_catalogues_are_filtered_sorted_and_opened(person: Any) -> None:
    person.opens("/gpus")
    person.types("filter", "nvidia hopper")
    first = person.window.locator("#shown tbody tr").first
    before = first.inner_text()
    person.window.get_by_role("button", name="memory").click()
    assert first.inner_text() != before
    person.window.get_by_role("radio", name="One in full").click()
    person.types("name", "h100-sxm")
    assert person.query == {"name": "h100-sxm"}
    assert "H100" in person.headline


def test_a_lesson_follows_its_inputs(person: Any) -> None:
    person.opens("/learn")
    assert "0.63064853" in person.window.locator("#shown").inner_text()
    person.types("inputs", "0.1,0.05")
    assert "0.63064853" not in person.window.locator("#shown").inner_text()
    person.window.get_by_role("radio", name="Inside a transformer").check()
    person.waits()
    assert person.query == {"topic": "transformer"}
    assert person.window.locator("#f-prompt").is_visible()
    assert person.window.locator("#f-inputs").is_hidden()


def test_by_keyboard_alone(person: Any) -> None:
    person.opens("/models")
    window = person.window
    window.keyboard.press("Tab")
    assert window.evaluate("document.activeElement.className") == "skip"
    window.keyboard.press("Enter")
    assert window.evaluate("document.activeElement.id") == "main"
    window.keyboard.press("/")
    assert window.evaluate("document.activeElement.id") == "f-filter"
    window.keyboard.type("qwen")
    window.keyboard.press("Enter")
    person.waits()
    assert person.query == {"filter": "qwen"}
    assert window.locator("#said").inner_text() == person.headline  # what a screen reader is told


def test_own_runs_are_dropped(person: Any) -> None:
    person.opens("/calibrate")
    window = person.window
    assert "three or more runs" in window.locator("#shown").inner_text()
    window.locator("#f-file").set_input_files(ROOT / "examples" / "runs.csv")
    window.wait_for_url("**/calibrate?file=up-*")
    person.waits()
    assert "calibrated to 5 runs on h100-sxm bf16" in person.headline
    person.pictures("calibrate-desktop")


def test_two_reports_beside_each_other_and_one_again(person: Any) -> None:
    """The first alone is no fault; where the server keeps what was dropped is seen nowhere."""
    person.opens("/diff?lang=zh")
    window = person.window
    window.locator("#f-first").set_input_files(ROOT / "examples" / "gpt2.json")
    window.wait_for_url("**first=up-*")
    person.waits()
    assert window.locator("#shown .problem").count() == 0
    window.locator("#f-second").set_input_files(ROOT / "examples" / "gpt2-longer.json")
    window.wait_for_url("**second=up-*")
    person.waits()
    assert person.headline == "gpt2.json 与 gpt2-longer.json：52 个数中有 27 个不同"
    assert "/uploaded/" not in window.locator("#shown").inner_text()
    person.pictures("diff-desktop")
    person.opens("/rerun")
    window.locator("#f-file").set_input_files(ROOT / "examples" / "gpt2.json")
    window.wait_for_url("**file=up-*")
    person.waits()
    assert "the same result, 52 numbers" in person.headline


def test_a_formula_with_its_numbers(person: Any) -> None:
    person.opens("/why?lang=zh")
    shown = person.window.locator("#shown")
    assert "421,651,971,833,856" in person.headline
    assert "T：词元（位置）总数" in shown.inner_text()
    person.window.locator("#f-id").select_option("flops.forward")
    person.waits()
    assert person.query["id"] == "flops.forward"
    assert "前向计算的运算次数" in shown.inner_text()
    assert person.is_narrow_enough()
    person.pictures("why-desktop")


def test_other_counters_in_chinese_on_a_phone(on_phone: Any) -> None:
    """Names and figures stand above bars that have the whole width."""
    on_phone.opens("/compare?lang=zh&model=gpt2&seq=64&tools=palm,6nd")
    assert "2 个计数工具" in on_phone.headline
    assert on_phone.is_narrow_enough()
    drawn = on_phone.window.locator("[data-name=counters] svg")
    widest = max(drawn.evaluate("svg => [...svg.querySelectorAll('.mark-rect path')].map(p => p.getBBox().width)"))
    assert widest > 0.5 * on_phone.window.viewport_size["width"]
    on_phone.reads_the_answer()
    on_phone.pictures("compare-phone")


def test_a_rate_slides_and_the_curve_of_the_loss_follows(person: Any) -> None:
    person.opens("/learn")
    window = person.window
    curve = "document.querySelector('#shown .mark-line path').getAttribute('d')"
    before = window.evaluate(curve)
    slider = window.locator("[data-field=rate] .slider")
    slider.focus()
    window.keyboard.press("ArrowLeft")
    window.keyboard.press("ArrowLeft")
    slider.blur()
    person.waits()
    assert float(person.query["rate"]) < 0.5
    assert window.evaluate(curve) != before


def test_sizes_of_a_picture_follow_the_units(person: Any) -> None:
    person.opens("/layout?units=si")
    text = person.window.locator("#shown .draw").evaluate_all("all => all.map(each => each.textContent).join()")
    assert "memory of a GPU [GB]" in text
    assert "GiB" not in text
