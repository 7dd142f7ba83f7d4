"""Cores are those this process may use."""

from __future__ import annotations

import os

import pytest

from suanli.readers.cores import cores


def test_cores_one_may_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {3, 5}, raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    assert cores() == 2


@pytest.mark.parametrize(("count", "found"), [(7, 7), (None, 1)])
def test_where_the_system_does_not_say_which(monkeypatch: pytest.MonkeyPatch, count: int | None, found: int) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: count)
    assert cores() == found
