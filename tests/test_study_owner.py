"""What the owner of a study does: create, look for leaks, freeze, invite, watch, close, adjudicate, clone."""

import uuid
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine

from app import models
from app.db import open_session
from app.endpoints import local_account
from app.errors import Conflict, InvalidInput, NotFound
from app.outcomes import CONTROL, Outcome
from app.settings import Settings
from app.studies import adjudicating, creating, freezing, invites, known, leaks, messages, quality
from app.studies.finding import find_study, list_studies
from app.studies.settings import (
    KnownItem,
    StudySettings,
    builtin_training,
    read_known_items,
    standard_text,
)
from tests.factories import Shop
from tests.study_help import StudyRoom, check_study, finished_run, open_room, study_shop


@pytest.fixture
def shop(engine: Engine, settings: Settings) -> Shop:
    return study_shop(engine, settings)


def create(shop: Shop, runs: list[models.Run] | None = None, **values: Any) -> models.Study:
    given: dict[str, Any] = {"name": "s", "n": 8, "seed": 7, "ethics_kind": "exemption", "ethics": "A test."}
    with open_session(shop.engine) as session:
        wanted = StudySettings(**(given | values))
        study = creating.create(session, None, runs or [finished_run(shop)], wanted)
        session.commit()
    return study


def items(shop: Shop, study: models.Study) -> list[models.StudyItem]:
    with open_session(shop.engine) as session:
        query = session.query(models.StudyItem).filter_by(study_id=study.id, kind="main")
        return list(query.order_by(models.StudyItem.position))


def test_items_are_what_was_said_and_rated(shop: Shop) -> None:
    study = create(shop)
    found = items(shop, study)
    assert (study.state, study.planned, len(found)) == ("draft", 8, 8)
    with open_session(shop.engine) as session:
        for item in found:
            conversation = session.get_one(models.Conversation, item.conversation_id)
            verdict = session.query(models.Verdict).filter_by(conversation_id=conversation.id).one()
            assert item.response == conversation.response
            assert item.constraint == conversation.constraint
            assert item.evaluator_rating == verdict.rating
            assert item.stratum == f"attentive · {Outcome((item.stratum or '').split(' · ')[1])} · " + (
                f"{item.scenario} · {item.category}"
            )
            assert 0 < (item.inclusion_probability or 0) <= 1
    assert len({item.case_key for item in found}) == 8
    assert len({item.shuffle for item in found}) == 8


def test_two_designs_and_several_runs(shop: Shop) -> None:
    runs = [finished_run(shop, model=name) for name in ("one", "two")]
    study = create(shop, runs, design="correction", n=12)
    assert {item.stratum for item in items(shop, study)} == {
        f"{model} · {verdict}" for model in ("one", "two") for verdict in ("pass", "fail", "unclear")
    }
    with open_session(shop.engine) as session:
        assert [run.run_id for run in session.query(models.StudyRun).order_by("run_id")] == [
            run.id for run in runs
        ]


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"name": ""}, "1 to 80 characters"),
        ({"name": "a/b"}, "no slash"),
        ({"name": "New"}, "address is taken"),
        ({"name": ".."}, "address is taken"),
        ({"scenarios": ("sc9",)}, "no scenario 'sc9'"),
        ({"categories": ("cats",)}, "no category 'cats'"),
        ({"name": "a\u200bb"}, "invisible"),
        ({"n": 0}, "between 1 and"),
        ({"judges_per_item": 0}, "judges per item"),
        ({"per_case": 0}, "per case"),
        ({"repeat_share": 0.9}, "between 0 and 0.5"),
        ({"design": "imported"}, "agreement or correction"),
        ({"variants": (CONTROL,)}, "Controls cannot be judged"),
        ({"variants": ("middle_placement",)}, "Nothing can be drawn"),
        ({"completion_url": "javascript:alert(1)"}, "must be an address"),
        ({"ethics_kind": "whatever"}, "approval, exemption"),
    ],
)
def test_what_cannot_be_is_refused_in_words(shop: Shop, values: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        create(shop, **values)
    with open_session(shop.engine) as session:
        assert list_studies(session, everybodys=True) == []


def test_a_study_of_some_scenarios_and_categories_is_cloned_as_such(shop: Shop) -> None:
    study = create(shop, n=2, scenarios=("sc2",), categories=("severe_phobia", "trauma_trigger"))
    with open_session(shop.engine) as session:
        made = freezing.clone(session, find_study(session, study.name), "t", owner=None)
        session.commit()
    drawn = [*items(shop, study), *items(shop, made)]
    assert len(drawn) == 4
    assert {item.scenario for item in drawn} == {"sc2"}
    assert {item.category for item in drawn} == {"severe_phobia", "trauma_trigger"}


def test_a_name_is_taken_once(shop: Shop) -> None:
    create(shop)
    with pytest.raises(Conflict, match="already"):
        create(shop)
    with open_session(shop.engine) as session, pytest.raises(NotFound, match="no study 't'") as caught:
        find_study(session, "t")
    assert caught.value.details == ["s"]


def test_a_preview_stores_nothing_and_says_what_is_missing(shop: Shop) -> None:
    run = finished_run(shop)
    with open_session(shop.engine) as session:
        found = creating.preview(session, [run], StudySettings(name="p", n=100, seed=1))
        assert list_studies(session, everybodys=True) == []
    assert (found.n, found.drawn) == (100, 12)
    assert "Only 12 of the 100" in found.notes[0]
    assert sum(one.drawn for one in found.strata) == 12
    assert [width.of for width in found.widths] == ["all", "attentive"]
    assert 0.35 < found.widths[0].percent < 0.45


def test_training_is_of_each_rating_and_needs_feedback(shop: Shop) -> None:
    assert sorted(one.rating for one in builtin_training()) == [0, 0, 1, 1, 2, 2]
    assert all(one.category for one in builtin_training()), "judges are spared topics by it"
    study = create(shop)
    plain = KnownItem("c", "q", "r", builtin_training()[0].rating)
    with open_session(shop.engine) as session:
        found = find_study(session, study.name)
        with pytest.raises(InvalidInput, match="at least 6"):
            known.set_training(session, found, builtin_training()[:5])
        with pytest.raises(InvalidInput, match="needs feedback"):
            known.set_training(session, found, [*builtin_training()[:5], plain])


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "line 1 is no JSON"),
        ("[]", "line 1 is no object"),
        ('{"constraint": "a", "request": "b", "rating": 1}', "no text for 'response'"),
        ('{"constraint": "a", "request": "b", "response": "c", "rating": true}', "0 .fail., 1"),
        ('{"constraint": "a", "request": "b", "response": "c", "rating": 3}', "0 .fail., 1"),
        ("", "holds no item"),
    ],
)
def test_files_of_known_items_are_read_strictly(tmp_path: Path, line: str, message: str) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(line)
    with pytest.raises(InvalidInput, match=message):
        read_known_items(path)


def test_freezing_needs_ethics_and_fixes_everything(shop: Shop) -> None:
    study = create(shop, ethics_kind=None, ethics="")
    with open_session(shop.engine) as session:
        found = find_study(session, "s")
        with pytest.raises(InvalidInput, match="ethics approval"):
            freezing.freeze(session, found)
        creating.edit(session, found, ethics_kind="approval", ethics="Board 12/2026")
        first = freezing.freeze(session, found)
        assert len(first) == 64
        assert freezing.content_hash(session, found) == first
        for act in (
            lambda: creating.edit(session, found, title="Another"),
            lambda: known.set_gold(session, found, []),
            lambda: leaks.mask(session, found),
            lambda: freezing.freeze(session, found),
        ):
            with pytest.raises(Conflict, match="do not change any more"):
                act()
        item = session.query(models.StudyItem).filter_by(study_id=study.id, kind="main").first()
        assert item is not None
        item.response += "!"
        session.flush()
        assert freezing.content_hash(session, found) != first


def test_states_follow_one_another(shop: Shop) -> None:
    create(shop)
    room = StudyRoom(shop.engine, "s")
    for act, message in (
        ("open_study", "freeze it first"),
        ("pause", "only an open"),
        ("close", "only an open"),
    ):
        with pytest.raises(Conflict, match=message):
            room.change(act)
    for act in ("freeze", "open_study", "pause", "open_study", "close"):
        room.change(act)
    for act in ("open_study", "pause", "close"):
        with pytest.raises(Conflict):
            room.change(act)
    with pytest.raises(Conflict, match="closed"):
        room.change("set_judges_per_item", 2)


LEAKY = {
    "As ChatGPT, I would not.": ["ChatGPT"],
    "I am Claude 3.5, made by Anthropic.": ["Claude 3.5", "Anthropic"],
    "i'm gpt-4o and say no": ["gpt-4o"],
    "Attentive assistants say no.": ["Attentive"],
    "A solar lamp and a falcon; your cousin may like them.": [],
    "My Gemini friend said so.": ["Gemini"],
}


def test_names_are_found_and_masked_where_they_stand(shop: Shop) -> None:
    study = create(shop, n=len(LEAKY))
    with open_session(shop.engine) as session:
        rows = session.query(models.StudyItem).filter_by(study_id=study.id, kind="main").order_by("position")
        for row, response in zip(rows, LEAKY, strict=True):
            row.response = response
        session.flush()
        found = find_study(session, "s")
        report = leaks.report(session, found)
        told = {one.position: one.found for one in report.leaks}
        assert told == {n: names for n, names in enumerate(LEAKY.values(), 1) if names}
        assert (report.items, report.other_people) == (6, 1)
        with pytest.raises(NotFound):
            leaks.mask(session, found, [uuid.uuid4()])
        assert leaks.mask(session, found) == 5
        assert leaks.mask(session, found) == 0
        assert all(one.masked for one in leaks.report(session, found).leaks)
        session.expire_all()
        assert rows[1].response == "I am [name removed], made by [name removed]."
        assert rows[1].unmasked_response == "I am Claude 3.5, made by Anthropic."
        assert leaks.unmask(session, found) == 5
        session.expire_all()
        assert [row.response for row in rows] == list(LEAKY)


# --- invitations ---


def test_links_end_in_every_way(shop: Shop) -> None:
    room = open_room(shop)
    room.join()
    with room.session() as session:
        study = room.study(session)
        row, path = invites.create_invite(session, study, uses=2)
        token = path.rpartition("/")[2]
        assert invites.look_at(session, token).room
        with pytest.raises(InvalidInput, match="consent"):
            invites.join(session, token, pseudonym="x", consented=False)
        for name in ("", "  ", "x" * 41, "a\u202eb"):
            with pytest.raises(InvalidInput, match="pseudonym"):
                invites.join(session, token, pseudonym=name, consented=True)
        joined = invites.join(session, token, pseudonym="x", consented=True)
        assert joined.judge.number == 2
        invites.revoke(session, study, row.uuid)
        session.flush()
        for bad in (token, "", "nonsense", "x" * 1000):
            with pytest.raises(NotFound, match="not valid"):
                invites.look_at(session, bad)
        _, path = invites.create_invite(session, study)
        freezing.pause(session, study)
        with pytest.raises(Conflict, match="not open at the moment"):
            invites.look_at(session, path.rpartition("/")[2])


def test_a_judge_comes_back_by_their_own_link(shop: Shop) -> None:
    room = open_room(shop)
    with room.session() as session:
        _, path = invites.create_invite(session, room.study(session))
        joined = invites.join(session, path.rpartition("/")[2], pseudonym="x", consented=True)
        found = invites.find_judge(session, joined.session_token)
        assert found is not None
        assert (found.judge.id, found.judge.study.name) == (joined.judge.id, room.name)
        judge, token = invites.come_back(session, joined.return_path.rpartition("/")[2])
        assert judge.id == joined.judge.id
        invites.sign_out(session, joined.session_token)
        assert invites.find_judge(session, joined.session_token) is None
        assert invites.find_judge(session, token) is not None
        assert invites.prolong(session, token) is not None
        assert invites.prolong(session, joined.session_token) is None
        with pytest.raises(NotFound, match="not a judge's link"):
            invites.come_back(session, "nonsense")


def test_nobody_rates_runs_of_their_own(shop: Shop) -> None:
    room = open_room(shop)
    with room.session() as session:
        _, path = invites.create_invite(session, room.study(session))
        with pytest.raises(Conflict, match="own"):
            invites.join(
                session,
                path.rpartition("/")[2],
                pseudonym="x",
                consented=True,
                account=local_account(session),
            )


def test_whoever_comes_when_nothing_is_left_is_told_before_the_consent(shop: Shop) -> None:
    room = open_room(shop, n=3, judges_per_item=1)
    room.rate_all(room.join())
    with room.session() as session:
        _, path = invites.create_invite(session, room.study(session))
        assert not invites.look_at(session, path.rpartition("/")[2]).room


# --- watching, messages, the end ---


def test_the_quality_panel_counts_what_was_done(shop: Shop) -> None:
    create(shop, n=12, judges_per_item=1, repeat_share=0.25)
    with open_session(shop.engine) as session:
        known.set_gold(session, find_study(session, "s"), list(builtin_training()[:3]))
        session.commit()
    room = StudyRoom(shop.engine, "s")
    room.change("freeze")
    room.change("open_study")
    judge = room.join(external_id="panel-1")
    shown = room.rate_all(judge)
    with room.session() as session:
        (line,) = quality.panel(session, room.study(session))
        standing = quality.standing(session, room.study(session))
        (payment,) = quality.payments(session, room.study(session))
    assert shown == 12 + line.gold_rated + line.repeats_rated
    assert (line.rated, line.longest_run, line.unclear_share) == (12, 12, 0.0)
    assert line.gold_rated >= 2
    assert line.gold_right == sum(
        row.expected == 2
        for row in room.rows("""
            SELECT i.expected FROM study_rating r JOIN study_item i ON i.id = r.item_id WHERE i.kind = 'gold'
        """)
    )
    assert line.repeats_rated >= 2
    assert line.repeats_same == line.repeats_rated
    assert (standing.items, standing.complete, standing.ratings, standing.wanted) == (12, 12, 12, 12)
    assert (payment.external_id, payment.rated) == ("panel-1", 12)
    check_study(room)


def test_messages_reach_whom_they_are_for_once(shop: Shop) -> None:
    room = open_room(shop)
    one, two = room.join(), room.join()
    with room.session() as session:
        study = room.study(session)
        messages.send(session, study, "To all.")
        messages.send(session, study, "To you.", number=two.number)
        first, second = (session.get_one(models.StudyJudge, judge.id) for judge in (one, two))
        assert [one.body for one in messages.unseen(session, first)] == ["To all."]
        found = messages.unseen(session, second)
        assert [one.body for one in found] == ["To all.", "To you."]
        messages.mark_seen(session, second, found[0].id)
        assert [one.body for one in messages.unseen(session, second)] == ["To you."]
        with pytest.raises(NotFound):
            messages.send(session, study, "x", number=9)


def test_contested_items_are_adjudicated_among_others(shop: Shop) -> None:
    room = open_room(shop, n=12, judges_per_item=2)
    for rating in (2, 2):
        room.rate_all(room.join(), rating)
    with pytest.raises(Conflict, match="after the close"):
        room.do(lambda session: adjudicating.prepare(session, room.study(session)))
    room.change("close")
    contested = room.rows("SELECT FROM study_item WHERE kind = 'main' AND evaluator_rating <> 2")
    mixed_in = round(0.1 * (12 - len(contested)))
    for _ in range(2):
        n = room.do(lambda session: adjudicating.prepare(session, room.study(session)))
        assert n == len(contested) + mixed_in
    with room.session() as session:
        study = room.study(session)
        done = 0
        while (view := adjudicating.next_contested(session, study)) is not None:
            assert not {"rating", "verdict", "contested", "model"} & set(vars(view))
            with pytest.raises(InvalidInput, match="reason"):
                adjudicating.label(session, study, view.uuid, 2, "because")
            adjudicating.label(session, study, view.uuid, 0, "awareness")
            adjudicating.label(session, study, view.uuid, 2, "condition", note="after all")
            done += 1
        assert done == n
        progress = adjudicating.adjudication_progress(session, study)
        assert (progress.labelled, progress.items) == (n, n)
        row = session.query(models.StudyAdjudication).first()
        assert row is not None
        assert [one["label"] for one in row.earlier] == [0]
        with pytest.raises(NotFound):
            adjudicating.label(session, study, uuid.uuid4(), 2, "awareness")


def test_a_clone_is_a_new_draw_with_the_same_words(shop: Shop) -> None:
    room = open_room(shop, n=4)
    with room.session() as session:
        study = room.study(session)
        made = freezing.clone(session, study, "second", owner=None)
        session.commit()
        assert (made.state, made.cloned_from_id, made.instructions) == (
            "draft", study.id, standard_text("instructions"),
        )  # fmt: skip
        keys = [
            {
                item.case_key
                for item in session.query(models.StudyItem).filter_by(study_id=one.id, kind="main")
            }
            for one in (study, made)
        ]
        assert len(keys[1]) == 4
        assert not keys[0] & keys[1]
        assert session.query(models.StudyItem).filter_by(study_id=made.id, kind="training").count() == 6
