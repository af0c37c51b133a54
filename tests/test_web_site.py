"""Files, templates, caching, and what watches a site: health, readiness, figures."""

import hashlib
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import Engine, text
from sqlalchemy.exc import OperationalError
from starlette.responses import Response as Answer

from app import readiness
from app.db import make_engine
from app.errors import ServiceUnavailable
from app.main import create_app
from app.settings import PROJECT_ROOT, Settings
from app.web import formats
from app.web.context import Visitor
from app.web.templates import Templates
from tests.frozen import way_to
from tests.web_help import Browser, browsing, make_person

HTMX = ("htmx-2.0.11.min.js", "d6fdc75f204e6bdefa99b69bf1e6d4ac69b8a364f77929f45c13476b4000f717")
AXE = ("axe-4.14.1.min.js", "29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c")


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as made:
        yield made


# --- files ---


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_vendored_scripts_are_what_was_published() -> None:
    assert sha256(PROJECT_ROOT / "static" / HTMX[0]) == HTMX[1]
    assert sha256(PROJECT_ROOT / "tests" / "vendor" / AXE[0]) == AXE[1]
    scripts = {path.name for path in (PROJECT_ROOT / "static").glob("*.js") if "htmx" in path.name}
    assert scripts == {HTMX[0]}


def test_files_may_be_kept_for_ever_under_their_hash(browser: Browser) -> None:
    page = browser.get("/login")
    found = re.findall(r'(?:href|src)="(/static/[^"]+)"', page.text)
    assert len(found) >= 3
    for address in found:
        file = browser.get(address)
        assert file.status_code == 200
        assert "immutable" in file.headers["cache-control"]
        assert browser.get(address, if_none_match=file.headers["etag"]).status_code == 304
    assert browser.get("/static/site.css").headers["cache-control"] == "no-cache"
    assert browser.get("/static/site.css?v=other").headers["cache-control"] == "no-cache"


@pytest.mark.parametrize(
    "name", ["../app/main.py", "..%2fapp%2fmain.py", "%2e%2e/pyproject.toml", "none.css", ""]
)
def test_only_files_of_the_folder_are_served(browser: Browser, name: str) -> None:
    assert browser.get(f"/static/{name}").status_code == 404


def test_the_stylesheet_keeps_to_its_sizes_and_asks_nobody() -> None:
    sheet = (PROJECT_ROOT / "static" / "site.css").read_text()
    screen = sheet.partition("@media print")[0]
    sizes = set(re.findall(r"font-size:\s*([^;}]+)", screen)) - {"100%"}
    assert sizes <= {"var(--small)", "var(--normal)", "var(--large)", "var(--huge)"}
    assert "url(" not in sheet
    assert "@import" not in sheet
    assert len(sheet) < 30_000


# --- templates ---

TEMPLATES = sorted(
    path.relative_to(PROJECT_ROOT / "templates").as_posix()
    for path in (PROJECT_ROOT / "templates").rglob("*")
    if path.is_file()
)


class Source(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        self.faults += [f"<{tag} {name}>" for name in names if name == "style" or name.startswith("on")]
        self.faults += [f"<{tag} {name}>" for name in names if name.startswith("hx-on")]
        if tag == "style" or (tag == "script" and "src" not in names):
            self.faults.append(f"<{tag}>")


def test_templates_hold_nothing_inline_and_escape_everything() -> None:
    environment = Templates(PROJECT_ROOT / "templates").environment
    assert environment.autoescape is True
    assert len(TEMPLATES) >= 10
    for name in TEMPLATES:
        text = (PROJECT_ROOT / "templates" / name).read_text()
        environment.get_template(name)
        assert not re.search(r"\|\s*safe\b|autoescape|Markup", text), name
        source = Source()
        written = re.sub(r"(?s){{.*?}}", "value", re.sub(r"(?s){%.*?%}|{#.*?#}", "", text))
        source.feed(written)
        assert source.faults == [], name


def test_no_code_of_ours_calls_text_safe() -> None:
    for path in (PROJECT_ROOT / "app").rglob("*.py"):
        assert "Markup" not in path.read_text(), path


def test_htmx_may_run_nothing_that_a_page_brings(browser: Browser) -> None:
    page = browser.get("/login").text
    for setting in (
        '"allowEval":false',
        '"allowScriptTags":false',
        '"historyCacheSize":0',
        '"selfRequestsOnly":true',
    ):
        assert setting in page


def test_the_header_links_to_pages_that_exist(browser: Browser) -> None:
    found = re.search(r"(?s)<nav.*?</nav>", browser.get("/login").text)
    assert found
    for address in re.findall(r'href="([^"]+)"', found[0]):
        assert browser.get(address).status_code == 200


# --- caching ---


@pytest.fixture
def caching(settings: Settings, engine: Engine) -> Iterator[Browser]:
    """A site with one public page and one that has a fragment."""
    app = create_app(settings, engine)

    def public(web: Visitor) -> Answer:
        return web.page("people/owner.html", public=60)

    def both(web: Visitor) -> Answer:
        return web.page("people/owner.html", public=60, fragment="title")

    for route in (public, both):
        app.add_api_route(f"/{route.__name__}", route, response_model=None)
    browser = Browser(app)
    with browser.client:
        yield browser


def test_a_public_page_may_be_kept(caching: Browser, engine: Engine) -> None:
    first = caching.get("/public")
    assert first.headers["cache-control"] == "public, max-age=60, stale-while-revalidate=600"
    assert "Cookie" in first.headers["vary"]
    again = caching.get("/public", if_none_match=f'"x", W/{first.headers["etag"]}')
    assert again.status_code == 304
    assert again.content == b""
    caching.sign_in(make_person(engine))
    caching.get("/public")
    mine = caching.get("/public")
    assert mine.headers["cache-control"] == "private, no-cache"
    assert mine.headers["etag"] != first.headers["etag"]
    assert caching.get("/public", if_none_match=first.headers["etag"]).status_code == 200


def test_a_notice_is_never_kept(caching: Browser, engine: Engine) -> None:
    caching.sign_in(make_person(engine))
    assert caching.get("/public").headers["cache-control"] == "no-store"


def test_a_fragment_is_never_kept_and_a_restored_page_is_whole(caching: Browser) -> None:
    whole = caching.get("/both")
    assert "<html" in whole.text
    assert "HX-Request" in whole.headers["vary"]
    fragment = caching.get("/both", hx_request="true")
    assert fragment.text == "Sign in"
    assert fragment.headers["cache-control"] == "no-store"
    restored = caching.get("/both", hx_request="true", hx_history_restore_request="true")
    assert "<html" in restored.text


# --- watching ---


def test_health_and_readiness(browser: Browser) -> None:
    assert browser.get("/healthz").json() == {"status": "alive"}
    ready = browser.get("/readyz")
    assert ready.status_code == 200
    assert ready.json()["parts"] == {"database": True, "schema": True, "broker": True}


def test_a_broker_that_is_away_is_not_ready(settings: Settings, engine: Engine) -> None:
    for url in ("redis://127.0.0.1:1/0", None):
        with browsing(settings.model_copy(update={"redis_url": url}), engine) as browser:
            ready = browser.get("/readyz")
            assert ready.status_code == 503
            assert ready.json()["parts"] == {"database": True, "schema": True, "broker": False}


def test_a_database_that_is_frozen_is_not_ready(settings: Settings, engine: Engine) -> None:
    """Also where a connection from before is open, which would wait for ever."""
    with way_to(settings.database_url or "") as way:
        through = make_engine(way.url)
        with browsing(settings.model_copy(update={"database_url": way.url}), through) as browser:
            assert browser.get("/login").status_code == 200
            assert browser.get("/readyz").status_code == 200
            way.freeze()
            ready = browser.get("/readyz")
            assert ready.status_code == 503
            assert ready.json()["parts"] == {"database": False, "schema": False, "broker": True}
            way.thaw()
            assert browser.get("/readyz").status_code == 200
        through.dispose()


def test_pages_do_not_wait_for_a_frozen_database(settings: Settings, engine: Engine) -> None:
    """Nor for one that freezes in the middle of a request; and all is well when it is back."""
    with way_to(settings.database_url or "") as way:
        through = make_engine(way.url, statement_seconds=1)
        with browsing(settings, through) as browser:
            assert browser.get("/cases").status_code == 200
            way.freeze()
            for headers, kind in (({}, "text/html"), ({"accept": "application/json"}, "application/problem")):
                away = browser.get("/cases", **headers)
                assert (away.status_code, away.headers["retry-after"]) == (503, "10")
                assert away.headers["content-type"].startswith(kind)
            assert "The database does not answer" in away.text
            way.thaw()
            assert browser.get("/cases").status_code == 200
        with through.connect() as connection:
            connection.execute(text("SELECT 1"))
            way.freeze()
            with pytest.raises(OperationalError, match="no answer within 3 s"):
                connection.execute(text("SELECT 1"))
            way.thaw()
        with through.connect() as connection, pytest.raises(OperationalError, match="statement timeout"):
            connection.execute(text("SELECT pg_sleep(5)"))
        through.dispose()


def test_figures(browser: Browser) -> None:
    for path in ("/login", "/login", "/nowhere/1", "/nowhere/2", "/invite/abc"):
        browser.get(path)
    browser.client.request("BREW", "/login", headers={"origin": browser.base_url})
    browser.get("/readyz")
    families = figures(browser)
    assert {one.labels["status"]: one.value for one in families["curate_runs"].samples} == {
        "running": 0.0,
        "paused": 0.0,
        "cancelled": 0.0,
        "finished": 0.0,
    }
    counted = {
        (one.labels["method"], one.labels["route"], one.labels["status"]): one.value
        for one in families["curate_http_requests"].samples
        if one.name.endswith("_total")
    }
    assert counted["GET", "/login", "200"] == 2
    assert counted["GET", "none", "404"] == 2, "an address that somebody makes up makes no new figure"
    assert counted["GET", "/invite/{token}", "404"] == 1
    assert counted["other", "/login", "405"] == 1
    assert {one.labels["part"]: one.value for one in families["curate_ready"].samples} == {
        "database": 1.0,
        "schema": 1.0,
        "broker": 1.0,
    }


def test_how_long_ago_the_last_round_was_done(browser: Browser, engine: Engine) -> None:
    assert figures(browser)["curate_upkeep_age_seconds"].samples == [], "never is not zero seconds ago"
    with pytest.raises(ServiceUnavailable, match=r"has never been done: is `curate scheduler` running"):
        readiness.scheduler(engine)
    for age, good in ((7, True), (300, False)):
        with engine.begin() as connection:
            connection.execute(text("DELETE FROM upkeep"))
            connection.execute(
                text("INSERT INTO upkeep VALUES ('reconcile', now() - make_interval(secs => :age))"),
                {"age": age},
            )
        (sample,) = figures(browser)["curate_upkeep_age_seconds"].samples
        assert sample.labels == {"task": "reconcile"}
        assert age <= sample.value < age + 30
        assert readiness.checked("scheduler", lambda: readiness.scheduler(engine))[1] is good


def test_no_worker_is_said_so(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(readiness, "PATIENCE_SECONDS", 0.1)
    nowhere = settings.model_copy(update={"redis_url": "redis://127.0.0.1:1/0"})
    with pytest.raises(ServiceUnavailable, match="No worker answers: start"):
        readiness.workers(nowhere)


def figures(browser: Browser) -> dict[str, Metric]:
    response = browser.get("/metrics")
    assert response.status_code == 200
    return {one.name: one for one in text_string_to_metric_families(response.text)}


def test_figures_without_a_database(settings: Settings) -> None:
    away = make_engine("postgresql+psycopg://nobody@127.0.0.1:1/none")
    with browsing(settings, away) as browser:
        browser.get("/login")
        families = figures(browser)
        assert families["curate_http_requests"].samples
        assert families["curate_runs"].samples == []
    away.dispose()


# --- formats ---


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        (formats.percent(0.8421), "84.2"),
        (formats.percent(None), "–"),
        (formats.count(1234567), "1\u202f234\u202f567"),
        (formats.duration(40), "40 s"),
        (formats.duration(250), "4 min"),
        (formats.duration(7500), "2 h 5 min"),
        (formats.moment("2026-11-29T22:24:00+01:00"), "2026-11-29 21:24 UTC"),
        (formats.iso("2026-11-29T22:24:00+01:00"), "2026-11-29T21:24:00Z"),
        (
            formats.browser("Mozilla/5.0 (Windows NT 10.0) Chrome/140.0 Safari/537.36 Edg/140.0"),
            "Edge on Windows",
        ),
        (formats.browser(""), "Some program"),
    ],
)
def test_numbers_and_times(written: str, expected: str) -> None:
    assert written == expected


def test_no_request_waits_for_routes_to_be_built(
    settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor do two first requests build them at once, each under the other's warnings."""
    with browsing(settings, engine) as browser:
        monkeypatch.setattr("fastapi.routing.get_dependant", None)
        for path, status in (("/login", 200), ("/nowhere", 404), ("/api/v1/runs", 401)):
            assert browser.get(path).status_code == status
