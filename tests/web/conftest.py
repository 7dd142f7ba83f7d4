"""A server of two workers that the tests of the web share; each asks it without a network."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from suanli.web.app import create_app
from suanli.web.settings import Settings

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="session")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(Settings(workers=2)), base_url="http://localhost:8765") as found:
        yield found
