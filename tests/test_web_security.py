"""What holds for every request and response, whatever the page."""

import json
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute
from httpx2 import Response
from pydantic import SecretStr
from sqlalchemy import Engine, func, select

from app import models
from app.db import open_session
from app.errors import InvalidInput
from app.main import ROUTERS, create_app
from app.models import Role
from app.settings import Settings
from app.web.security import MAX_BODY, Proxies, local_path
from tests.web_help import LOOPBACK, PASSWORD, Browser, browsing, make_person, text_of

HTTPS = "https://board.example.org"
SECRET = "s3cret-" * 8


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as made:
        yield made


@pytest.fixture
def served(settings: Settings) -> Settings:
    return settings.model_copy(update={"base_url": HTTPS, "secret_key": SecretStr(SECRET)})


# --- headers ---

EVERYWHERE = ["/login", "/account", "/nowhere", "/static/site.css", "/static/none", "/healthz", "/reset"]


def test_each_answer_carries_the_headers(browser: Browser) -> None:
    for path in EVERYWHERE:
        check_headers(browser.get(path))


def check_headers(response: Response) -> None:
    policy = dict(part.split(" ", 1) for part in response.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    assert policy["frame-ancestors"] == "'none'"
    assert policy["base-uri"] == "'none'"
    assert policy["form-action"] == "'self'"
    assert set(policy["script-src"].split()) == {"'self'"}
    assert set(policy["style-src"].split()) == {"'self'"}
    assert "unsafe" not in response.headers["content-security-policy"]
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["x-frame-options"] == "DENY"
    assert response.headers["referrer-policy"] == "same-origin"
    assert response.headers["cross-origin-opener-policy"] == "same-origin"
    assert response.headers["x-request-id"]
    assert "server" not in response.headers


def test_refusals_carry_the_headers_too(browser: Browser) -> None:
    for response in (
        browser.get("/login", host="evil.example"),
        browser.post("/login", {}, origin="https://evil.example"),
        browser.get("/login?" + "a" * 9000),
        browser.client.post("/login", content=b"x" * (MAX_BODY + 1), headers={"origin": LOOPBACK}),
    ):
        assert response.status_code in (403, 413, 414, 421)
        check_headers(response)


def test_strict_transport_only_over_https(browser: Browser, served: Settings, engine: Engine) -> None:
    assert "strict-transport-security" not in browser.get("/login").headers
    with browsing(served, engine) as secure:
        assert "max-age=" in secure.get("/login").headers["strict-transport-security"]


# --- cookies ---


def cookies(response: Response) -> dict[str, list[str]]:
    """name -> attributes, lower-cased."""
    found = {}
    for line in response.headers.get_list("set-cookie"):
        pair, *attributes = [part.strip() for part in line.split(";")]
        found[pair.partition("=")[0]] = [attribute.lower() for attribute in attributes]
    return found


def test_cookies_over_https(served: Settings, engine: Engine) -> None:
    person = make_person(engine)
    with browsing(served, engine) as secure:
        given = cookies(secure.sign_in(person))
        assert "__Host-curate-session" in given
        for name, attributes in given.items():
            assert name.startswith("__Host-")
            assert {"secure", "httponly", "samesite=lax", "path=/"} <= set(attributes)
            assert not any(attribute.startswith("domain") for attribute in attributes)
        assert secure.get("/account").status_code == 200


def test_cookies_on_loopback(browser: Browser, engine: Engine) -> None:
    given = cookies(browser.sign_in(make_person(engine)))
    assert "curate-8000-session" in given
    for attributes in given.values():
        assert {"httponly", "samesite=lax", "path=/"} <= set(attributes)


def test_a_visitor_gets_no_cookie(browser: Browser) -> None:
    for path in ("/login", "/nowhere", "/account"):
        assert cookies(browser.get(path)) == {}


# --- where a form stood ---


def tries(engine: Engine) -> int:
    with open_session(engine) as session:
        return session.scalars(select(func.count()).select_from(models.Throttle)).one()


FOREIGN: list[dict[str, str]] = [
    {"origin": "https://evil.example"},
    {"origin": "null"},
    {"origin": "http://127.0.0.1:8000.evil.example"},
    {"origin": "http://127.0.0.1:9999"},
    {"origin": ""},
    {"referer": "https://evil.example/http://127.0.0.1:8000/"},
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "none"},
    {"sec-fetch-site": "cross-site", "origin": LOOPBACK},
    {"sec-fetch-site": "same-origin", "origin": "https://evil.example"},
    {"authorization": "Bearer x", "cookie": "a=b"},
    {"authorization": "Basic eDp4"},
    {},
]


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "PROPFIND"])
def test_a_foreign_form_is_refused(browser: Browser, engine: Engine, method: str) -> None:
    for headers in FOREIGN:
        response = browser.client.request(method, "/login", data={"email": "a@b.c"}, headers=headers)
        assert response.status_code == 403, headers
        assert "nothing was changed" in text_of(response)
    assert tries(engine) == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"origin": LOOPBACK},
        {"referer": f"{LOOPBACK}/login?next=/"},
        {"sec-fetch-site": "same-origin"},
        {"sec-fetch-site": "same-origin", "origin": LOOPBACK},
    ],
    ids=str,
)
def test_our_own_form_is_taken(browser: Browser, headers: dict[str, str]) -> None:
    response = browser.client.post("/login", data={"email": "a@b.c", "password": "x"}, headers=headers)
    assert response.status_code == 422


def test_a_session_does_not_help_a_foreign_form(browser: Browser, engine: Engine) -> None:
    browser.sign_in(make_person(engine, name="Ada"))
    refused = browser.post("/account/name", {"name": "Eve"}, origin="https://evil.example")
    assert refused.status_code == 403
    assert "Ada" in text_of(browser.get("/account"))
    assert browser.post("/account/name", {"name": "Eve"}).status_code == 303
    assert "Eve" in text_of(browser.get("/account"))


def test_what_changes_something_is_no_get(browser: Browser, engine: Engine) -> None:
    """No address that takes a POST does anything for a GET."""
    browser.sign_in(make_person(engine, Role.ADMIN))
    posts, gets = (
        {route.path for router in ROUTERS for route in router.routes
         if isinstance(route, APIRoute) and method in (route.methods or ())}
        for method in ("POST", "GET")
    )  # fmt: skip
    assert "/logout" in posts - gets
    for path in posts - gets:
        concrete = path.replace("{identity}", "00000000-0000-0000-0000-000000000000")
        assert browser.get(concrete).status_code in (401, 404, 405), path
    assert browser.get("/account").status_code == 200, "still signed in"


# --- names of the site ---


def test_a_loopback_site_answers_at_the_names_of_this_machine(browser: Browser) -> None:
    for host in ("127.0.0.1:8000", "localhost:8000", "[::1]:8000", "127.0.0.1", "LOCALHOST", "[::1]"):
        assert browser.get("/login", host=host).status_code == 200, host


def test_other_names_are_refused(browser: Browser) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "", "localhost:80:80", "[::1", "[::1]x", "::1"):
        assert browser.get("/login", host=host).status_code == 421, host


def test_a_served_site_answers_at_its_own_name_only(served: Settings, engine: Engine) -> None:
    with browsing(served, engine) as secure:
        assert secure.get("/login").status_code == 200
        assert secure.get("/login", host="localhost").status_code == 421
        assert secure.get("/login", host="board.example.org:444").status_code == 421
        assert secure.get("/login", host="board.example.org:80").status_code == 421
        assert secure.get("/login", host="Board.example.org:443").status_code == 200
        own = "board.example.org:443"
        assert secure.post("/logout", host=own, origin=f"https://{own}").status_code == 303
        assert secure.get("/healthz", host="10.0.0.7:8000").status_code == 200
        spoofed = secure.get("/login", x_forwarded_host="evil.example", x_forwarded_proto="http")
        assert spoofed.status_code == 200
        assert "evil.example" not in spoofed.text


# --- redirects stay here ---


@pytest.mark.parametrize(
    "target",
    [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "\\\\evil.example",
        "/\t/evil.example",
        "/ok\r\nSet-Cookie: sid=evil",
        "javascript:alert(1)",
        "evil.example",
        "",
        "/" + "a" * 5000,
    ],
)
def test_a_redirect_never_leaves(browser: Browser, engine: Engine, target: str) -> None:
    person = make_person(engine)
    form = {"email": person.email, "password": PASSWORD, "next": target}
    response = browser.post("/login", form)
    assert response.status_code == 303
    assert response.headers["location"] == "/"
    assert "sid" not in response.cookies


def test_a_redirect_within_the_site_keeps_its_query() -> None:
    assert local_path("/runs?status=open&name=a%20b") == "/runs?status=open&name=a%20b"


# --- sizes ---


def test_a_long_address_is_refused(browser: Browser) -> None:
    assert browser.get("/login?q=" + "a" * 50_000).status_code == 414
    assert browser.get("/" + "a" * 5_000).status_code == 414


def test_nul_in_an_address_is_refused(browser: Browser) -> None:
    for path in ("/login?q=%00", "/login%00", "/invite/%00"):
        assert browser.get(path).status_code == 422, path


def test_a_large_body_is_refused_as_announced(browser: Browser) -> None:
    response = browser.client.post("/login", content=b"a=" + b"x" * MAX_BODY, headers={"origin": LOOPBACK})
    assert response.status_code == 413
    assert "1,000 kB" in text_of(response)


def test_a_large_body_is_refused_as_it_arrives(browser: Browser) -> None:
    """Without a length, or with a false one, what counts is what comes."""

    def chunks() -> Iterator[bytes]:
        for _ in range(30):
            yield b"x" * 50_000

    form = {"origin": LOOPBACK, "content-type": "application/x-www-form-urlencoded"}
    response = browser.client.post("/login", content=chunks(), headers=form)
    assert response.status_code == 413
    check_headers(response)


def test_odd_bodies_are_no_fault_of_the_site(browser: Browser) -> None:
    for kind, body in (
        ("application/json", b"{"),
        ("application/x-www-form-urlencoded", b"%ff%fe=%00&=&&&email=%c3"),
        ("multipart/form-data; boundary=x", b"--x\r\nContent-Disposition: form-data\r\n\r\n--x--"),
        ("multipart/form-data", b"no boundary"),
        ("application/x-www-form-urlencoded", b"&".join(b"a%d=1" % n for n in range(1000))),
        ("multipart/form-data; boundary=x", FILE),
        ("multipart/form-data; charset=raw_unicode_escape; boundary=x", SURROGATE),
    ):
        headers = {"origin": LOOPBACK, "content-type": kind}
        response = browser.client.post("/login", content=body, headers=headers)
        assert response.status_code in (400, 422), (kind, body, response.text)


FILE = (
    b'--x\r\nContent-Disposition: form-data; name="email"; filename="a.txt"\r\n'
    b"Content-Type: text/plain\r\n\r\nhello\r\n--x--\r\n"
)


SURROGATE = (
    b'--x\r\nContent-Disposition: form-data; name="email"\r\n\r\n\\ud800@example.org\r\n'
    b'--x\r\nContent-Disposition: form-data; name="password"\r\n\r\n\\ud800\r\n--x--\r\n'
)


def test_head_is_get_without_a_body(browser: Browser) -> None:
    head, get = browser.client.head("/login"), browser.get("/login")
    assert head.status_code == 200
    assert head.content == b""
    assert head.headers["content-type"] == get.headers["content-type"]


# --- the client's address ---


def sign_in_tries(browser: Browser, number: int, **headers: str) -> list[int]:
    form = {"email": "nobody@example.org", "password": "x"}
    return [browser.post("/login", form, **headers).status_code for _ in range(number)]


def test_sign_in_is_limited_by_peer(browser: Browser) -> None:
    assert sign_in_tries(browser, 12) == [422] * 10 + [429] * 2
    refused = browser.post("/login", {"email": "a@b.c", "password": "x"})
    assert 1 <= int(refused.headers["retry-after"]) <= 30
    assert "Try again in" in text_of(refused)


def test_a_claimed_address_changes_nothing(browser: Browser) -> None:
    form, own = {"email": "nobody@example.org", "password": "x"}, {"origin": LOOPBACK}
    statuses = []
    for address in (f"198.51.100.{number}" for number in range(1, 12)):
        claims = dict.fromkeys(
            ("X-Forwarded-For", "X-Real-IP", "True-Client-IP", "CF-Connecting-IP"), address
        )
        claims["Forwarded"] = f"for={address}"
        statuses.append(browser.client.post("/login", data=form, headers=own | claims).status_code)
    assert statuses == [422] * 10 + [429]


def test_an_ipv6_line_is_one_bucket(settings: Settings, engine: Engine) -> None:
    app, form = create_app(settings, engine), {"email": "nobody@example.org", "password": "x"}
    statuses = [
        Browser(app, peer=(f"2001:db8:1:2::{n:x}", 50000)).post("/login", form).status_code
        for n in range(1, 12)
    ]
    assert statuses == [422] * 10 + [429]
    assert Browser(app, peer=("2001:db8:1:3::1", 50000)).post("/login", form).status_code == 422


def test_a_trusted_proxy_is_believed(settings: Settings, engine: Engine) -> None:
    behind = settings.model_copy(update={"trusted_proxies": "203.0.113.0/24, 10.0.0.0/8"})
    with browsing(behind, engine) as browser:
        assert sign_in_tries(browser, 11, x_forwarded_for="9.9.9.9, 198.51.100.1, 10.0.0.3")[-1] == 429
        # Whatever the client itself puts in front changes nothing; another client has its own tries.
        assert sign_in_tries(browser, 1, x_forwarded_for="8.8.8.8, 198.51.100.1") == [429]
        assert sign_in_tries(browser, 1, x_forwarded_for="198.51.100.2") == [422]


def test_proxies_are_checked_at_the_start(settings: Settings, engine: Engine) -> None:
    with pytest.raises(InvalidInput, match="CURATE_TRUSTED_PROXIES"):
        create_app(settings.model_copy(update={"trusted_proxies": "everybody"}), engine)
    assert Proxies("").client({"client": None}) == ""


# --- the published list of attacks, where it is at hand ---

LIST = Path(__file__).resolve().parents[1] / ".." / "shared" / "reference" / "hostile_inputs.json"


def hostile(part: str) -> list[Any]:
    if not LIST.exists():
        return []
    found = []
    for item in json.loads(LIST.read_text())[part]["items"]:
        given = item["input"]
        if isinstance(given, dict):
            given = given["repeat"] * given["times"] if "repeat" in given else str(given)
        found.append(pytest.param(given, id=item["id"]))
    return found


@pytest.mark.parametrize("given", hostile("search_and_filter_strings"))
def test_odd_addresses_are_answered(browser: Browser, given: str) -> None:
    for path in ("/login", "/reset", "/nowhere"):
        query = given if given.startswith("?") else f"?q={given}"
        assert browser.get(path + query).status_code in (200, 404, 414)


@pytest.mark.parametrize("given", hostile("xss_strings"))
def test_what_people_type_is_only_text(browser: Browser, engine: Engine, given: str) -> None:
    """As a name, a browser's name, an address and a target: each page shows it, none obeys it."""
    line = " ".join(given.split())
    admin = make_person(engine, Role.ADMIN, name=line)
    browser.client.headers["user-agent"] = line
    browser.sign_in(admin)
    form = {"email": given, "role": given, "next": given, "name": given * 99}
    pages = [browser.get(path) for path in ("/account", "/admin", "/admin/audit", "/nowhere")]
    pages += [browser.post(path, form) for path in ("/account/name", "/admin/invites", "/login")]
    for page in pages:
        assert page.status_code in (200, 404, 422)
        assert line in text_of(page)
        assert page.text.rstrip().endswith("</html>")
        check_markup(page.text)


# Where a reader may be sent, by a link alone; and the site itself, where a page says how to cite it.
CITED = ("https://arxiv.org/abs/", "http://127.0.0.1:8000/")


def check_markup(page: str) -> None:
    """Only elements, attributes and addresses of our own, and cited ones."""
    found = Markup()
    found.feed(page)
    assert found.elements.isdisjoint({"style", "iframe", "object", "embed", "base", "math", "mglyph"})
    assert found.scripts != []
    assert [one for one in found.scripts if not one.startswith("/static/")] == []
    assert [name for name in found.attributes if name.startswith(("on", "hx-on")) or name == "style"] == []
    assert [one for one in found.addresses if not one.startswith(("/", "#", *CITED))] == []
    assert len(found.ids) == len(set(found.ids))


class Markup(HTMLParser):
    """What a browser would make of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: set[str] = set()
        self.attributes: set[str] = set()
        self.addresses: list[str] = []
        self.scripts: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}
        given = dict(attrs)
        self.addresses += [given[name] or "" for name in ("href", "src", "action") if name in given]
        if tag == "script":
            self.scripts.append(given.get("src") or "")
        if given.get("id"):
            self.ids.append(given["id"] or "")


def test_the_site_s_address_is_read_as_browsers_write_it(served: Settings, engine: Engine) -> None:
    odd = served.model_copy(update={"base_url": f"{HTTPS}:443/"})
    with browsing(odd.model_copy(update={"base_url": HTTPS}), engine) as plain:
        usual = Browser(create_app(odd, engine), HTTPS)
        assert usual.get("/login").status_code == plain.get("/login").status_code == 200
        assert usual.post("/logout").status_code == 303
    for wrong in (f"{HTTPS}/board", "board.example.org", "https://bücher.example", f"{HTTPS}?a", "ftp://a"):
        with pytest.raises(InvalidInput, match="CURATE_BASE_URL"):
            create_app(served.model_copy(update={"base_url": wrong}), engine)
