"""Bytes by formula."""

from __future__ import annotations

import pytest

from suanli.formulas import memory, running

CASES = [
    (memory.weights_bytes, (8_030_261_248, 16), 16_060_522_496),  # 2 bytes each
    (memory.weights_bytes, (3, 4), 2),  # 12 bits need 2 bytes
    (memory.optimizer_bytes, (1000, 8, 4), 12_000),  # Adam in mixed precision: K = 12
    (memory.kv_cache_bytes, (1, 1, 8 * 128 * 2, 16), 4096),  # Llama-3-8B, one layer and token; × 32 layers = 131072
    (memory.kv_cache_bytes, (1, 65536, 576, 16), 75_497_472),  # DeepSeek-V3 latent, one layer; × 61 = 4.29 GiB
    (memory.state_bytes, (2, 3, 4, 5), 480),  # 4·2·3·4·5
    (memory.gpt_activation_bytes, (1, 2048, 1, 12288, 96), 34 * 2048 * 12288 + 5 * 96 * 2048**2),
    (memory.gpt_activation_bytes_selective, (1, 2048, 1, 12288), 34 * 2048 * 12288),
    (memory.gpt_activation_bytes_full, (1, 2048, 1, 12288), 2 * 2048 * 12288),
]


@pytest.mark.parametrize(("function", "arguments", "value"), CASES)
def test_bytes(function: object, arguments: tuple[int, ...], value: int) -> None:
    assert callable(function)
    assert function(*arguments) == value


RUNS = [
    (running.tokens_per_s, (2048, 8192, 6.72), 2_496_609.52),
    (running.achieved_flop_per_s, (51.471e9, 8000, 1), 411.768e12),
    (running.utilisation, (411.768e12, 989.4e12), 0.41618),
    (running.gpu_hours, (3.15e23, 312e12, 0.462), 607_031.857),
    (running.wall_days, (607_031.857, 1000, 1), 25.29299),
    (running.wall_days, (607_031.857, 1000, 0.5), 50.58599),
    (running.gpus_for_deadline, (24_000, 10, 1), 100),
    (running.run_cost, (1000, 2.5, 0.5), 5000),
    (running.run_energy_kwh, (1000, 700, 1.1, 1), 770),
    (running.run_co2_kg, (770, 0.4), 308),
]


@pytest.mark.parametrize(("function", "arguments", "value"), RUNS)
def test_runs(function: object, arguments: tuple[float, ...], value: float) -> None:
    assert callable(function)
    assert function(*arguments) == pytest.approx(value, rel=1e-5)
