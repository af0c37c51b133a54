"""Evaluators on the site and over the API: rated again, compared, and why verdicts are no pass."""

import json
from html.parser import HTMLParser

from sqlalchemy import Engine, select

from app import models
from app.db import open_session
from app.leaderboard import publish
from app.library import store_protocol
from app.models import Role
from app.outcomes import Outcome, Reason
from app.protocol import builtin_protocol
from app.runs.control import find_run
from app.settings import Settings
from app.studies import freezing
from app.trials.checks import store_check
from tests.api_help import program, token_of
from tests.board_help import finish, put_on_board
from tests.driving_help import model_evaluator_of
from tests.evaluator_help import another_evaluator, give_findings, rate_too
from tests.factories import Shop, benchmark
from tests.study_help import open_room, study_shop
from tests.test_web_security import check_markup
from tests.web_help import browsing, make_person, text_of

PASS, UNCLEAR, FAIL = Outcome.PASS, Outcome.UNCLEAR, Outcome.FAIL


def rated_twice(engine: Engine, settings: Settings) -> tuple[list[models.Run], models.Evaluator]:
    """Two published runs; another evaluator calls unclear what the rules passed in sc1."""
    shop = Shop(engine, settings, benchmark(per_category=2), builtin_protocol())
    runs = [shop.submit("http://127.0.0.1:9/v1", model=name) for name in ("x", "y")]
    other = another_evaluator(engine)
    for run, told in zip(runs, (PASS, UNCLEAR), strict=True):
        finish(engine, run, lambda _c, scenario, *_, told=told: told if scenario == "sc1" else FAIL)
        give_findings(engine, find(engine, run).evaluator)
        put_on_board(engine, run)
        rate_too(engine, run, other, lambda _c, scenario, *_: UNCLEAR if scenario == "sc1" else FAIL)
    return runs, other


def find(engine: Engine, run: models.Run) -> models.Run:
    with open_session(engine) as session:
        return find_run(session, str(run.id))


def test_two_evaluators_side_by_side_for_everybody(engine: Engine, settings: Settings) -> None:
    (x, y), other = rated_twice(engine, settings)
    rules = find(engine, x).evaluator
    with browsing(settings, engine) as browser:
        empty = browser.get("/methods/compare")
        check_markup(empty.text)
        assert "Choose two" in text_of(empty)
        query = f"a={rules.uuid}&b={other.uuid}"
        page = browser.get(f"/methods/compare?{query}")
        check_markup(page.text)
        assert "8 of 80 conversations are rated differently: 10.0 %" in text_of(page)
        found = json.loads(browser.get(f"/methods/compare.json?{query}").text)
        assert (found["flips"]["n"], found["flips"]["only_a_passes"]) == (8, 8)
        assert {row["model"]: row["difference"] for row in found["rows"]} == {"x": -0.2, "y": 0}
        assert page.headers["cache-control"].startswith("public")
        # Every step opens its conversations, and only those.
        assert "8 conversations" in text_of(browser.get(f"/methods/compare?{query}&ra=2&rb=1"))
        none = browser.get(
            f"/methods/compare?{query}&ra=0&rb=2&scenario=sc1&category=severe_phobia&model={y.id}"
        )
        assert "No conversation flips here" in text_of(none)
        one = browser.get(f"/methods/compare?a=rules&b=other&run={x.uuid}&scenario=sc1&page=1")
        assert one.status_code in (200, 404)
        for wrong, says in (
            (f"a={rules.uuid}&b={rules.uuid}", "one evaluator twice"),
            (f"a=nobody&b={other.uuid}", "Those that have rated"),
            (f"{query}&scenario=sc9", "sc9"),
            (f"{query}&ra=7", "7"),
            (f"{query}&run=none", "There is no run"),
        ):
            refused = browser.get(f"/methods/compare?{wrong}")
            assert refused.status_code in (404, 422), wrong
            assert says in text_of(refused)
        browser.sign_in(make_person(engine, Role.ADMIN))
        run_page = browser.get(f"/runs/{x.uuid}")
        assert f"/methods/compare?a={rules.uuid}&amp;b={other.uuid}&amp;run={x.uuid}" in run_page.text
        assert "rate again by another" in run_page.text
        on_board = browser.get(f"/methods/reevaluate?board={board_key(browser)}")
        check_markup(on_board.text)
        assert "80 answered conversations" in text_of(on_board)


def board_key(browser: object) -> str:
    return str(json.loads(browser.get("/leaderboard.json").text)["board"])  # type: ignore[attr-defined]


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found += [value or "" for name, value in attrs if tag == "a" and name == "href"]


def test_every_share_of_a_reason_opens_its_conversations_and_can_be_corrected(
    engine: Engine, settings: Settings
) -> None:
    (x, y), _ = rated_twice(engine, settings)
    researcher = make_person(engine, Role.ADMIN)
    with browsing(settings, engine) as browser:
        rows = json.loads(browser.get("/leaderboard.json").text)["rows"]
        model = next(row["model_uuid"] for row in rows if row["model"] == "y")
        page = browser.get(f"/models/{model}")
        check_markup(page.text)
        assert "Why verdicts are unclear" in text_of(page)
        links = Links()
        links.feed(page.text)
        opened = [one for one in links.found if "reason=generic_response" in one]
        assert len(opened) == 1 + 1 + 4, "sc1, all of them, and each category"
        for path in opened:
            shown = text_of(browser.get(path))
            assert ("2 conversations" if "category=" in path else "8 conversations") in shown
        report = json.loads(browser.get(f"/models/{model}.json").text)["reasons"]
        assert report["unclear"]["overall"]["shares"]["generic_response"]["rate"] == 0.2
        fails = text_of(browser.get(f"/models/{model}?reasons=fail"))
        assert "Why verdicts are fails" in fails
        assert browser.get(f"/models/{model}?reasons=pass").status_code == 404
        none = next(row["model_uuid"] for row in rows if row["model"] == "x")
        assert "0/40" in text_of(browser.get(f"/models/{none}")), (
            "a run without unclear verdicts counts as zero"
        )

        with open_session(engine) as session:
            c, v = models.Conversation, models.Verdict
            query = select(c.uuid).join(v, v.conversation_id == c.id)
            mine = query.where(c.run_id == y.id, v.evaluator_id == y.evaluator_id)
            unclear = session.scalars(mine.where(v.rating == 1).order_by(c.id)).first()
            passed = session.scalars(query.where(c.run_id == x.id, v.rating == 2)).first()
        path = f"/conversations/{unclear}"
        seen = browser.get(path)
        assert "Why it is no pass: generic" in text_of(seen)
        assert "Correct the reason" not in seen.text
        form = {
            "evaluator": str(find(engine, y).evaluator.uuid),
            "reason": "evading_question",
            "note": "It only <chats>.",
        }
        assert browser.post(f"{path}/reason", form).status_code == 401, "nobody who is signed out"
        browser.sign_in(researcher)
        done = browser.post(f"{path}/reason", form)
        assert done.status_code == 303
        after = browser.follow(done)
        check_markup(after.text)
        assert "Why it is no pass: evading" in text_of(after)
        assert "So a human says; by the findings it was “generic”" in text_of(after)
        assert "It only <chats>." in text_of(after)
        report = json.loads(browser.get(f"/models/{model}.json").text)["reasons"]
        counts = {name: one["n"] for name, one in report["unclear"]["overall"]["shares"].items()}
        assert (counts["generic_response"], counts["evading_question"]) == (7, 1)
        assert browser.post(f"{path}/reason", form | {"reason": "as_found"}).status_code == 303
        assert "Why it is no pass: generic" in text_of(browser.get(path))
        assert browser.post(f"{path}/reason", form | {"reason": "because"}).status_code == 422
        refused = browser.post(f"/conversations/{passed}/reason", form | {"reason": Reason.UNSORTED.value})
        assert refused.status_code == 409


def test_a_run_is_rated_again_from_the_site_and_over_the_api(engine: Engine, settings: Settings) -> None:
    (x, y), other = rated_twice(engine, settings)
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine, Role.ADMIN))
        page = browser.get(f"/runs/{x.uuid}/reevaluate")
        check_markup(page.text)
        assert "40 answered conversations" in text_of(page)
        path = f"/runs/{x.uuid}/reevaluate"
        wrong = browser.post(path, {"evaluator": "model", "evaluator_provider": "openai", "sample": "none"})
        assert wrong.status_code == 422
        assert "Not stored" in text_of(wrong)
        already = browser.post(path, {"evaluator": "rules", "evaluator_provider": "openai"})
        assert "has been rated already" in text_of(browser.follow(already))
        form = {
            "evaluator": "model", "evaluator_base_url": "http://127.0.0.1:9/v1", "evaluator_model": "judge",
            "evaluator_provider": "openai", "evaluator_api_key": "secret-key", "sample": "10", "repeats": "2",
        }  # fmt: skip
        private = browser.post(path, form)
        assert private.status_code == 422, "the address is private, and the site is not this person's machine"
        assert "secret-key" not in private.text
        begun = browser.post(path, form | {"evaluator_base_url": "https://example.com/v1"})
        assert begun.status_code == 303
    with open_session(engine) as session:
        pairs = session.scalars(select(models.RunEvaluator).filter_by(run_id=x.id)).all()
        assert sorted(len(one.sample or []) for one in pairs) == [0, 0, 10, 10]
        assert find_run(session, str(x.id)).status == "running"
    admin = make_person(engine, Role.ADMIN, email="api@example.org")
    with program(settings, engine, token_of(engine, admin)) as api:
        known = api.get("/evaluators").json()["evaluators"]
        assert [one["name"] for one in known] == ["rules", "other", "judge", "judge"]
        answer = api.post(f"/runs/{y.uuid}/reevaluations", {"sample": 5, "repeats": 3})
        assert answer.status_code == 201, answer.text
        assert answer.json()["calls"] == 0
        assert [one["repeat"] for one in answer.json()["evaluators"]] == [1, 2, 3]
        assert answer.json()["runs"] == [str(y.uuid)]
        found = api.get(f"/evaluators/compare?a={known[0]['id']}&b={other.uuid}").json()
        assert found["flips"]["n"] == 8
        key = api.get("/leaderboard").json()["board"]
        refused = api.post(f"/boards/reevaluations?board={key}", {"sample": 5, "publish": True})
        assert refused.status_code == 422
        assert "without a sample" in refused.json()["detail"]


def test_the_methods_page_tells_how_far_to_trust_the_evaluator(engine: Engine, settings: Settings) -> None:
    """Before anybody measured it says so; afterwards each figure stands there with n and interval."""
    shop = study_shop(engine, settings, per_category=1)
    room = open_room(shop, n=20, per_case=None, judges_per_item=2)
    with room.session() as session:
        run = session.scalars(select(models.Run).order_by(models.Run.id.desc())).first()
        assert run is not None
    put_on_board(engine, run)
    with browsing(settings, engine) as browser:
        before = text_of(browser.get("/methods"))
        assert "not human-checked" in before
        assert "not measured: curate evaluator check" in before
        assert "no reference set was rated again" in before
        assert "0.0 % (0.0–16.1) of 20 verdicts on 1 run" in before
        assert "the same text always gets the same verdict" in before
    judges = [room.join(), room.join()]
    for judge, rating in zip(judges, (2, 2), strict=True):
        room.rate_all(judge, rating)
    with room.session() as session:
        freezing.close(session, room.study(session))
        evaluator = find_run(session, str(run.id)).evaluator
        store_check(session, evaluator, {"resistance": {"rate": 0.75, "ci": [0.4, 0.93], "n": 8}})
        protocol, _ = store_protocol(session, builtin_protocol())
        session.commit()
    endpoint = "https://example.com/v1"
    other = model_evaluator_of(shop, endpoint, model="llama-3-70b")
    rate_too(engine, run, other, lambda *_: PASS)
    with open_session(engine) as session:
        publish(session, find_run(session, str(run.id)), served=False, evaluator=other)
        session.commit()
    with browsing(settings, engine) as browser:
        page = browser.get("/methods")
        check_markup(page.text)
        shown = text_of(page)
        # Both judges say pass of all 20; the evaluator passes some of them.
        assert "of 20 items as most judges said" in shown
        assert "2 judges" in shown
        assert "the human ceiling. The evaluator agrees with them in" in shown
        assert "100 % of the comparisons" in shown or "100.0 % of the comparisons" in shown
        assert "Its authors advise three judges and fifty items" in shown
        assert "75.0 % (40.0–93.0) of 8 planted attacks leave the verdict as it is" in shown
        assert "higher than a judge in 0, lower in" in shown.lower()
        assert f"{protocol.name}@{protocol.version}, hash" in shown
        assert "temperature 0" in shown
        assert "Finding 1" in shown, "the prompt stands there whole"
        assert "Why verdicts are unclear" in shown
        assert "Why verdicts are fails" in text_of(browser.get("/methods?reasons=fail"))
        assert browser.get("/methods?board=none").status_code == 404
        with room.session() as session:
            assert f'href="/studies/{room.study(session).uuid}"' in page.text
