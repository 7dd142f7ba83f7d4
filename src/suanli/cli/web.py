"""`suanli web`."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Annotated, Any

import typer

from suanli.cli.options import Text, text_option
from suanli.cli.run import show_error
from suanli.errors import Fault, FaultList, InputError, SuanliError, shown
from suanli.units import parse

MOST_PORT, SHORTEST_TOKEN, MOST_WORKERS = 65_535, 8, 256
Port = Annotated[
    Text, text_option("--port", "Port; 0 is any free one. Default: the first free from 8765.", metavar="N")
]
Host = Annotated[
    str, typer.Option("--host", help="Address to listen at. Beside this machine a token is asked for.", metavar="HOST")
]
Token = Annotated[Text, text_option("--token", "What browsers must show. Made and printed where it is needed.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", help="Another name the server is called by.", metavar="NAME", show_default=False),
]
MaxUpload = Annotated[Text, text_option("--max-upload", "Largest file taken. Default 200MB.", metavar="SIZE")]
Workers = Annotated[Text, text_option("--workers", "Processes that compute. Default: by the cores.", metavar="N")]
TimeLimit = Annotated[Text, text_option("--time-limit", "Longest a request may take. Default 60s.", metavar="TIME")]
Open = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]


def command(
    port: Port = None,
    host: Host = "127.0.0.1",
    token: Token = None,
    allow_host: AllowHost = None,
    max_upload: MaxUpload = None,
    workers: Workers = None,
    time_limit: TimeLimit = None,
    open_: Open = False,
) -> None:
    """Open the page of every verb, and /api/VERB, on this machine.

    Example: suanli web --open
    """
    faults = FaultList(InputError)
    try:
        number = _whole(faults, "--port", port, 0, MOST_PORT)
        values: dict[str, Any] = {"host": host, "token": _token(faults, token), "hosts": tuple(allow_host or ())}
        values["workers"] = _whole(faults, "--workers", workers, 1, MOST_WORKERS)
        values["max_upload_bytes"] = _size(faults, max_upload)
        values["time_limit_s"] = _quantity(faults, "--time-limit", time_limit, "duration")
        faults.raise_if_any()
        given = {name: value for name, value in values.items() if value is not None}
        if "max_upload_bytes" in given:  # several files of that size, as before
            given["max_uploads_bytes"] = 5 * given["max_upload_bytes"]
        # by name: the page lies above the command line, and is not loaded with it
        settings = import_module("suanli.web.settings").Settings(**given)
        import_module("suanli.web.serve").serve(settings, number, open_=open_)
    except SuanliError as problem:
        show_error(problem, as_json=False)
        raise typer.Exit(problem.exit_code) from problem
    sys.stdout.flush()


def _whole(faults: FaultList, where: str, text: str | None, low: int, high: int) -> int | None:
    if text is None or (text.isdecimal() and len(text) < 9 and low <= int(text) <= high):
        return None if text is None else int(text)
    faults.add(code="bad_number", message="not possible", where=where, got=shown(text), expected=f"{low} to {high:,}")
    return None


def _quantity(faults: FaultList, where: str, text: str | None, kind: str) -> int | float | None:
    """A quantity above 0; None where not given or where a fault was recorded."""
    if text is None:
        return None
    try:
        found = parse(text, kind, where)
    except SuanliError as problem:
        faults.faults.extend(problem.faults)
        return None
    if found > 0:
        return found
    faults.add(code="bad_number", message="not possible", where=where, got=shown(text), expected="above 0")
    return None


def _size(faults: FaultList, text: str | None) -> int | None:
    found = _quantity(faults, "--max-upload", text, "bytes")
    return None if found is None else int(found)


def _token(faults: FaultList, text: str | None) -> str | None:
    if text is None or (len(text) >= SHORTEST_TOKEN and text.isascii() and text.isprintable()):
        return text
    fault = Fault(code="bad_token", message="not a token", where="--token", got=f"{len(text)} characters",
                  expected=f"at least {SHORTEST_TOKEN}, letters, digits and signs of ASCII")  # fmt: skip
    faults.faults.append(fault)
    return None
