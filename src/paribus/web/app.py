"""The workbench as an ASGI application: which address shows what."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from subprocess import Popen
from threading import Lock
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from paribus.core import ParibusError, StudyError
from paribus.launch.foreign import ForeignError
from paribus.report.bundle import javascript
from paribus.report.markup import asset as report_asset
from paribus.report.markup import element, join
from paribus.schedulers.queues import Queues
from paribus.studyfile.shipping import site
from paribus.web import hosts, launches, making, metrics, pages, trend
from paribus.web.actions import log_of, resume, resume_page, stop
from paribus.web.found import Found, Kept, Search, find, open_own, parts, read_part, stamp
from paribus.web.gate import Session
from paribus.web.live import Live
from paribus.web.now import Watched
from paribus.web.overview import overview
from paribus.web.pages import Frame
from paribus.web.rendering import compared
from paribus.web.summaries import Summaries, Summary

SEARCH_S = 2.0
"""Seconds after which a request searches the folders for studies again."""

REPORT_S = 2.0
"""Seconds that a page of launches waits for the report, which names the unusual ones."""

TAIL = 1 << 16
"""Bytes of the log that is shown while a study is made ready, from its end."""

MOST_FILE = 1 << 30
"""Bytes of the largest file of a study that can be fetched."""

TYPES = {
    "html": "text/html",
    "json": "application/json",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}


class Workbench:
    """The state behind the pages: the folders, the studies in them, and their newest reports.

    `started`: the processes of studies that were started here, by the name of their directory.
    """

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = tuple(folders)
        self.live = Live()
        self.summaries = Summaries()
        self.queues = Queues()
        self.watched = Watched()
        self.started: dict[str, Popen[bytes]] = {}
        self._nodes = Kept[hosts.Nodes | str]()
        self._reading = Lock()
        self._found = Search({})
        self._searched = 0.0

    def found(self) -> Mapping[str, Found]:
        """Return the studies by id."""
        return self.searched().found

    def searched(self) -> Search:
        """Return the newest search for studies."""
        if not self._searched or time.monotonic() - self._searched > SEARCH_S:
            self._found = find(self.folders)
            self.summaries.forget(self._found.found)
            self._nodes.forget(self._found.found)
            self._searched = time.monotonic()
        return self._found

    async def all(self) -> list[Summary]:
        """Return the summary of every study; schedulers are asked about those in a queue."""
        return await self._with_jobs(await asyncio.to_thread(self.read))

    def read(self) -> list[Summary]:
        """Return the summary of every study by its files; only those of changed ones are read."""
        with self._reading:
            return [self.summaries.of(one) for one in self.found().values()]

    def nodes(self, found: Found) -> hosts.Nodes | str:
        """Return the nodes of a study, or why they cannot be read; kept until its files change."""
        return self._nodes.made(found, stamp(found), hosts.nodes)

    async def progress(self, found: Found) -> dict[str, Any]:
        """Return what a study does now, as `Watched.state` does, with the state of its job."""
        now = await asyncio.to_thread(self.watched.state, found)
        if now.pop("job"):
            [one] = await self._with_jobs([self.summaries.of(found)])
            now["text"] = one.sentence
        return now

    async def _with_jobs(self, every: list[Summary]) -> list[Summary]:
        """Return the summaries, those as lost that wait for a job which no queue has any more."""
        if not any(one.job for one in every):
            return every
        known = [one for one in await asyncio.to_thread(self.queues.newest) if not one.error]
        jobs = {job.ident for one in known for job in one.jobs}
        return [one.lost() if known and one.job and one.job not in jobs else one for one in every]

    def study(self, request: Request) -> Found:
        """Return the study that a request names; raises HTTPException (404)."""
        one = self.found().get(request.path_params["ident"])
        if one is None or not one.path.is_dir():
            self._searched = 0.0
            raise HTTPException(404, "no such study: it may have been moved or removed")
        return one


def make_app(folders: Sequence[Path]) -> Starlette:
    """Return the application that shows the studies in `folders`."""
    bench = Workbench(folders)

    def to(handler: Callable[[Workbench, Request], Any]) -> Callable[[Request], Any]:
        async def endpoint(request: Request) -> Response:
            response: Response = await handler(bench, request)
            return response

        return endpoint

    study = "/studies/{ident:str}"
    app = Starlette(
        routes=[
            Route("/", to(_overview)),
            Route("/static/{name:str}", to(_static)),
            Route("/studies.json", to(_studies_json)),
            Route("/metrics", to(_metrics)),
            Route("/compare/", to(_compare)),
            Route("/trend/", to(_trend)),
            Route("/hosts/", to(_hosts)),
            Route("/hosts/queue", to(_queue)),
            Route("/new/", to(_new)),
            Route("/new/{step:str}", to(_make), methods=["POST"]),
            Route(f"{study}/", to(_study)),
            Route(f"{study}/body", to(_body)),
            Route(f"{study}/events", to(_events)),
            Route(f"{study}/launches/", to(_launches)),
            Route(f"{study}/launches/{{name:str}}/", to(_launch)),
            Route(f"{study}/files/{{name:str}}", to(_file)),
            Route(f"{study}/resume/", to(_resume)),
            Route(f"{study}/act/{{act:str}}", to(_act), methods=["POST"]),
            *([Mount("/docs", StaticFiles(directory=built))] if (built := site()) else []),
        ],
        exception_handlers={HTTPException: _refused, ParibusError: _failed},
    )
    app.state.bench = bench
    return app


def _frame(request: Request, here: str = "-") -> Frame:
    depth = request.url.path.removeprefix(request.scope.get("root_path", "")).count("/") - 1
    return Frame("../" * depth, here, request.scope["session"])


DRAWS = ("vega.js", "page.js")


def _html(
    request: Request, title: str, body: str, here: str = "-", scripts: Sequence[str] = ()
) -> Response:
    return HTMLResponse(pages.page(_frame(request, here), title, body, scripts=scripts))


async def _overview(bench: Workbench, request: Request) -> Response:
    body = overview(await bench.all(), request.query_params, bench.searched().stopped)
    return _html(request, "Studies", body, here="")


async def _study(bench: Workbench, request: Request) -> Response:
    found = bench.study(request)
    report = await bench.live.report(found)
    may_act = not request.scope["session"].read_only
    now = await bench.progress(found)
    body = pages.study(found, report, now, may_act=may_act)
    return _html(request, report.title or found.name, body, scripts=DRAWS if report.body else ())


async def _body(bench: Workbench, request: Request) -> Response:
    """Return the report alone, by which an open page replaces its own."""
    report = await bench.live.report(bench.study(request))
    return HTMLResponse(pages.shown(report))


async def _events(bench: Workbench, request: Request) -> Response:
    session: Session = request.scope["session"]
    found = bench.study(request)
    events = bench.live.events(found, lambda: bench.progress(found), lambda: session.ends)
    headers = {"x-accel-buffering": "no"}
    return StreamingResponse(_stream(events), media_type="text/event-stream", headers=headers)


async def _stream(events: AsyncIterator[tuple[str, dict[str, object]]]) -> AsyncIterator[str]:
    """Yield the text of server-sent events (HTML standard, 9.2)."""
    yield "retry: 3000\n\n"
    async for name, data in events:
        yield ":\n\n" if name == "beat" else f"event: {name}\ndata: {json.dumps(data)}\n\n"


async def _compare(bench: Workbench, request: Request) -> Response:
    found = bench.found()
    chosen = [found[ident] for ident in request.query_params.getlist("of") if ident in found]
    if len(chosen) < 2:
        raise HTTPException(400, "choose two studies of the same question, or more")
    chosen.sort(key=lambda one: bench.summaries.of(one).started or 0.0)
    places = {one.path: f"../studies/{one.ident}/" for one in chosen}
    report = await bench.live.call(compared, places)
    place = f"../trend/?of={chosen[-1].ident}"
    over = element("a", "All studies of this question over time", href=place)
    body = join(pages.shown(report), element("p", over))
    return _html(request, report.title or "Studies side by side", body)


async def _trend(bench: Workbench, request: Request) -> Response:
    chosen = bench.found().get(request.query_params.get("of", ""))
    if chosen is None:
        raise HTTPException(404, "no such study: it may have been moved or removed")
    every = await asyncio.to_thread(bench.read)
    studies = trend.like(bench.summaries.of(chosen), every)
    if not studies:
        raise HTTPException(400, "nothing of this study has been measured yet")
    return _html(request, "Trend", trend.page(studies))


async def _launches(bench: Workbench, request: Request) -> Response:
    found, asked = bench.study(request), request.query_params
    report = await bench.live.newest(found, 0.0 if asked else REPORT_S)
    return _html(request, "Launches", await asyncio.to_thread(launches.page, found, asked, report))


async def _launch(bench: Workbench, request: Request) -> Response:
    found = bench.study(request)
    named = re.fullmatch(r"(\d{1,9})-(\d{1,9})", request.path_params["name"])
    number, attempt = map(int, named.groups()) if named else (-1, 0)
    report = await bench.live.newest(found, REPORT_S)
    body = await asyncio.to_thread(launches.launch_page, found, number, attempt, report)
    if body is None:
        raise HTTPException(404, "no such launch")
    return _html(request, f"Launch {number}", body)


async def _file(bench: Workbench, request: Request) -> Response:
    found, name = bench.study(request), request.path_params["name"]
    if name not in pages.FILES:
        raise HTTPException(404, "no such file")
    try:
        file, size = await asyncio.to_thread(open_own, found.path / name)
    except OSError as error:
        raise HTTPException(404, f"{name}: {error.strerror}") from None
    if size > MOST_FILE:
        file.close()
        raise HTTPException(413, f"{name} has more than 1 GiB: copy it from {found.path}")
    headers = {"content-disposition": f'attachment; filename="{name}"'}
    kind = TYPES[name.rpartition(".")[2]]
    return StreamingResponse(parts(file), media_type=kind, headers=headers)


async def _act(bench: Workbench, request: Request) -> Response:
    found = bench.study(request)
    match request.path_params["act"]:
        case "stop":
            text = await asyncio.to_thread(stop, found)
            bench.watched.stopping(found)
        case "resume":
            text = await asyncio.to_thread(resume, found, request.query_params.get("trust", ""))
        case _:
            raise HTTPException(404, "no such action")
    return JSONResponse({"text": text})


async def _resume(bench: Workbench, request: Request) -> Response:
    _check_may_act(request)
    body = await asyncio.to_thread(resume_page, bench.study(request))
    return _html(request, "Resume", body)


def _check_may_act(request: Request) -> None:
    if request.scope["session"].read_only:
        raise HTTPException(403, "this link may look, not act")


async def _hosts(bench: Workbench, request: Request) -> Response:
    jobs = await asyncio.to_thread(bench.queues.newest)
    measured = [one for one in await bench.all() if one.found.measured]
    read = [(one, await asyncio.to_thread(bench.nodes, one.found)) for one in measured]
    unread = {one.found.name: listed for one, listed in read if isinstance(listed, str)}
    known = [(one, listed) for one, listed in read if not isinstance(listed, str)]
    return _html(request, "Hosts and jobs", hosts.page(jobs, known, unread), here="hosts/")


async def _queue(bench: Workbench, request: Request) -> Response:
    """Return the queues alone, by which an open page replaces its own."""
    jobs = await asyncio.to_thread(bench.queues.newest)
    return HTMLResponse(hosts.queues(jobs, [*bench.found().values()]))


async def _new(bench: Workbench, request: Request) -> Response:
    _check_may_act(request)
    body = await asyncio.to_thread(making.page, bench.folders[0])
    return _html(request, "New study", body, here="new/", scripts=("making.js",))


async def _make(bench: Workbench, request: Request) -> Response:
    """Answer a step of the page on which a study is made."""
    data = await request.body()
    text, name = data.decode("utf-8", "replace"), request.query_params.get("name", "")
    folder = bench.folders[0]
    match request.path_params["step"]:
        case "template":
            return JSONResponse({"text": making.template(text)})
        case "text":
            return JSONResponse({"text": making.study_text(making.form_of(data))})
        case "check":
            return JSONResponse(await asyncio.to_thread(making.checked, folder, text))
        case "estimate":
            estimate = await asyncio.to_thread(making.estimated, folder, name, text)
            return JSONResponse({"text": estimate})
        case "start":
            directory, process = await asyncio.to_thread(making.started, folder, name, text)
            bench.started[directory.name] = process
            return JSONResponse({"name": directory.name})
        case "started":
            return JSONResponse(_started(bench, text))
    raise HTTPException(404, "no such step")


def _started(bench: Workbench, name: str) -> dict[str, object]:
    """Return the id of a study that was started ("" before it has a plan), its log, and its end."""
    process = bench.started.get(name)
    if process is None:
        raise HTTPException(404, "no study of this name was started here")
    ended = process.poll() is not None
    at = bench.folders[0] / name
    found = next(iter(find([at]).found.values()), None) if (at / "plan.json").is_file() else None
    try:
        log = read_part(log_of(at), TAIL, tail=True)[0].decode("utf-8", "replace")
    except OSError:
        log = ""
    return {"id": found.ident if found else "", "log": log, "ended": ended}


async def _studies_json(bench: Workbench, request: Request) -> Response:
    return JSONResponse(metrics.to_json(await bench.all()))


async def _metrics(bench: Workbench, request: Request) -> Response:
    every = await bench.all()
    newest = await asyncio.to_thread(metrics.newest, bench.searched().screens)
    text = metrics.open_metrics(every, newest)
    return Response(text, media_type=metrics.MEDIA_TYPE)


@cache
def asset(name: str) -> tuple[bytes, str] | None:
    """Return the bytes of a static file and their media type, None for an unknown name."""
    kinds = {"css": "text/css", "js": "text/javascript"}
    if name == "vega.js":
        text = javascript()
    elif name in ("page.css", "page.js"):
        text = report_asset(name)
    elif name in ("workbench.css", "workbench.js", "making.js"):
        text = files("paribus.web").joinpath("static", name).read_text(encoding="utf-8")
    else:
        return None
    return text.encode(), kinds[name.rpartition(".")[2]]


async def _static(bench: Workbench, request: Request) -> Response:
    found = await asyncio.to_thread(asset, request.path_params["name"])
    if found is None:
        raise HTTPException(404, "no such file")
    data, kind = found
    return Response(data, media_type=kind, headers={"cache-control": "private, max-age=3600"})


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return _answer(request, error.status_code, str(error.detail))


async def _failed(request: Request, error: Exception) -> Response:
    more: dict[str, object] = {"see": "resume/"} if isinstance(error, ForeignError) else {}
    more |= {"faults": error.faults} if isinstance(error, StudyError) else {}
    return _answer(request, 409, str(error), **more)


def _answer(request: Request, status: int, text: str, **more: object) -> Response:
    """Return an error as a page, or as JSON with `more` to what is no browser's page request."""
    if request.method != "GET" or "text/html" not in request.headers.get("accept", ""):
        return JSONResponse({"error": text, **more}, status)
    shown = pages.page(_frame(request), "Not possible", pages.refusal(text))
    return HTMLResponse(shown, status)
