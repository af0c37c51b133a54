"""Judges over HTTP: joining, rating exactly once, coming back, leaving; and what they are never sent."""

import re
import uuid
from collections.abc import Iterator
from html import unescape

import pytest
from httpx2 import Response
from sqlalchemy import Engine, text

from app.models import Role
from app.settings import Settings
from tests.study_web_help import Made, drawn_study, invitation, plain_study, ratings, trained
from tests.web_help import Browser, at_once, browsing, make_person, text_of

OWN_LINK = re.compile(r"http://[^<\s]+/judge/back/[\w-]+")


@pytest.fixture
def made(engine: Engine) -> Made:
    return plain_study(engine)


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as opened:
        yield opened


def join(browser: Browser, engine: Engine, made: Made, **fields: str) -> str:
    """Takes part; the judge's own link."""
    given = {"pseudonym": "Heron", "consent": "1"} | fields
    response = browser.post(invitation(engine, made), given)
    assert response.status_code == 200, text_of(response)
    found = OWN_LINK.search(response.text)
    assert found, text_of(response)
    return found[0]


def fields_of(response: Response) -> dict[str, str]:
    """The hidden fields of the item's form."""
    form = response.text.partition('id="rating"')[2].partition("</form>")[0]
    found = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    assert found, text_of(response)
    return {name: unescape(value) for name, value in found}


def rate(browser: Browser, made: Made, rating: int = 2, **more: str) -> Response:
    page = browser.get(made.judging)
    return browser.post(made.judging, fields_of(page) | {"do": "rate", "rating": str(rating)} | more)


def test_from_the_invitation_to_the_end(browser: Browser, engine: Engine, made: Made) -> None:
    page = browser.get(invitation(engine, made))
    for told in ("Stews", "assault", "withdraw", "pseudonym", "No personal data."):
        assert told in text_of(page)
    join(browser, engine, made)
    for number in range(1, 7):
        page = browser.get(made.judging)
        assert f"Training {number} of 6" in text_of(page)
        answer = browser.post(made.judging, fields_of(page) | {"do": "rate", "rating": "0"})
        assert "those who made this training said" in text_of(answer)
    for number in range(4):
        page = browser.get(made.judging)
        assert f"{number} rated and saved" in text_of(page)
        answer = browser.post(made.judging, fields_of(page) | {"do": "rate", "rating": "2"})
        assert answer.status_code == 303
        assert "Saved: pass." in text_of(browser.follow(answer))
    end = text_of(browser.get(made.judging))
    assert "You are through" in end
    assert "STEW-42" in end
    assert ratings(engine) == [(1, 2, None)] * 4


def test_without_consent_nobody_is_in(browser: Browser, engine: Engine, made: Made) -> None:
    link = invitation(engine, made)
    refused = browser.post(link, {"pseudonym": "Heron"})
    assert refused.status_code == 422
    assert "without it nobody can take part" in text_of(refused)
    assert 'value="Heron"' in refused.text
    assert browser.get(made.judging).status_code == 401


def test_a_link_that_is_used_up_says_so(settings: Settings, engine: Engine, made: Made) -> None:
    link = invitation(engine, made, uses=1)
    with browsing(settings, engine) as first, browsing(settings, engine) as second:
        assert first.post(link, {"pseudonym": "Heron", "consent": "1"}).status_code == 200
        late = second.get(link)
    assert late.status_code == 404
    assert "was used, taken back or is too old" in text_of(late)


def test_who_owns_a_run_cannot_judge_it(browser: Browser, settings: Settings, engine: Engine) -> None:
    owner = make_person(engine)
    made = drawn_study(engine, settings, owner)
    browser.sign_in(owner)
    refused = browser.post(invitation(engine, made), {"pseudonym": "Heron", "consent": "1"})
    assert refused.status_code == 409
    assert "Nobody rates runs of their own" in text_of(refused)


def test_a_form_sent_twice_makes_one_judge(settings: Settings, engine: Engine, made: Made) -> None:
    link = invitation(engine, made, uses=1)
    with browsing(settings, engine) as browser:
        (key,) = re.findall(r'name="form_key" value="([^"]+)"', browser.get(link).text)
        sent = {"pseudonym": "Heron", "consent": "1", "form_key": key}
        given = at_once(lambda: OWN_LINK.findall(browser.post(link, sent).text), 4)
        assert len(given[0]) == 1
        assert given == [given[0]] * 4  # whichever answer is seen, its link is the judge's own
        assert browser.get(made.judging).status_code == 200
        assert browser.post(link, sent | {"pseudonym": "Crane"}).status_code == 404  # and nobody else's form
    with engine.begin() as connection:
        assert connection.execute(text("SELECT count(*) FROM study_judge")).scalar_one() == 1
        assert connection.execute(text("SELECT uses FROM study_invite")).scalar_one() == 1
    with browsing(settings, engine) as elsewhere:
        assert elsewhere.post("/judge" + given[0][0].partition("/judge")[2]).status_code == 303
        assert elsewhere.get(made.judging).status_code == 200


# --- exactly once, and the truth about it ---


@pytest.fixture
def judge(browser: Browser, engine: Engine, made: Made) -> Browser:
    join(browser, engine, made)
    trained(engine)
    return browser


def test_sent_twice_it_is_stored_once(judge: Browser, engine: Engine, made: Made) -> None:
    sent = fields_of(judge.get(made.judging)) | {"do": "rate", "rating": "2"}
    codes = at_once(lambda: judge.post(made.judging, sent).status_code, 4)
    assert codes == [303] * 4
    assert ratings(engine) == [(1, 2, None)]
    changed = judge.post(made.judging, sent | {"rating": "0"}, hx_request="true")
    assert "Saved before as pass, so fail was not stored" in text_of(changed)
    assert ratings(engine) == [(1, 2, None)]


def test_an_old_tab_never_rates_the_next_item(judge: Browser, engine: Engine, made: Made) -> None:
    old = fields_of(judge.get(made.judging))
    rate(judge, made, 2)
    again = judge.post(
        made.judging, old | {"do": "rate", "rating": "0", "submission": str(uuid.uuid4())}, hx_request="true"
    )
    assert "Saved before as pass, so fail was not stored" in text_of(again)
    assert ratings(engine) == [(1, 2, None)]


def test_what_is_not_the_judges_own_is_refused_with_what_was_typed(
    judge: Browser, engine: Engine, made: Made
) -> None:
    fields = fields_of(judge.get(made.judging)) | {"item": str(uuid.uuid4())}
    refused = judge.post(made.judging, fields | {"do": "rate", "rating": "0", "comment": "my own words"})
    assert refused.status_code == 404
    assert "Not stored." in text_of(refused)
    assert "my own words" in text_of(refused)
    assert ratings(engine) == []


def test_a_rating_must_be_chosen(judge: Browser, engine: Engine, made: Made) -> None:
    fields = fields_of(judge.get(made.judging))
    refused = judge.post(made.judging, fields | {"do": "rate", "comment": "kept <b>"})
    assert refused.status_code == 422
    assert "kept &lt;b&gt;" in refused.text
    assert ratings(engine) == []


def test_undo_later_decline(judge: Browser, engine: Engine, made: Made) -> None:
    first = fields_of(judge.get(made.judging))["item"]
    assert fields_of(judge.get(made.judging))["item"] == first  # stable over reloads
    rate(judge, made, 2, comment="so so")
    undone = judge.post(made.judging, {"item": first, "do": "undo"}, hx_request="true")
    assert fields_of(undone)["item"] == first
    assert "so so" in undone.text
    assert ratings(engine) == []
    later = judge.post(made.judging, {"item": first, "do": "later"}, hx_request="true")
    second = fields_of(later)["item"]
    assert second != first
    assert "1 put off" in text_of(later)
    declined = judge.post(made.judging, {"item": second, "do": "decline"}, hx_request="true")
    assert fields_of(declined)["item"] not in (first, second)
    seen = {first, second}
    while 'id="rating"' in (page := judge.get(made.judging)).text:
        seen.add(fields_of(page)["item"])
        rate(judge, made, 0)
    assert len(seen) == 4
    assert ratings(engine) == [(1, 0, None)] * 2 + [(1, 0, "so so")]


def test_an_ended_session_loses_nothing_of_what_was_sent(
    browser: Browser, engine: Engine, made: Made
) -> None:
    link = join(browser, engine, made)
    trained(engine)
    sent = fields_of(browser.get(made.judging)) | {"do": "rate", "rating": "1", "comment": "long thoughts"}
    browser.client.cookies.clear()
    refused = browser.post(made.judging, sent, hx_request="true")
    assert refused.status_code == 401
    assert "not stored yet" in text_of(refused)
    assert "long thoughts" in refused.text
    assert ratings(engine) == []
    wrong = browser.post("/judge/back", sent | {"study": str(made.uuid), "code": "nothing"})
    assert wrong.status_code == 401
    assert "long thoughts" in wrong.text
    back = browser.post("/judge/back", sent | {"study": str(made.uuid), "code": link})
    assert back.status_code == 303
    assert "Saved: unclear." in text_of(browser.follow(back))
    assert ratings(engine) == [(1, 1, "long thoughts")]


def test_the_own_link_opens_another_browser(
    browser: Browser, settings: Settings, engine: Engine, made: Made
) -> None:
    link = join(browser, engine, made)
    trained(engine)
    item = fields_of(browser.get(made.judging))["item"]
    with browsing(settings, engine) as other:
        path = link.removeprefix(other.base_url)
        assert "yours alone" in text_of(other.get(path))
        assert other.get(made.judging).status_code == 401
        other.follow(other.post(path))
        assert fields_of(other.get(made.judging))["item"] == item
        assert "Stews" in text_of(other.get("/judge"))


# --- own ratings, settings, leaving ---


def test_own_ratings_can_be_changed(judge: Browser, engine: Engine, made: Made) -> None:
    rate(judge, made, 2)
    listed = judge.get(f"{made.judging}/ratings")
    found = re.search(rf"{made.judging}/ratings/[\w-]+", listed.text)
    assert found
    page = judge.get(found[0])
    assert "You said pass" in text_of(page)
    judge.post(found[0], {"rating": "0", "comment": "on second thoughts"})
    assert ratings(engine) == [(1, 0, "on second thoughts")]
    assert "changed once" in text_of(judge.get(f"{made.judging}/ratings"))
    assert judge.get(f"{made.judging}/ratings/{uuid.uuid4()}").status_code == 404
    assert judge.get(f"{made.judging}/ratings?page=9").status_code == 404


def test_quick_mode_is_announced_and_rates_at_once(judge: Browser, engine: Engine, made: Made) -> None:
    assert 'type="radio"' in judge.get(made.judging).text
    changed = judge.post(f"{made.judging}/settings", {"mode": "quick", "shortcuts": "1"})
    page = judge.follow(changed)
    assert "one key or click rates at once" in text_of(page)
    assert 'type="radio"' not in page.text
    judge.post(made.judging, fields_of(page) | {"do": "unclear"})
    assert ratings(engine) == [(1, 1, None)]


def test_a_study_in_quick_mode_says_so_before_the_first_item(browser: Browser, engine: Engine) -> None:
    made = plain_study(engine, careful=False)
    assert "one key or click rates at once" in text_of(browser.get(invitation(engine, made)))
    join(browser, engine, made)
    said = []
    for _ in range(6):
        page = browser.get(made.judging)
        assert 'type="radio"' in page.text  # training is always confirmed
        answer = browser.post(made.judging, fields_of(page) | {"do": "rate", "rating": "0"})
        said.append("From here on one key or click rates at once" in text_of(answer))
    assert said == [False] * 5 + [True]
    assert 'type="radio"' not in browser.get(made.judging).text


def test_stop_and_go_on(judge: Browser, engine: Engine, made: Made) -> None:
    rate(judge, made, 2)
    stopped = judge.follow(judge.post(f"{made.judging}/stop"))
    assert "You have stopped" in text_of(stopped)
    assert "STEW-42" in text_of(stopped)
    judge.post(f"{made.judging}/go-on")
    assert "1 rated and saved" in text_of(judge.get(made.judging))
    assert ratings(engine) == [(1, 2, None)]


def test_withdrawing_takes_a_tick_and_deletes(judge: Browser, engine: Engine, made: Made) -> None:
    rate(judge, made, 2)
    unsure = judge.post(f"{made.judging}/withdraw")
    assert unsure.status_code == 422
    assert ratings(engine) == [(1, 2, None)]
    gone = judge.follow(judge.post(f"{made.judging}/withdraw", {"sure": "1"}))
    assert "You have withdrawn" in text_of(gone)
    assert ratings(engine) == []


def test_two_judges_of_one_browser_profile_stay_apart(judge: Browser, engine: Engine, made: Made) -> None:
    """The invitation leads back to who this browser is already."""
    again = judge.get(invitation(engine, made))
    assert again.headers["location"] == made.judging


def test_pages_of_judges_need_the_judge(browser: Browser, made: Made) -> None:
    for page in ("", "/ratings", "/settings", "/leave", "/instructions"):
        response = browser.get(made.judging + page)
        assert response.status_code == 401
        assert "Stews" not in response.text
    for page in ("", "/comment", "/beat", "/stay", "/stop", "/withdraw", "/settings"):
        assert browser.post(made.judging + page).status_code == 401
    assert browser.get(f"/judge/{uuid.uuid4()}").status_code == 401


def test_roles_do_not_open_a_judges_pages(browser: Browser, engine: Engine, made: Made) -> None:
    browser.sign_in(make_person(engine, Role.ADMIN))
    assert browser.get(made.judging).status_code == 401


def test_time_at_work_counts_between_beats(judge: Browser, engine: Engine, made: Made) -> None:
    item = fields_of(judge.get(made.judging))["item"]
    assert judge.post(f"{made.judging}/beat", {"item": item, "active": "1"}).status_code == 204
    with engine.begin() as connection:
        connection.execute(text("UPDATE study_judge SET beat_at = beat_at - interval '20 seconds'"))
    assert judge.post(f"{made.judging}/beat", {"item": item, "active": ""}).status_code == 204
    with engine.begin() as connection:
        assert 20_000 <= connection.execute(text("SELECT active_ms FROM study_judge")).scalar_one() < 25_000
        connection.execute(text("UPDATE study_judge SET active_ms = 1810000"))
    assert "A break now does your judgement good" in text_of(judge.get(made.judging))


def test_what_is_typed_is_kept_before_it_is_sent(judge: Browser, made: Made) -> None:
    item = fields_of(judge.get(made.judging))["item"]
    assert judge.post(f"{made.judging}/comment", {"item": item, "comment": "half"}).status_code == 204
    assert ">\nhalf</textarea>" in judge.get(made.judging).text
    other = {"item": str(uuid.uuid4()), "comment": "half"}
    assert judge.post(f"{made.judging}/comment", other).status_code == 404


def test_staying_in_prolongs_the_session(judge: Browser, engine: Engine, made: Made) -> None:
    with engine.begin() as connection:
        connection.execute(text("UPDATE study_session SET expires_at = now() + interval '1 minute'"))
    assert int(judge.post(f"{made.judging}/stay").text) > 3600
    assert judge.get(made.judging).status_code == 200
