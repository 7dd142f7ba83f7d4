"""The pages: HTML made here, answers by the verbs in a worker, state in the address. No arithmetic, no files read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode

from fastapi import APIRouter, Request
from starlette.responses import HTMLResponse, JSONResponse, Response

from suanli.errors import SuanliError
from suanli.errors import shown as shown_text
from suanli.version import VERSION
from suanli.web import elsewhere
from suanli.web.answered import Shown, as_file, shown, why_note
from suanli.web.desk import Desk
from suanli.web.errors import BUSY, OURS, RETRY_S, refusal, status_of
from suanli.web.forms import Entry, Field, entries, grouped
from suanli.web.html import ASSETS, asset, problem_html, render
from suanli.web.jobs import DONE, Job, Jobs
from suanli.web.names import names_json
from suanli.web.state import ASKED, LANGUAGES, UNITS, State, example, given, read_state
from suanli.web.words import said

PINS = (
    ("tp", (1, 2, 4, 8, 16)), ("pp", (1, 2, 4, 8, 16, 32)), ("vpp", (1, 2, 3, 4, 6, 8)), ("cp", (1, 2, 4, 8, 16)),
    ("ep", (1, 2, 4, 8, 16, 32, 64)), ("micro_batch", (1, 2, 4, 8)), ("zero", (0, 1, 2, 3)),
    ("recompute", ("none", "selective", "full")), ("sp", ("yes", "no")), ("schedule", ("1f1b", "interleaved")),
)  # fmt: skip
FILES = {  # by suffix: what is said of it, and its type
    "html": ("one file with pictures, for a browser", "text/html; charset=utf-8"),
    "json": ("every number", "application/json"),
    "csv": ("rows for a spreadsheet", "text/csv; charset=utf-8"),
    "md": ("text with tables", "text/markdown; charset=utf-8"),
    "svg": ("the pictures, sharp at any size", "image/svg+xml"),
    "png": ("the pictures", "image/png"),
}
THEMES = ("light", "dark")
FOR_EVER = {"cache-control": "public, max-age=31536000, immutable"}
NEVER = {"cache-control": "no-store"}


def router(desk: Desk, jobs: Jobs) -> APIRouter:
    """Every address of the page: `/`, `/VERB`, what the page's script asks for, and the assets."""
    made = APIRouter(include_in_schema=False)
    _add_shell(made)
    for entry in entries().values():
        _add_verb(made, entry, desk)
        if entry.job:
            _add_jobs(made, entry, desk, jobs)
    return made


# --- what needs no verb -------------------------------------------------------------------------------------------


def _add_shell(made: APIRouter) -> None:
    @made.get("/")
    async def home(request: Request) -> Response:
        """Every page, by what a person wants to know."""
        return HTMLResponse(render("home.html", **_frame(request, _language(request))), headers=NEVER)

    @made.get("/assets/{name}")
    async def assets(name: str) -> Response:
        """Styles and scripts. Addresses change with the content."""
        if name not in ASSETS:
            raise refusal(404, "no_asset", "the page has no such file", where=shown_text(name))
        return Response(asset(name), media_type=f"{ASSETS[name]}; charset=utf-8", headers=FOR_EVER)

    @made.get("/page/names.json")
    async def names() -> Response:
        """Models and devices to choose from."""
        return Response(names_json(), media_type="application/json", headers={"cache-control": "max-age=3600"})


def missing(request: Request) -> Response:
    """What a browser is shown where there is no page."""
    return HTMLResponse(render("missing.html", **_frame(request, _language(request))), 404, headers=NEVER)


def _language(request: Request) -> str:
    asked = request.query_params.get("lang", LANGUAGES[0])
    return asked if asked in LANGUAGES else LANGUAGES[0]


def _frame(request: Request, lang: str, entry: Entry | None = None, state: State | None = None) -> dict[str, Any]:
    """What every page has: menu, language, theme."""
    units = state.units if state else UNITS[0]
    usual = {"lang": LANGUAGES[0], "units": UNITS[0]}
    keep = {name: value for name, value in {"lang": lang, "units": units}.items() if usual[name] != value}
    other = LANGUAGES[1 - LANGUAGES.index(lang)]
    theme = request.cookies.get("theme", "")
    return {
        "menu": grouped(), "entry": entry, "lang": lang, "units": units, "keep": urlencode(keep), "version": VERSION,
        "theme": theme if theme in THEMES else "",
        "other_lang": state.query(lang=other) if state else urlencode({"lang": other}),
    }  # fmt: skip


# --- a verb -------------------------------------------------------------------------------------------------------


def _add_verb(made: APIRouter, entry: Entry, desk: Desk) -> None:
    verb = entry.verb

    @made.get(f"/{verb}")
    async def page(request: Request) -> Response:
        """Form and room for the answer, which the script asks for."""
        try:
            state = read_state(entry, request.query_params.multi_items())
        except SuanliError:  # the script shows it: it asks with the same address
            state = State(verb=verb, fields=example(entry), lang=_language(request))
        frame = _frame(request, state.lang, entry, state)
        return HTMLResponse(render("verb.html", **frame, **_form(entry, state)), headers=NEVER)

    @made.get(f"/page/{verb}/result")
    async def result(request: Request) -> Response:
        """The answer as HTML; faults as HTML too, each with its field."""
        return await _answer(entry, request, desk)

    @made.get(f"/page/{verb}/why")
    async def why(request: Request) -> Response:
        """Where a number comes from, for the dialog."""
        return await _why(entry, request, desk)

    @made.get(f"/page/{verb}/report.{{suffix}}")
    async def report(suffix: str, request: Request) -> Response:
        """The answer as a file."""
        return await _report(entry, suffix, request, desk)


def _form(entry: Entry, state: State) -> dict[str, Any]:
    more = [each for each in entry.fields if each.more]
    return {
        "state": state, "parts": _parts(entry, state), "more": more, "pins": PINS, "titles": _titles(entry, state.lang),
        "more_open": any(each.name in state.fields for each in more),
        "example": urlencode([(name, value) for name, values in example(entry).items() for value in values]),
    }  # fmt: skip


def _titles(entry: Entry, lang: str) -> dict[str, str]:
    """Lessons by their topic."""
    if entry.verb != "learn":
        return {}
    from suanli.learn import contents  # noqa: PLC0415  with its page alone

    return {each.topic: each.title for each in contents(lang).topics}


def _parts(entry: Entry, state: State) -> list[dict[str, Any]]:
    """Fields in their order; those of which one is given are one part, with the alternative that the state has."""
    parts: list[dict[str, Any]] = []
    for each in entry.fields:
        group = each.either[0] if each.either else ""
        if each.more:
            continue
        if not parts or parts[-1]["group"] != group:
            parts.append({"group": group, "fields": []})
        parts[-1]["fields"].append(each)
    for part in parts:
        if part["group"]:
            part.update(_alternatives(part["fields"], state))
    return parts


def _alternatives(fields: list[Field], state: State) -> dict[str, Any]:
    names = list(dict.fromkeys(each.either[1] for each in fields if each.either))
    used = next((each.either[1] for each in fields if each.either and each.name in state.fields), names[0])
    return {"names": names, "chosen": used}


# --- answers ------------------------------------------------------------------------------------------------------


def _read(entry: Entry, request: Request) -> tuple[State, dict[str, Any]]:
    pairs = [(name, value) for name, value in request.query_params.multi_items() if name not in ASKED]
    state = read_state(entry, pairs)
    return state, given(entry, state)


def waits_for_files(entry: Entry, state: State) -> bool:
    """Whether a page that begins with files has not got all of them yet: it says which, and calls nothing a fault."""
    return bool(entry.start) and not all(each.name in state.fields for each in entry.fields if each.kind == "file")


async def _answer(entry: Entry, request: Request, desk: Desk) -> Response:
    try:
        state, asked = _read(entry, request)
        if waits_for_files(entry, state):
            return HTMLResponse(render("start.html", state.lang, text=entry.start), headers=NEVER)
        found = await desk.ask(request, shown, entry.verb, asked, extra=(state.lang, state.units))
    except SuanliError as problem:
        return _problem(entry, problem, request)
    return HTMLResponse(_shown(entry, state, asked, found, request), headers=NEVER)


def _problem(entry: Entry, problem: SuanliError, request: Request) -> Response:
    """Faults as HTML: 200 where what was typed is wrong, for the page is there to say so; else the status it has."""
    status, headers = _status(problem)
    return HTMLResponse(problem_html(entry, problem, _language(request)), status, headers)


def _status(problem: SuanliError) -> tuple[int, dict[str, str]]:
    status = status_of(problem)
    wait = {"retry-after": RETRY_S} if status == BUSY else {}
    return (status if status >= OURS else 200), {**NEVER, **wait}


def _shown(entry: Entry, state: State, asked: Mapping[str, Any], found: Shown, request: Request) -> str:
    base = str(request.base_url).rstrip("/")
    texts = (
        ("In a terminal", elsewhere.command(entry, asked)),
        ("In Python", elsewhere.python(entry, asked)),
        ("From another program", elsewhere.curl(entry, asked, base)),
    )
    suffixes = [(suffix, words) for suffix, (words, _) in FILES.items()]
    return render(
        "answer.html", state.lang, verb=entry.verb, headline=found.headline, body=found.html, query=state.query(),
        suffixes=suffixes, elsewhere=texts,
    )  # fmt: skip


async def _why(entry: Entry, request: Request, desk: Desk) -> Response:
    lang = _language(request)
    try:
        state, asked = _read(entry, request)
        key = tuple(request.query_params.get(name, "") for name in ASKED)
        note = await desk.ask(request, why_note, entry.verb, asked, extra=(state.lang, key))
    except SuanliError as problem:
        return _problem(entry, problem, request)
    text = str(note) or render("unknown.html", lang, label=request.query_params.get("label", ""))
    return HTMLResponse(text, headers=NEVER)


async def _report(entry: Entry, suffix: str, request: Request, desk: Desk) -> Response:
    if suffix not in FILES:
        raise refusal(422, "unknown_format", "the suffix names no file of a page", where="the address",
                      got=shown_text(suffix), expected="one of " + ", ".join(FILES))  # fmt: skip
    state, asked = _read(entry, request)
    content = await desk.ask(request, as_file, entry.verb, asked, extra=(state.lang, state.units, suffix))
    name = f'attachment; filename="suanli-{entry.verb}.{suffix}"'
    return Response(content, media_type=FILES[suffix][1], headers={**NEVER, "content-disposition": name})


# --- long work ----------------------------------------------------------------------------------------------------


def _add_jobs(made: APIRouter, entry: Entry, desk: Desk, jobs: Jobs) -> None:
    verb = entry.verb

    @made.post(f"/page/{verb}/job")
    async def begin(request: Request) -> Response:
        """Start; the id, or what is wrong."""
        try:
            state, asked = _read(entry, request)
            if waits_for_files(entry, state):
                return JSONResponse({"html": render("start.html", state.lang, text=entry.start)})
            job = jobs.start(desk.question(shown, verb, asked, extra=(state.lang, state.units)))
        except SuanliError as problem:
            status, headers = _status(problem)
            return JSONResponse({"html": problem_html(entry, problem, _language(request))}, status, headers)
        return JSONResponse({"id": job.id})

    @made.get(f"/page/{verb}/job/{{id_}}")
    async def told(id_: str, request: Request) -> Response:
        """How far it is; the answer when it is done; `gone` where it is known no longer."""
        job = _job(jobs, verb, id_)
        said_ = {"state": "gone"} if job is None else _told(entry, job, request)
        return JSONResponse(said_, headers=NEVER)

    @made.delete(f"/page/{verb}/job/{{id_}}")
    async def cancel(id_: str) -> Response:
        """Stop."""
        job = _job(jobs, verb, id_)
        return JSONResponse({"state": "gone" if job is None else (await jobs.cancel(job.id)).state}, headers=NEVER)


def _job(jobs: Jobs, verb: str, id_: str) -> Job | None:
    """The job where it is one of this page: not one of another page, nor of /api, whose answers are other ones."""
    try:
        found = jobs.find(id_)
    except SuanliError:
        return None
    return found if found.verb == verb and (found.state != DONE or isinstance(found.answer, Shown)) else None


def _told(entry: Entry, job: Job, request: Request) -> dict[str, Any]:
    state, asked = _read(entry, request)
    if job.error is not None:
        return {"state": "done", "html": problem_html(entry, job.error, state.lang)}
    if job.state == DONE:
        return {"state": "done", "html": _shown(entry, state, asked, job.answer, request)}
    part = job.done / job.total if job.total else None
    return {"state": job.state, "part": part, "what": said(job.what, state.lang)}
