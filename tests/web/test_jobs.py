"""Jobs and kept uploads over HTTP: started, looked at, cancelled, bounded, forgotten; files deleted."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from suanli.web.app import create_app
from suanli.web.settings import Settings

CONFIG = {"model_type": "gpt2", "n_layer": 3, "n_embd": 96, "n_head": 4, "vocab_size": 1000, "n_positions": 128}
PLAN = {"model": "gpt2", "gpu": "h100-sxm", "gpus": 8, "global_batch": 64, "pin": "pp=1"}
LONG = {"model": "llama-3.1-405b", "gpu": "h100-sxm", "gpus": "1024,2048,4096,8192,16384", "global_batch": 8192}
SMALL = Settings(workers=2, max_jobs=2, max_kept=2, kept_s=600, max_upload_bytes=100_000, max_uploads_bytes=300_000)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    with TestClient(create_app(SMALL), base_url="http://localhost") as found:
        yield found


@pytest.fixture(autouse=True)
def fresh(client: TestClient) -> None:
    jobs, kept = client.app.state.jobs, client.app.state.desk.kept  # type: ignore[attr-defined]
    for id_ in list(jobs.jobs):
        client.delete(f"/api/jobs/{id_}")
    jobs.jobs.clear()
    for name in list(kept.held):
        kept.drop(name)


def ended(client: TestClient, id_: str, seconds: float = 60) -> dict[str, Any]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        said: dict[str, Any] = client.get(f"/api/jobs/{id_}").json()
        if said["state"] not in ("waiting", "running"):
            return said
        time.sleep(0.05)
    raise AssertionError(f"still {said}")


def test_a_job_from_start_to_result(client: TestClient) -> None:
    started = client.post("/api/jobs/layout", json=PLAN)
    assert started.status_code == 202
    job = started.json()
    assert started.headers["location"] == f"/api/jobs/{job['id']}"
    assert (job["ok"], job["kind"], job["verb"], job["state"]) == (True, "job", "layout", "waiting")
    said = ended(client, job["id"])
    assert said["state"] == "done"
    assert said["result"]["kind"] == "layout"
    assert (said["done"], said["total"]) == (1000, 1000)
    again = client.get(f"/api/jobs/{job['id']}").json()  # a page that is loaded again
    assert again == said


def test_a_job_that_fails_says_why(client: TestClient) -> None:
    said = ended(client, client.post("/api/jobs/count", json={"model": "nobody"}).json()["id"])
    assert (said["ok"], said["state"]) == (False, "failed")
    assert said["error"]["code"] == "unknown_model"
    assert said["errors"] == [said["error"]]


def test_cancelling(client: TestClient) -> None:
    job = client.post("/api/jobs/layout", json=LONG).json()
    start = time.monotonic()
    assert client.delete(f"/api/jobs/{job['id']}").json()["state"] == "cancelled"
    assert time.monotonic() - start < 10
    assert client.get(f"/api/jobs/{job['id']}").json()["state"] == "cancelled"
    assert client.post("/api/count", json={"model": "gpt2"}).status_code == 200  # workers are there again


def test_cancelling_what_is_done_changes_nothing(client: TestClient) -> None:
    job = client.post("/api/jobs/count", json={"model": "gpt2"}).json()
    done = ended(client, job["id"])
    assert client.delete(f"/api/jobs/{job['id']}").json() == done


def test_jobs_are_bounded_and_the_oldest_ended_makes_room(client: TestClient) -> None:
    first = client.post("/api/jobs/count", json={"model": "gpt2"}).json()["id"]
    ended(client, first)
    second, third = (client.post("/api/jobs/layout", json=LONG).json()["id"] for _ in range(2))
    assert client.get(f"/api/jobs/{first}").status_code == 404
    full = client.post("/api/jobs/layout", json=LONG)
    assert full.status_code == 503
    assert full.headers["retry-after"] == "5"
    assert full.json()["error"]["message"] == "too many jobs run"
    for id_ in (second, third):
        client.delete(f"/api/jobs/{id_}")


def test_jobs_are_forgotten(client: TestClient) -> None:
    jobs = client.app.state.jobs  # type: ignore[attr-defined]
    job = client.post("/api/jobs/count", json={"model": "gpt2"}).json()["id"]
    ended(client, job)
    jobs.jobs[job].ended -= SMALL.kept_s + 1
    gone = client.get(f"/api/jobs/{job}")
    assert gone.status_code == 404
    assert gone.json()["error"]["code"] == "no_job"


@pytest.mark.parametrize(("address", "status"), [("/api/jobs/nothing", 404), ("/api/jobs/none/at/all", 404)])
def test_no_such_job(client: TestClient, address: str, status: int) -> None:
    assert client.get(address).status_code == status
    assert client.post("/api/jobs/nothing", json={}).status_code == 404


def test_uploads_of_a_job_are_deleted_at_its_end(client: TestClient) -> None:
    folder: Path = client.app.state.desk.folder  # type: ignore[attr-defined]
    job = client.post("/api/jobs/count", files={"model": ("config.json", json.dumps(CONFIG))}).json()
    assert ended(client, job["id"])["result"]["result"]["params"]["total"] > 0
    assert list(folder.iterdir()) == []


# --- kept uploads -------------------------------------------------------------------------------------------------


def test_a_pasted_config_has_a_name_for_addresses(client: TestClient) -> None:
    kept = client.post("/api/config", json=CONFIG)
    assert kept.status_code == 201
    [name] = kept.json()["names"]["model"]
    assert name.startswith("cfg-")
    assert client.post("/api/config", json=CONFIG).json() == kept.json()  # by its content
    for _ in range(2):
        found = client.post("/api/count", json={"model": name, "seq": 64}).json()
        assert found["result"]["params"] == client.post("/api/count", json={"model": CONFIG}).json()["result"]["params"]
    assert found["inputs"]["model"] == "config.json"


def test_uploads_have_names_and_make_room(client: TestClient) -> None:
    desk = client.app.state.desk  # type: ignore[attr-defined]
    names = [client.post("/api/uploads", files={"traces": (f"{n}.json", f"{{{n}")}).json()["names"]["traces"][0]
             for n in range(3)]  # fmt: skip
    assert [name in desk.kept.held for name in names] == [False, True, True]
    gone = client.post("/api/explain", json={"traces": [names[0]]})
    assert gone.status_code == 404
    assert gone.json()["error"]["message"] == "the upload is not kept here, or no longer"
    assert client.post("/api/explain", json={"traces": names[1:2]}).status_code == 422  # no trace, but read
    assert client.delete(f"/api/uploads/{names[1]}").json()["dropped"] == names[1]
    assert client.delete("/api/uploads/passwd").status_code == 409


def test_uploads_are_forgotten(client: TestClient) -> None:
    desk = client.app.state.desk  # type: ignore[attr-defined]
    [name] = client.post("/api/config", json=CONFIG).json()["names"]["model"]
    desk.kept.held[name].asked -= SMALL.kept_s + 1
    assert client.post("/api/count", json={"model": name}).status_code == 404
    assert list(desk.folder.iterdir()) == []


def test_what_a_job_uses_is_kept(client: TestClient) -> None:
    desk = client.app.state.desk  # type: ignore[attr-defined]
    [name] = client.post("/api/config", json=CONFIG).json()["names"]["model"]
    held = desk.kept.held[name]
    held.users += 1
    held.asked -= SMALL.kept_s + 1
    desk.kept.expire()
    assert name in desk.kept.held
    held.users -= 1
    desk.kept.expire()
    assert name not in desk.kept.held


@pytest.mark.parametrize(
    ("sent", "status"), [({"json": [1]}, 400), ({"content": b"{"}, 400), ({"data": {"a": "b"}}, 400)]
)
def test_no_config(client: TestClient, sent: dict[str, Any], status: int) -> None:
    headers = {} if "data" in sent else {"content-type": "application/json"}
    assert client.post("/api/config", headers=headers, **sent).status_code == status


def test_everything_is_gone_with_the_server() -> None:
    with TestClient(create_app(replace(SMALL, workers=1)), base_url="http://localhost") as client:
        folder: Path = client.app.state.desk.folder  # type: ignore[attr-defined]
        client.post("/api/config", json=CONFIG)
        process = client.app.state.desk.pool._all[0].process  # type: ignore[attr-defined]
        assert folder.is_dir()
    assert not folder.exists()
    assert not process.is_alive()
