"""`paribus serve`: in a real browser, and against those who have no business there."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from browser import PROGRAM
from paribus.cli import dispatch, outputs
from paribus.judge.conclude import judged
from paribus.plan import frozen as plans
from paribus.studyfile.load import load_study
from paribus.web.found import MOST_ENTRIES, find
from paribus.web.gate import MOST_SESSIONS, SESSION_S, Doors, Gate, Header
from paribus.web.live import Live
from paribus.web.making import checked, study_text
from paribus.web.summaries import summary
from serving import Served, served, visiting
from studies import paribus, write_study
from study_directories import write_directory

needs_browser = pytest.mark.skipif(PROGRAM is None, reason="no Chromium on this machine")

SCRIPT = "<script>document.title = 'taken'</script>"
STUDY = """\
question = "Is one as fast as the other?"
factor = "nothing"
[arms.a]
[arms.b]
[[benchmarks]]
name = "command"
argv = ["sleep", "0.5"]
[plan]
blocks = 12
seed = 1
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of three studies, of which one has hostile names."""
    here = tmp_path_factory.mktemp("studies")
    for name, effect, started in (("may", 1.2, 1.7e9), ("june", 1.1, 1.703e9)):
        write_directory(
            here / name,
            {"host": 1.0, "bridged": effect},
            seed=1,
            blocks=18,
            started=started,
            facts={key: {"cpu.governor": "powersave"} for key in ("host", "bridged")},
        )
        outputs.write_files(judged(here / name), here / name)
    hostile = write_directory(here / "hostile", {"a": 1.0, f"{SCRIPT}": 1.1}, seed=3)
    outputs.write_files(judged(hostile), hostile)
    (hostile / "logs").mkdir()
    (hostile / "logs" / "0001-0-a-latency.out").write_text(f"{SCRIPT}\n\x1b[2J8 1.0\n")
    (hostile / "logs" / "0001-0-a-latency.err").symlink_to("/etc/passwd")
    return here


@pytest.fixture(scope="module")
def server(folder: Path):
    with served(folder) as one:
        one.cookie = one.enter()
        yield one


def signed(server: Served, path: str, **headers: str):
    return server.ask(path, Cookie=server.cookie, **headers)


def csrf(server: Served) -> str:
    found = re.search(rb'name="csrf" content="([^"]+)"', signed(server, "/").data)
    return found[1].decode()


# --- who may come in


def test_a_link_signs_in_once(server: Served) -> None:
    link = server.link()
    server.enter(link)
    again = server.ask(f"/?{urlsplit(link).query}")
    assert again.status == 403
    assert b"may" not in again.data
    assert "set-cookie" not in again.headers


@pytest.mark.parametrize("path", ["/", "/studies.json", "/metrics", "/static/page.css", "/new/"])
def test_a_stranger_sees_nothing(server: Served, path: str) -> None:
    for headers in ({}, {"Cookie": f"paribus-session-{server.port}=guess"}):
        answer = server.ask(path, **headers)
        assert answer.status == 403
        assert b"Sign in" in answer.data


def test_cookies_of_other_applications_on_this_host_do_not_matter(server: Served) -> None:
    ours = server.cookie
    name = ours.partition("=")[0]
    for others in (
        f'prefs={{"theme": "dark"}}; {ours}',
        f'{ours};a="b;c"; =; ;;\xff=\xe9; $Version=1',
        f"{name}-2=x; x{name}=y; {ours}",
        f"{name}=guess; {ours}",  # a page of another port can set ours, too
    ):
        assert server.ask("/", Cookie=others.encode("latin-1")).status == 200, others
    assert server.ask("/", Cookie=f"prefs={{}}; {name}").status == 403


def test_another_host_name_is_refused(server: Served) -> None:
    answer = server.ask("/", Cookie=server.cookie, Host="evil.example")
    assert answer.status == 421


def test_another_site_cannot_act(server: Served) -> None:
    ident = server.ident("may")
    token = csrf(server)
    path = f"/studies/{ident}/act/stop"

    def act(**headers: str) -> Any:
        return server.ask(path, "POST", b"", Cookie=server.cookie, **headers)

    strangers = ("http://evil.example", "null", "", "file://", "http://[")
    refused = [
        act(),
        act(X_Paribus_CSRF="guess"),
        act(X_Paribus_CSRF=token, Sec_Fetch_Site="cross-site"),
        *(act(X_Paribus_CSRF=token, Origin=origin) for origin in strangers),
        act(X_Paribus_CSRF=token, Origin=f"http://127.0.0.1:{server.port}.evil"),
    ]
    assert [one.status for one in refused] == [403] * 9
    taken = act(X_Paribus_CSRF=token, Origin=f"http://127.0.0.1:{server.port}")
    assert taken.status == 409  # it reached the study, which does not run
    assert b"no study runs there" in taken.data


def test_no_path_leads_out_of_a_study(server: Served) -> None:
    ident = server.ident("hostile")
    for path in (
        "/studies/../../etc/passwd",
        f"/studies/{ident}/files/../../../../etc/passwd",
        f"/studies/{ident}/files/..%2f..%2fetc%2fpasswd",
        f"/studies/{ident}/files/launches.db",
        f"/studies/{ident}/launches/..%2f..%2f/",
        "/static/../app.py",
        "/studies/%2e%2e/",
    ):
        answer = signed(server, path)
        assert answer.status == 404, path
        assert b"root:" not in answer.data


def test_a_link_in_a_study_is_not_followed(server: Served) -> None:
    answer = signed(server, f"/studies/{server.ident('hostile')}/launches/1-0/")
    assert b"it is a link, which is not followed" in answer.data
    assert b"root:" not in answer.data


def test_a_large_request_is_refused(server: Served) -> None:
    answer = server.ask(
        "/new/check", "POST", b"x" * 300_000, Cookie=server.cookie, X_Paribus_CSRF=csrf(server)
    )
    assert answer.status == 413


def gated(doors: Doors) -> Callable[[str, str], int]:
    """Return a function that asks a gate for a path with a cookie, and returns the status.

    In this process: on a busy machine no client of a server makes 100 requests in a second.
    """

    async def page(scope: object, receive: object, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    gate = Gate(page, doors, hosts=None, port=1, prefix="/", entered=lambda: None, admit=print)

    def asked(path: str, cookie: str) -> int:
        place, _, query = path.partition("?")
        headers = [(b"cookie", f"paribus-session-1={cookie}".encode())]
        scope = {"type": "http", "method": "GET", "path": place, "query_string": query.encode()}
        seen: list[int] = []

        async def send(message: Any) -> None:
            seen.append(message.get("status", 0))

        client = ("127.0.0.1", 9)
        asyncio.run(gate({**scope, "headers": headers, "client": client}, None, send))
        return seen[0]

    return asked


def test_too_many_requests_are_refused_for_a_while() -> None:
    doors = Doors()
    asked, cookie = gated(doors), str(doors.enter(doors.once))
    assert {asked("/", cookie) for _ in range(800)} == {200, 429}
    time.sleep(1)
    assert asked("/", cookie) == 200


def test_neighbours_who_flood_lock_nobody_out() -> None:
    """Strangers on this machine have one address in common with its user."""
    doors = Doors()
    asked = gated(doors)
    assert {asked("/", "guess") for _ in range(800)} == {403, 429}
    assert {asked("/?token=guess", "") for _ in range(50)} <= {403, 429}
    assert asked(f"/?token={doors.once}", "") == 303
    assert asked("/", next(iter(doors.sessions))) == 200


@pytest.mark.timeout(90)  # a stream that does not end would be read for ever
def test_a_shared_link_ends_for_open_pages_too(folder: Path) -> None:
    with served(folder, "--share", "3 s") as one:
        one.cookie = one.enter(one.looking.get(timeout=20))
        path = f"/studies/{one.ident('may')}/events"
        begun = time.monotonic()
        text = signed(one, path).data.decode()  # until the server ends the stream
        assert "event: progress" in text
        assert time.monotonic() - begun < 10
        assert signed(one, path).status == 403


def test_a_shared_link_may_look_only(folder: Path) -> None:
    with served(folder, "--share", "1 h") as one:
        link = one.looking.get(timeout=20)
        cookie = one.enter(link)
        assert one.enter(link)  # as often as it is opened
        one.cookie = cookie
        page = signed(one, "/")
        assert b"New study" not in page.data
        assert signed(one, "/new/").status == 403
        answer = one.ask("/new/check", "POST", b"", Cookie=cookie, X_Paribus_CSRF=csrf(one))
        assert (answer.status, answer.data) == (403, b"refused: this link may look, not act")


def test_protective_headers_are_on_every_answer(server: Served) -> None:
    for path in ("/", "/nowhere", "/metrics"):
        answer = signed(server, path)
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "script-src 'self';" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
    cookie = server.ask(f"/?{urlsplit(server.link()).query}").headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    lasts_s = int(re.search(r"Max-Age=(\d+)", cookie)[1])
    assert lasts_s > 50 * SESSION_S, "each request prolongs a session, and none the cookie"


def test_a_socket_is_its_users_own(folder: Path, tmp_path: Path) -> None:
    at = tmp_path / "web.sock"
    with served(folder, "--socket", str(at), "--sign-in", "socket"):
        deadline = time.monotonic() + 20
        while not at.exists():
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert at.stat().st_mode & 0o077 == 0
        with socket.socket(socket.AF_UNIX) as asking:
            asking.connect(str(at))
            asking.sendall(b"GET / HTTP/1.0\r\nHost: hub\r\n\r\n")
            answer = b"".join(iter(lambda: asking.recv(65536), b""))
        assert b"200 OK" in answer
        assert b"3 studies" in answer
    assert not at.exists()


def test_a_portals_token_signs_in_as_often_as_wanted(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    token = "0123456789abcdef" * 2
    words = ("--port", str(port), "--token-env", "PORTAL_TOKEN", "--prefix", "/rnode/n1/1/")
    with served(folder, *words, env={**os.environ, "PORTAL_TOKEN": token}) as one:
        deadline = time.monotonic() + 20
        while not one.lines:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert token not in "".join(one.lines)
        for _ in range(2):
            entered = one.ask(f"/?token={token}")
            assert entered.status == 303
            assert "Path=/rnode/n1/1/" in entered.headers["set-cookie"]
        cookie = entered.headers["set-cookie"].partition(";")[0]
        assert b"paribus_study_launches" in one.ask("/metrics", Cookie=cookie).data
        assert one.ask("/metrics").status == 403
    assert "has fewer than 16 characters" in refusal(folder, "--token-env", "NOT_SET")


def refusal(folder: Path, *words: str | Path) -> str:
    return paribus("serve", *words, cwd=folder, timeout_s=60, code=2).stderr


def test_what_would_let_others_in_is_refused(folder: Path, tmp_path: Path) -> None:
    assert "any user of this machine" in refusal(folder, "--sign-in", "socket")
    assert "none of link, socket" in refusal(folder, "--socket", tmp_path / "s", "--sign-in", "pam")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    assert "only you can write to" in refusal(folder, "--socket", open_to_all / "s")
    if os.geteuid() == 0:
        assert "root must not serve" in refusal(
            folder, "--socket", tmp_path / "s", "--sign-in", "X-User=ada"
        )


def test_a_port_in_use_is_named(folder: Path, server: Served) -> None:
    said = refusal(folder, "--port", str(server.port))
    assert f"--port {server.port}: cannot listen there: Address already in use" in said


# --- what is shown


@needs_browser
def test_a_visit(server: Served) -> None:
    from playwright.sync_api import expect  # it waits for the page that a click leads to

    with visiting() as page:
        page.goto(server.link())
        assert "token" not in page.url
        page.get_by_role("link", name="Which?").first.click()
        page.wait_for_selector("html[data-drawn]")
        assert page.locator("#report svg").count() > 2
        assert "bridged is slower" in page.locator("h1").inner_text()
        assert "36 launches in" in page.locator("main").inner_text()
        page.locator('a[href="launches/"]').click()
        expect(page.locator("tbody tr")).to_have_count(38)
        said = page.locator("caption").inner_text()
        assert said == "38 of 38 launches: 2 of the warm-up, 0 void"
        page.locator("tbody th a").first.click()
        expect(
            page.get_by_role("heading", name=re.compile("latency, (host|bridged), block 18"))
        ).to_be_visible()
        page.get_by_role("link", name="Studies").click()
        page.get_by_role("link", name="Hosts and jobs").click()
        page.get_by_text("EPYC").click()
        expect(page.get_by_text("governor: powersave (poor)")).to_have_count(1)
        expect(page.get_by_text("as host, bridged")).to_have_count(2)
        assert page.complaints == []


@needs_browser
def test_texts_of_others_are_text(server: Served) -> None:
    ident = server.ident("hostile")
    with visiting() as page:
        page.goto(server.link())
        square = page.locator("tr", has_text="hostile").locator(".square")
        assert f"latency {SCRIPT}: slower" in square.get_attribute("title")
        for path in (f"studies/{ident}/", f"studies/{ident}/launches/", "hosts/"):
            page.goto(f"http://127.0.0.1:{server.port}/{path}")
            page.evaluate("document.querySelectorAll('details').forEach((d) => { d.open = true; })")
            assert SCRIPT in page.locator("main").inner_text()
            assert page.title() != "taken"
        page.goto(f"http://127.0.0.1:{server.port}/studies/{ident}/launches/1-0/")
        shown = page.locator("pre").last.inner_text()
        assert shown.splitlines() == [SCRIPT, r"\x1b[2J8 1.0"]
        assert page.complaints == []


@needs_browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_are_accessible_and_fit_a_telephone(server: Served, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    ident, other = server.ident("may"), server.ident("june")
    width = {"width": 400, "height": 800}
    with visiting(viewport=width, color_scheme=scheme, bypass_csp=True) as page:
        page.goto(f"http://127.0.0.1:{server.port}/")
        assert Axe().run(page).response["violations"] == [], "before signing in"
        page.goto(server.link())
        study = f"studies/{ident}/"
        launches = f"{study}launches/"
        several = (f"compare/?of={ident}&of={other}", f"trend/?of={ident}", "hosts/", "new/")
        errors = (f"{study}resume/", "studies/none/")
        for path in ("", study, launches, f"{launches}5-0/", *several, *errors):
            page.goto(f"http://127.0.0.1:{server.port}/{path}")
            if path == study:
                page.wait_for_selector("html[data-drawn]")
            assert page.evaluate("document.documentElement.scrollWidth") <= 400, path
            found = Axe().run(page).response["violations"]
            assert [(f["id"], f["nodes"][0]["html"]) for f in found] == [], path


@needs_browser
def test_resume_shows_a_page_of_what_it_would_execute_before_it_does(tmp_path: Path) -> None:
    """Of a study that somebody else began: two clicks, and the texts of its author in between."""
    ran, directory = tmp_path / "ran", tmp_path / "unpacked" / "theirs.study"
    directory.mkdir(parents=True)
    arms = f'[arms.a]\nbefore = "touch {ran}"\nafter = "true"\n[arms.b]\n'
    study = write_study(directory, arms=arms, factor="x", plan="blocks = 8")
    plans.write_plan(plans.freeze(load_study(study), plans.software()), directory)
    with served(directory.parent) as one, visiting() as page:
        page.goto(one.link())
        page.get_by_role("link", name="Which?").click()
        page.get_by_role("button", name="Resume").click()
        page.wait_for_url("**/resume/")
        page.get_by_role("heading", name="Resume this study?").wait_for()
        assert "not known as begun by you" in page.locator("main").inner_text()
        rows = page.locator("tbody tr").all()
        shown = dict(row.locator("td, th").all_inner_texts() for row in rows)
        assert shown["arms[0].before"] == f"touch {ran}"
        assert shown["benchmarks[0].parameters.script"] == "echo 2.50013"
        assert shown["benchmarks[0].file"] == str(directory / "steady.py")
        time.sleep(0.5)
        assert not ran.exists()
        page.get_by_role("button", name="Execute this and resume").click()
        page.wait_for_url("**/studies/*/", timeout=60_000)
        page.get_by_text(re.compile(r"\(exit code \d+\)")).wait_for(timeout=60_000)
        assert ran.exists()
        # The browser itself says that the first answer was 409: that is what led to the page.
        assert [one for one in page.complaints if "409" not in one] == []


@needs_browser
def test_a_study_is_made_watched_stopped_and_resumed(tmp_path: Path) -> None:
    """Its launches last until it has been watched, however slowly its report is made."""
    watched = tmp_path / "watched"
    text = STUDY.replace('"sleep", "0.5"', f'"sh", "-c", "test -e {watched} || sleep 3"')
    with served(tmp_path) as one, visiting() as page:
        page.goto(one.link())
        assert "No study yet" in page.locator("h1").inner_text()
        page.get_by_role("link", name="New study").click()
        page.wait_for_selector("#start:enabled")
        page.locator("#factor").select_option("mpi")
        page.wait_for_function("() => document.getElementById('text').value.includes('mpich')")
        page.locator("#factor").select_option("container")
        page.wait_for_function("() => document.getElementById('text').value.includes('podman')")
        assert "On this machine: namespace" in page.locator("#here").inner_text()
        page.get_by_label("Study file").fill(text.replace("factor", "facter"))
        said = page.get_by_text("did you mean 'factor'?")
        said.wait_for()
        assert page.get_by_role("button", name="Start").is_disabled()
        page.get_by_label("Study file").fill(text)
        page.get_by_label("Name").last.fill("mine")
        page.wait_for_selector("#start:enabled")
        page.get_by_role("button", name="Start").click()
        page.wait_for_url("**/studies/*/", timeout=60_000)
        page.wait_for_selector(".live[data-running='true']")
        page.wait_for_selector("html[data-version]", timeout=60_000)
        cookies = [f"{of['name']}={of['value']}" for of in page.context.cookies()]
        reported = one.ask("/metrics", Cookie="; ".join(cookies)).data.decode()
        assert 'paribus_study_running{study="mine.study"} 1' in reported
        assert 'paribus_study_planned{study="mine.study"} 26' in reported
        assert 'paribus_study_failures{study="mine.study"} 0' in reported
        page.get_by_role("button", name="Stop", exact=True).click()
        page.get_by_role("button", name="Stop the study").click()
        page.get_by_text("interrupted (exit code 130)").wait_for(timeout=60_000)
        watched.touch()
        page.get_by_role("button", name="Resume").click()
        page.get_by_text("ended (exit code 0)").wait_for(timeout=60_000)
        page.reload()
        assert re.search(r"\d\d launches in", page.locator("main").inner_text())
        page.get_by_role("link", name="Studies").click()
        assert page.get_by_text("ended").is_visible()
        assert page.complaints == []
    assert (tmp_path / "mine.toml").read_text() == text


def test_a_search_that_stops_says_where_and_shows_what_it_knows(tmp_path: Path) -> None:
    """A folder of many files keeps no study beside it from the list, and is named."""
    many = tmp_path / "aaa"
    many.mkdir()
    for number in range(MOST_ENTRIES + 1000):
        os.mknod(many / f"file-{number}")
    with served(many) as one:
        one.cookie = one.enter()
        page = signed(one, "/").data.decode()
        assert "No study yet" not in page
        assert f"The search for studies stopped after 50,000 files and folders, in {many}" in page
        assert "Give the folders that hold studies: <code>paribus serve DIR ...</code>" in page
    (many / "below").mkdir()
    write_directory(many / "below" / "hidden", {"a": 1.0, "b": 1.1}, blocks=3)
    write_directory(tmp_path / "zzz", {"a": 1.0, "b": 1.1}, blocks=3)
    search = find([tmp_path])
    assert search.stopped == many
    assert "zzz" in {found.name for found in search.found.values()}
    shutil.rmtree(many)
    assert find([tmp_path]).stopped is None


@pytest.fixture(scope="module")
def odd(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    """Yield a server of studies damaged, newer, large, and gone since; and the id of the last."""
    here = tmp_path_factory.mktemp("odd")
    (here / "broken").mkdir()
    (here / "broken" / "verdict.json").write_text("{")
    shutil.copytree(folder / "may", here / "new")
    with closing(sqlite3.connect(here / "new" / "launches.db")) as database:
        database.execute("PRAGMA user_version = 99")
    large = write_directory(here / "large", {"a": 1.0, "b": 1.1})
    (large / "logs").mkdir()
    with (large / "logs" / "0001-0-a-latency.out").open("wb") as file:
        file.seek(2 << 30)
        file.write(b"\nthe end\n")
    gone = write_directory(here / "gone", {"a": 1.0, "b": 1.1})
    with served(here) as one:
        one.cookie = one.enter()
        vanished = one.ident("gone")
        gone.rename(here / ".hidden")
        yield one, vanished


def test_studies_that_cannot_be_read_are_named(odd: tuple[Served, str]) -> None:
    server, vanished = odd
    page = signed(server, "/")
    assert page.status == signed(server, "/hosts/").status == 200
    assert b"cannot be read" in page.data
    for path in ("", "launches/"):
        newer = signed(server, f"/studies/{server.ident('new')}/{path}", Accept="text/html")
        assert b"has schema version 99; this Paribus reads version" in newer.data, path
    answer = signed(server, f"/studies/{vanished}/", Accept="text/html")
    assert answer.status == 404
    assert b"no such study" in answer.data


def test_a_huge_output_is_shown_from_its_end(odd: tuple[Served, str]) -> None:
    server, _ = odd
    answer = signed(server, f"/studies/{server.ident('large')}/launches/1-0/")
    assert answer.status == 200
    assert b"the end" in answer.data
    assert len(answer.data) < 3_000_000


def test_the_list_counts_as_the_report_does(server: Served) -> None:
    assert b"<small>36 launches</small>" in signed(server, "/?text=may").data
    table = json.loads(signed(server, "/studies.json").data)
    assert table["schema"] == "paribus.studies/1"
    (may,) = (one for one in table["studies"] if one["name"] == "may")
    assert (may["launches"], may["counted"]) == (38, 36)


def test_the_place_in_a_list_is_a_number_or_nothing(server: Served) -> None:
    path = f"/studies/{server.ident('may')}/launches/"
    for before in ("9", "%C2%B2", "9" * 5000, "-1", "x"):
        assert signed(server, f"{path}?rows={before}").status == 200, before


def test_figures_for_other_programs(server: Served) -> None:
    text = signed(server, "/metrics").data.decode()
    assert text.endswith("# EOF\n")
    assert 'paribus_study_launches{study="may"} 38' in text
    low = re.search(
        r'paribus_ratio_low\{study="may",benchmark="latency",arm="bridged"\} (\S+)', text
    )
    assert 1.1 < float(low[1]) < 1.2
    table = signed(server, f"/studies/{server.ident('may')}/files/values.parquet")
    assert table.headers["content-type"] == "application/vnd.apache.parquet"
    assert table.data[:4] == table.data[-4:] == b"PAR1"


def test_the_newest_screen_of_a_fleet_is_reported_to_other_programs(tmp_path: Path) -> None:
    for name, began, word in (("old", 1.0, "slow"), ("new", 2.0, "no sign"), ("bad", 3.0, "")):
        folder = tmp_path / "fleets" / name
        folder.mkdir(parents=True)
        (folder / "screen.json").write_text("{}")
        evidence = [{"benchmark": "ep", "word": word, "ratio": 0.8}]
        table = {
            "hosts": "n[1-2]",
            "began": began,
            "benchmarks": [{"name": "ep"}],
            "nodes": [{"node": "n1", "word": word, "evidence": evidence}],
            "links": [{"between": ["n1", 'n"2'], "word": "slow", "evidence": evidence}],
        }
        text = json.dumps(table) if word else '{"nodes": 7'
        (folder / "answer.json").write_text(text)
    (tmp_path / "fleets" / "link").mkdir()
    (tmp_path / "fleets" / "link" / "screen.json").write_text("{}")
    (tmp_path / "fleets" / "link" / "answer.json").symlink_to(tmp_path / "fleets/old/answer.json")
    with served(tmp_path) as one:
        one.cookie = one.enter()
        text = signed(one, "/metrics").data.decode()
        assert 'paribus_screen_began{screen="new",hosts="n[1-2]",benchmarks="ep"} 2.0' in text
        assert (
            'paribus_screen_units{screen="new",hosts="n[1-2]",benchmarks="ep",answer="no sign"} 1'
            in text
        )
        assert text.count("paribus_screen_began{") == 1
        assert "paribus_screen_slow{" not in text
        shutil.rmtree(tmp_path / "fleets" / "new")
    with served(tmp_path) as one:
        one.cookie = one.enter()
        text = signed(one, "/metrics").data.decode()
        assert 'answer="slow"} 1' in text
        assert 'unit="n1",benchmark="ep"} 0.8' in text
        assert 'unit="n1 - n\\"2",benchmark="ep"} 0.8' in text


def test_a_list_of_launches_waits_for_no_report(tmp_path: Path) -> None:
    directory = write_directory(tmp_path / "s", {"a": 1.0, "b": 1.1})

    class Busy(Live):
        async def call(self, function: object, *values: object):
            await asyncio.Event().wait()

    async def asked() -> object:
        return await Busy().newest(next(iter(find([directory]).found.values())), 0.05)

    assert asyncio.run(asyncio.wait_for(asked(), 10)) is None


def test_a_server_ends_while_a_report_is_made(tmp_path: Path) -> None:
    write_directory(tmp_path / "s", {"a": 1.0, "b": 1.1}, blocks=700, most=700)
    with served(tmp_path) as one:
        one.cookie = one.enter()
        page = signed(one, f"/studies/{one.ident('s')}/launches/?rows=9")
        assert b"The report is being made" in page.data
        begun = time.monotonic()
    assert time.monotonic() - begun < 4


def test_sessions_end() -> None:
    now = [0.0]
    doors = Doors(clock=lambda: now[0])
    cookie = doors.enter(doors.once)
    assert doors.enter("guess") is None
    shared = doors.enter(doors.share(3600))
    now[0] = 3599
    assert doors.session(shared, {}).read_only
    now[0] = 3601
    assert doors.session(shared, {}) is None
    assert not doors.session(cookie, {}).read_only  # and this request prolongs it
    now[0] += SESSION_S - 1
    assert doors.session(cookie, {})
    now[0] += SESSION_S + 1
    assert doors.session(cookie, {}) is None


def test_a_link_that_is_opened_without_end_keeps_nobody_out() -> None:
    doors = Doors()
    cookie, shared = doors.enter(doors.once), doors.share(3600)
    assert all(doors.enter(shared) for _ in range(MOST_SESSIONS + 10))
    assert len(doors.sessions) == MOST_SESSIONS
    assert doors.session(cookie, {})
    assert doors.enter(doors.once)
    lasting = doors.share(30 * SESSION_S)  # its sessions end after those of the user
    assert all(doors.enter(lasting) for _ in range(MOST_SESSIONS + 10))
    assert doors.session(cookie, {})


def test_a_study_that_is_refused_before_its_first_launch_did_not_begin(tmp_path: Path) -> None:
    (tmp_path / "study.toml").write_text(STUDY.replace('"nothing"', '"env"'))
    paribus("run", "study.toml", "--out", "out", cwd=tmp_path, code=3)
    [found] = find([tmp_path]).found.values()
    refused = summary(found)
    assert refused.state == "lost"
    assert "not even the factor (env); make the arms differ" in refused.sentence


@pytest.mark.parametrize("code", [1, 2, 3, 4, 130, None])
def test_a_study_that_was_killed_and_is_refused_when_it_goes_on_is_interrupted(
    tmp_path: Path, code: int | None
) -> None:
    """Its launches are stored, and no verdict was written."""
    out = write_directory(tmp_path / "out", {"a": 1.0, "b": 1.1}, seed=1)
    (out / "verdict.json").unlink(missing_ok=True)
    table = {"text": "why", "code": code, "job": "", "effects": [], "planned": 9, "failures": 0}
    (out / "progress.json").write_text(json.dumps({**table, "doing": None}))
    [found] = find([tmp_path]).found.values()
    assert (summary(found).state, summary(found).sentence) == ("stopped", "why")


def test_pages_that_are_checked_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    texts = [STUDY.replace("blocks = 12", f"blocks = {blocks}") for blocks in range(10, 26)]
    with ThreadPoolExecutor(8) as pool:
        said = list(pool.map(lambda text: checked(tmp_path, text)["summary"], texts * 4))
    wanted = [f"2 arms, 1 benchmark, at most {blocks} blocks" for blocks in range(10, 26)]
    assert said == wanted * 4
    assert list(tmp_path.iterdir()) == []


def test_a_header_lets_in_whom_it_names() -> None:
    doors = Doors(header=Header("X-Forwarded-User", "ada"))
    assert doors.session("", {"x-forwarded-user": "ada"})
    assert doors.session("", {"x-forwarded-user": "bob"}) is None
    assert doors.session("", {}) is None


@pytest.mark.parametrize(
    ("factor", "value", "says"),
    [
        ("transport", "tcp", 'transport = "tcp"'),
        ("env", 'A=1 B="x y"', 'env = { A = "1", B = "x y" }'),
        ("wrapper", "nice -n 5", 'wrap = ["nice", "-n", "5"]'),
        ("container", "podman image:1", 'container = { engine = "podman", image = "image:1" }'),
        ("cluster", "n[1-2]", 'hosts = "n[1-2]"'),
    ],
)
def test_a_form_writes_what_it_says(tmp_path: Path, factor: str, value: str, says: str) -> None:
    arms = [{"name": "a", "value": ""}, {"name": "b", "value": value}]
    form = {"question": 'Is "b" it?', "factor": factor, "arms": arms, "benchmarks": ["latency"]}
    text = study_text({**form, "margin": "2 %", "blocks": "20"})
    assert says in text.splitlines()
    assert text.endswith('[plan]\nmargin = "2 %"\nblocks = 20\n')
    said = checked(tmp_path, text)
    assert said["problems"] == "" or factor == "cluster", said
    assert list(tmp_path.iterdir()) == []


def test_a_user_without_a_name_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getuid", lambda: 2**31)
    monkeypatch.setattr("paribus.web.server.serve", lambda *_, **__: None)
    assert dispatch(["serve", str(tmp_path)]) == 0
    assert capsys.readouterr().err.splitlines()[0].endswith(f" {socket.gethostname()}")
