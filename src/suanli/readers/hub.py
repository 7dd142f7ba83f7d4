"""A hub id `org/name`: its config.json, fetched with huggingface_hub. Nothing else is fetched and nothing is run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from suanli.errors import Fault, MissingExtraError, UnreadableFileError
from suanli.nouns.arch import Arch
from suanli.readers import gate
from suanli.readers.configs import Image, read_config
from suanli.readers.files import CONFIG, read_json_config

HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")


def read_hub_model(repo_id: str, image: Image | None = None, frames: int | None = None) -> Arch:
    """The architecture of a hub id. Raises MissingExtraError without the library, UnreadableFileError offline."""
    name = repo_id.rsplit("/", maxsplit=1)[-1]
    return read_config(read_hub_config(repo_id), name, f"{repo_id} {CONFIG}", image, frames)


def read_hub_config(repo_id: str) -> dict[str, Any]:
    """The config of a hub id. Raises as `read_hub_model`."""
    return read_json_config(_fetched(repo_id))


def _fetched(repo_id: str) -> Path:
    gate.check_fetch(repo_id)
    try:
        from huggingface_hub import hf_hub_download  # noqa: PLC0415  an optional extra
    except ImportError as problem:
        raise MissingExtraError(
            Fault(
                code="missing_extra",
                message=f"{repo_id} is no preset, and fetching it needs huggingface_hub",
                where="MODEL",
                hint='Run `pip install "suanli[hub]"`, or give the path of its config.json.',
            )
        ) from problem
    try:
        return Path(hf_hub_download(repo_id, CONFIG))
    except Exception as problem:  # the library raises many kinds: offline, absent, gated, broken cache
        raise UnreadableFileError(
            Fault(
                code="hub_unreachable",
                message=f"the config of {repo_id} could not be fetched and is not cached",
                where="MODEL",
                got=type(problem).__name__,
                hint="Check the id and the connection, or give the path of a config.json.",
            )
        ) from problem
