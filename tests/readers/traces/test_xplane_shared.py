"""The public XSpace files, against google.protobuf and plain Python ints."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from suanli.errors import UnreadableFileError
from suanli.explain.intervals import covered_ns
from suanli.nouns.trace import Trace
from suanli.readers.traces.jax_json import read_jax_json
from suanli.readers.traces.xplane import read_xplane

from .xspace_made import by_protobuf

pytestmark = pytest.mark.shared
DEVICES = ("tl_jax_conv_legacy", "tl_jax08_conv", "tl_jax08_gemm", "xprof_tpu_inference_2")


def sample(shared: Path, name: str) -> Path:
    return shared / "traces" / "files" / f"{name}.xplane.pb"


def expected(space: Any) -> dict[int, list[tuple[int, int, str]]]:
    """Start and end in ns, rounded as integers, and the name of each event of a line that counts, by device."""
    found: dict[int, list[tuple[int, int, str]]] = {}
    for plane in space.planes:
        if not plane.name.startswith((b"/device:GPU:", b"/device:TPU:")):
            continue
        names = {entry.key: entry.value.name.decode() for entry in plane.events}
        rows = found.setdefault(int(plane.name.rsplit(b":", 1)[1]), [])
        for line in plane.lines:
            if line.name.startswith(b"Stream #") or line.name in (b"XLA Ops", b"Async XLA Ops"):
                for event in line.events:
                    start = line.timestamp_ns + (event.offset_ps + 500) // 1000
                    end = line.timestamp_ns + (event.offset_ps + event.duration_ps + 500) // 1000
                    rows.append((start, end, names[event.kind]))
    return found


@pytest.mark.parametrize("name", DEVICES)
def test_every_event_is_that_of_protobuf(shared: Path, name: str) -> None:
    path = sample(shared, name)
    trace = read_xplane(path)
    rows = expected(by_protobuf(path.read_bytes()))
    assert sum(len(each) for each in rows.values()) == len(trace.work) > 0
    for device, spans in rows.items():
        of = trace.work.device == device
        times = zip(
            (trace.work.start_ns[of] - trace.base_ns).tolist(),
            (trace.work.end_ns[of] - trace.base_ns).tolist(),
            strict=True,
        )
        assert sorted(times) == sorted((start, end) for start, end, _ in spans)
        shown = Counter(trace.names[place] for place in trace.work.name[of])
        assert shown == Counter(text.split(" = ")[0].lstrip("%") for _, _, text in spans)


@pytest.mark.parametrize(
    ("name", "joined"), [("tl_jax_conv_legacy", 78), ("tl_jax08_conv", 235), ("tl_jax08_gemm", 54)]
)
def test_every_piece_of_a_gpus_work_has_its_launch(shared: Path, name: str, joined: int) -> None:
    trace = read_xplane(sample(shared, name))
    assert int((trace.work.launch >= 0).sum()) == len(trace.work) == joined
    launches = trace.host.correlation[trace.work.launch]
    assert (launches == trace.work.correlation).all()


def total(trace: Trace, device: int, category: str) -> int:
    of = [
        row
        for row in range(len(trace.work))
        if trace.work.device[row] == device
        and trace.work.stream[row] == 3  # XLA Ops
        and (trace.details[trace.work.detail[row]].hlo or {}).get("category") == category
    ]
    return covered_ns(trace.work.start_ns[of], trace.work.end_ns[of])


def test_what_the_tpu_states(shared: Path) -> None:
    """reference/traces.md §2.3: v6e, 918 TFLOP/s; 96 % of the operations' time waits for copies."""
    trace = read_xplane(sample(shared, "xprof_tpu_inference_2"))
    assert len(trace.devices) == 4
    assert {(device.name, device.peak_flop_per_s) for device in trace.devices} == {("TPU v6 Lite", 918e12)}
    categories = ("loop fusion", "all-reduce", "copy-done", "copy-start", "broadcast")
    times = {category: total(trace, 0, category) for category in categories}
    assert times["copy-done"] / sum(times.values()) == pytest.approx(0.96, abs=0.01)
    flops = sum(
        trace.details[trace.work.detail[row]].flops or 0
        for row in range(len(trace.work))
        if trace.work.device[row] == 0 and trace.work.stream[row] == 3
    )
    window = int(trace.work.end_ns[trace.work.device == 0].max() - trace.work.start_ns[trace.work.device == 0].min())
    assert flops / window / 1000 == pytest.approx(0.005, abs=0.001)  # TFLOP/s


def test_two_formats_of_one_run_are_one(shared: Path) -> None:
    """JAX wrote xplane.pb and trace.json.gz of the same run: every span of the host is in both, to the nanosecond."""

    def spans(trace: Trace) -> Counter[tuple[Any, ...]]:
        host = trace.host
        rows = zip(
            host.thread, host.name, host.kind, host.start_ns - trace.base_ns, host.end_ns - trace.base_ns, strict=True
        )
        return Counter(
            (trace.threads[lane], trace.names[name], *(int(part) for part in rest)) for lane, name, *rest in rows
        )

    path = sample(shared, "own_jax010_cpu")
    xplane, as_json = read_xplane(path), read_jax_json(path.with_name("own_jax010_cpu.trace.json.gz"))
    assert spans(xplane) == spans(as_json)
    assert len(xplane.host) == 1061
    assert (len(xplane.work), xplane.faults[0].code, as_json.faults[0].code) == (0, "no-device-work", "no-device-work")


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])  # of an editor: which bytes it takes to be no text
def test_the_mangled_copy_is_refused(shared: Path, tmp_path: Path, encoding: str) -> None:
    content = sample(shared, "xprof_tpu_inference_2").read_bytes()
    path = tmp_path / "mangled.xplane.pb"
    path.write_bytes(content.decode(encoding, "replace").encode())
    with pytest.raises(UnreadableFileError, match="the file was saved as text"):
        read_xplane(path)
