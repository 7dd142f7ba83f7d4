"""A folder explained on a Ray cluster of two nodes of this machine, workers killed on the way; prints JSON.

A program of its own, because Ray keeps a process to itself and warns of what is not ours:
`ray_scenario.py FOLDER CACHE direct|client both-live|one-dies`.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

MEMORY = 80 * 1024 * 1024


def main(folder: str, cache: str, way: str, nodes: str) -> None:
    import ray
    from ray.cluster_utils import Cluster

    from suanli.api.folders import explain_folder

    port = _free_port()
    head: dict[str, Any] = {"num_cpus": 1, "object_store_memory": MEMORY, "include_dashboard": False}
    if way == "client":
        head["ray_client_server_port"] = port
    cluster = Cluster(initialize_head=True, head_node_args=head)
    if way == "direct":  # before there is another node, so that this process hangs on the head
        ray.init(address=cluster.address, log_to_driver=False)
    second = cluster.add_node(num_cpus=1, object_store_memory=MEMORY)
    cluster.wait_for_nodes()
    said: dict[str, Any] = {"nodes": 2, "killed": [], "removed": False}

    def progress(done: int, total: int, _: str) -> None:
        if done == max(1, total // 4):
            said["killed"] = _kill_a_worker([cluster.head_node, second])
        if nodes == "one-dies" and done == total // 2 and not said["removed"]:
            cluster.remove_node(second, allow_graceful=False)
            said["removed"] = True

    begin = time.perf_counter()
    engine = "ray" if way == "direct" else f"ray://127.0.0.1:{port}"
    result = explain_folder(folder, engine=engine, cache=cache, progress=progress)
    said |= {"seconds": time.perf_counter() - begin, "result": result.to_dict()["result"]}
    ray.shutdown()
    cluster.shutdown()
    sys.stdout.write(json.dumps(said) + "\n")


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def _kill_a_worker(nodes: list[Any]) -> list[int]:
    """Kill one worker of ours that runs a task, or may: a child of one of our raylets, no agent of theirs."""
    raylets = {each.process.pid for node in nodes for each in node.all_processes["raylet"]}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            title = (entry / "cmdline").read_bytes()
        except (OSError, ValueError):
            continue
        if parent in raylets and title.startswith((b"ray::summarise_job", b"ray::IDLE")):
            os.kill(int(entry.name), signal.SIGKILL)
            return [int(entry.name)]
    return []


if __name__ == "__main__":
    main(*sys.argv[1:])
