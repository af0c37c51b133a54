"""A dump of a running site, restored into a new one: the same board, and no harm beside the first."""

import json
import stat
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, text
from typer.testing import CliRunner

from app import models
from app.accounts import sessions
from app.accounts.api_tokens import find_token
from app.backup import PAUSED, back_up, restore
from app.cli.main import app as command
from app.db import make_engine, open_session
from app.endpoints import opened_key
from app.errors import Conflict, InvalidInput, ServiceUnavailable
from app.outcomes import Outcome
from app.runs.control import find_run
from app.runs.reporting import run_report
from app.schema import is_current, migrate
from app.settings import Settings
from tests.api_help import token_of
from tests.board_help import board, finish, put_on_board
from tests.driving_help import shop_of
from tests.factories import Shop
from tests.test_migrations import database
from tests.web_help import browsing, make_person

KEY = "sk-canary-0aa1c9d2"
URL = "https://models.example.com/v1"


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return shop_of(engine, settings, per_category=2)


@pytest.fixture
def empty(service_urls: tuple[str, str]) -> Iterator[Engine]:
    with database(service_urls[0]) as url:
        made = make_engine(url)
        migrate(made)
        yield made
        made.dispose()


def url_of(engine: Engine) -> str:
    return engine.url.render_as_string(hide_password=False)


def published(shop: Shop, model: str, told: Outcome) -> models.Run:
    run = finish(shop.engine, shop.submit(URL, model=model, api_key=KEY), lambda *_: told)
    put_on_board(shop.engine, run)
    return run


def test_the_same_board_from_a_site_that_runs(
    shop: Shop, empty: Engine, settings: Settings, tmp_path: Path
) -> None:
    kept = [published(shop, "good", Outcome.PASS), published(shop, "bad", Outcome.FAIL)]
    going = shop.submit(URL, model="going")
    person = make_person(shop.engine)
    token = token_of(shop.engine, person)
    with open_session(shop.engine) as session:
        cookie = sessions.open_session_for(session, session.get_one(models.Account, person.id), "browser")
        session.commit()
    with browsing(settings, shop.engine) as browser:
        before = browser.get("/leaderboard.json").json()
    stop = threading.Event()

    def go_on() -> None:
        number = 0
        while not stop.is_set():
            shop.submit(URL, model=f"late-{number}")
            number += 1

    writer = threading.Thread(target=go_on)
    writer.start()
    try:
        size = back_up(url_of(shop.engine), file := tmp_path / "site.dump")
    finally:
        stop.set()
        writer.join()
    assert size == file.stat().st_size
    assert stat.S_IMODE(file.stat().st_mode) == 0o600

    found = restore(empty, file)
    assert is_current(empty)
    with browsing(settings, empty) as browser:
        assert browser.get("/leaderboard.json").json() == before
        assert browser.get(f"/runs/{kept[0].uuid}").status_code == 200
    assert board(empty) == board(shop.engine)
    assert found.runs >= 3
    with open_session(shop.engine) as old, open_session(empty) as new:
        for run in kept:
            reports = [run_report(one, find_run(one, str(run.id))) for one in (old, new)]
            assert json.dumps(reports[0]) == json.dumps(reports[1])
        copy = find_run(new, str(going.id))
        assert (copy.status, copy.status_reason) == ("paused", PAUSED)
        assert find_run(old, str(going.id)).status == "running"
        assert opened_key(copy.account, find_run(new, str(kept[0].id)).endpoint, settings.secret) == KEY
        assert find_token(old, token) is not None
        assert find_token(new, token) is None
        assert sessions.find_login(old, cookie) is not None
        assert sessions.find_login(new, cookie) is None
    assert found.ended == 2


def test_nothing_that_is_in_use_is_overwritten(shop: Shop, empty: Engine, tmp_path: Path) -> None:
    run = published(shop, "good", Outcome.PASS)
    back_up(url_of(shop.engine), file := tmp_path / "site.dump")
    with pytest.raises(Conflict, match="in use"):
        restore(shop.engine, file)
    assert [row["run"] for row in board(shop.engine)["rows"]] == [run.id]
    with empty.begin() as connection:
        connection.execute(text("CREATE TABLE payroll (id int)"))
    with pytest.raises(Conflict, match="payroll"):
        restore(empty, file)
    with empty.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM payroll")).scalar_one() == 0


def test_a_file_that_is_none(empty: Engine, tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="cannot be read"):
        restore(empty, tmp_path / "missing")
    (tmp_path / "text").write_text("SELECT 1")
    with pytest.raises(InvalidInput, match="no backup"):
        restore(empty, tmp_path / "text")
    (tmp_path / "torn").write_bytes(b"PGDMP" + bytes(100))
    with pytest.raises(ServiceUnavailable, match="pg_restore failed"):
        restore(empty, tmp_path / "torn")
    migrate(empty)
    assert is_current(empty), "what failed can be tried again"


def test_by_the_command(
    shop: Shop, settings: Settings, empty: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    published(shop, "good", Outcome.PASS)
    file = str(tmp_path / "site.dump")

    def curate(engine: Engine, *arguments: str) -> str:
        monkeypatch.setenv("CURATE_DATABASE_URL", url_of(engine))
        monkeypatch.setenv("CURATE_DATA_DIR", str(settings.data_dir))
        done = CliRunner().invoke(command, list(arguments), catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    assert "CURATE_SECRET_KEY" in curate(shop.engine, "backup", file)
    assert "1 account, 1 run" in curate(empty, "restore", file)
    assert board(empty) == board(shop.engine)
