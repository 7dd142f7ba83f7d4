"""What all tests share: the folder of shared data, golden files, and which tests are left out unless asked for."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# The tests run beside each other, one a core: more threads in each would only wait for one another.
for threads in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(threads, "1")

# On a busy machine drawing is slow now and then, which says nothing of the code.
CALM: dict[str, Any] = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("full", max_examples=100, **CALM)
settings.register_profile("sampled", max_examples=40, **CALM)

ROOT = Path(__file__).resolve().parents[1]
SHARED = ROOT.parent / "shared"
GOLDEN = Path(__file__).parent / "golden"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write golden files anew, to be read in the diff")


def is_sampled(config: pytest.Config) -> bool:
    """Whether slow tests are sampled: always, unless -m is given."""
    return not any(arg == "-m" for arg in config.invocation_params.args)


def pytest_configure(config: pytest.Config) -> None:
    settings.load_profile("sampled" if is_sampled(config) else "full")


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out `full` unless -m is given; skip `shared` aloud where its folder is absent; group what shares much.

    `make test` runs a file in one process (`--dist loadfile`), so that what it makes once is made once. Under
    `--dist loadgroup` files stay whole too, but for tests marked `torch`, which stand each for itself unless they
    name a group.
    """
    for item in items:
        if not item.get_closest_marker("torch") and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(item.location[0]))
    if is_sampled(config):
        left = [item for item in items if item.get_closest_marker("full")]  # a mark; `[full]` may be a test's id
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if not item.get_closest_marker("full")]
    if not SHARED.is_dir():
        skip = pytest.mark.skip(reason="the folder of shared reference data is not beside the checkout")
        for item in items:
            if item.get_closest_marker("shared"):
                item.add_marker(skip)


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """No test reads the user's own prices, terminal width or colours."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.getbasetemp() / "no-config"))
    for name in ("COLUMNS", "LINES", "FORCE_COLOR", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> object:
    """Compare a text with the golden file of that name; `--update-golden` writes it."""

    def check(name: str, text: str) -> None:
        path = GOLDEN / name
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        assert path.is_file(), f"no golden file {name}: run pytest --update-golden and read the diff"
        assert text == path.read_text(encoding="utf-8")

    return check


@pytest.fixture(scope="session")
def shared() -> Path:
    return SHARED


@pytest.fixture(scope="session")
def made_fleet() -> Any:
    """The maker of traces of jobs that never ran, which the benchmark of fleets has too."""
    spec = importlib.util.spec_from_file_location("made_fleet", ROOT / "benchmarks" / "made_fleet.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["made_fleet"] = module
    spec.loader.exec_module(module)
    return module


os.environ.setdefault("HF_HUB_OFFLINE", "1")
