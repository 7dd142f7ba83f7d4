"""How a server of ours is set up. Every bound a request meets is here."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from suanli.units import GIGA, HOUR, MEGA, MINUTE


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Bounds and place of a server. Sizes in bytes, times in seconds."""

    host: str = "127.0.0.1"
    port: int = 8765
    token: str | None = None  # what a browser must show; needed where the server is bound to more than this machine
    hosts: tuple[str, ...] = ()  # further names the server is called by
    max_upload_bytes: int = 200 * MEGA  # of one file
    max_uploads_bytes: int = GIGA  # of all files of a request, and of all that are kept
    max_json_bytes: int = 20 * MEGA  # of a request without files: a config.json may have as much
    kept_s: float = HOUR  # that an upload or a job's result is kept
    max_kept: int = 200  # uploads kept at a time
    max_jobs: int = 50
    workers: int = field(default_factory=lambda: max(2, min(4, os.cpu_count() or 2)))
    max_waiting: int = 200  # requests that wait for a worker; more are told to come again
    time_limit_s: float = MINUTE  # of one request
    job_limit_s: float = HOUR
    cache_bytes: int = 100 * MEGA  # of answers kept to be given again

    @property
    def is_local(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in ("127.0.0.1", "localhost", "::1")
