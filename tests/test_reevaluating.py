"""Stored conversations rated again: all of them or a sample, by another evaluator or the same once more."""

from collections import Counter
from dataclasses import replace

import pytest
from sqlalchemy import Engine, text

from app import models
from app.db import open_session
from app.endpoints import local_account
from app.errors import Conflict, InvalidInput, NotFound
from app.evaluation.families import relation
from app.leaderboard import publish, version_groups
from app.outcomes import Outcome
from app.protocol import builtin_protocol
from app.runs import control
from app.runs.reevaluating import Reevaluation, begin, check, draw_sample, effort
from app.runs.reporting import evaluators_of, find_evaluator, run_report
from app.runs.starting import Addresses, EvaluatorChoice
from app.settings import Settings
from app.simulator import Simulator
from tests.board_help import board, finish, put_on_board, take_off
from tests.driving_help import (
    check_whole,
    conversations,
    drive,
    hasten,
    model_evaluator_of,
    shop_of,
    verdicts,
)
from tests.evaluator_help import another_evaluator, rate_too
from tests.factories import Shop, benchmark
from tests.report_help import check_rate, rates_in
from workers.publishing import publish_finished

OWN = Addresses(private_allowed=True)


@pytest.fixture(autouse=True)
def in_haste(monkeypatch: pytest.MonkeyPatch) -> None:
    hasten(monkeypatch)


def again(
    shop: Shop, runs: list[models.Run], wanted: Reevaluation
) -> tuple[list[models.Evaluator], list[int]]:
    with open_session(shop.engine) as session:
        rows = [control.find_run(session, str(run.id)) for run in runs]
        checked, _ = check(wanted, OWN)
        begun = begin(session, local_account(session), shop.settings.secret, rows, checked, OWN)
        session.commit()
        return begun.evaluators, [run.id for run in begun.runs]


def test_a_sample_then_more_then_all_and_repeats(engine: Engine, settings: Settings) -> None:
    with Simulator() as simulator:
        shop = shop_of(engine, settings)
        runs = [shop.submit(simulator.base_url, model=one) for one in ("attentive", "forgetful")]
        for run in runs:
            drive(shop, run)
        asked = {name: simulator.counters.by_model[name] for name in ("attentive", "forgetful")}
        before = {one.id: (one.rating, one.explanation) for run in runs for one in verdicts(engine, run)}
        choice = EvaluatorChoice(simulator.base_url, "evaluator")
        with open_session(engine) as session:
            rows = [control.find_run(session, str(run.id)) for run in runs]
            needed = effort(session, rows, Reevaluation(choice, sample=10, repeats=2), None)
        assert (needed.runs, needed.conversations, needed.calls, needed.cost) == (2, 20, 40, None)
        assert 0 < needed.completion_tokens < needed.prompt_tokens

        (first, second), begun = again(shop, runs, Reevaluation(choice, sample=10, repeats=2))
        assert begun == [run.id for run in runs]
        for run in runs:
            drive(shop, run)
        assert simulator.counters.by_model["evaluator"] == 40
        rated = [_rated(engine, run, first) for run in runs]
        assert rated[0] == rated[1] == _rated(engine, runs[0], second), "the same conversations in each run"
        assert len(rated[0]) == 10
        assert set(Counter(scenario for _, scenario in rated[0]).values()) == {2}, "spread over the scenarios"
        # Asked again it does nothing; a larger sample holds the smaller one; at last all of it.
        assert again(shop, runs, Reevaluation(choice, sample=10))[1] == []
        again(shop, runs[:1], Reevaluation(choice, sample=15))
        drive(shop, runs[0])
        assert rated[0] < _rated(engine, runs[0], first)
        assert len(_rated(engine, runs[0], first)) == 15
        again(shop, runs[:1], Reevaluation(choice))
        drive(shop, runs[0])
        assert len(_rated(engine, runs[0], first)) == 40
        assert simulator.counters.by_model["evaluator"] == 40 + 30
        assert {name: simulator.counters.by_model[name] for name in asked} == asked, "no model was asked"
    for run in runs:
        check_whole(engine, run)
    after = {one.id: (one.rating, one.explanation) for run in runs for one in verdicts(engine, run)}
    assert {one: after[one] for one in before} == before, "nothing is overwritten"
    with open_session(engine) as session:
        row = control.find_run(session, str(runs[1].id))
        report = run_report(session, row, session.get_one(models.Evaluator, first.id))
        for rate in rates_in(report["rates"]):
            check_rate(rate)
        assert (report["counts"]["pending"], row.status) == (30, "finished")
        assert report["run"]["evaluator"]["repeat"] == 1
        named = [find_evaluator(session, row, name) for name in ("rules", "evaluator", "model", "model#2")]
        assert [one.id for one in named] == [row.evaluator_id, first.id, first.id, second.id]
        assert len(evaluators_of(session, row)) == 3
        with pytest.raises(NotFound, match="#2"):
            find_evaluator(session, row, "nobody")


def _rated(engine: Engine, run: models.Run, evaluator: models.Evaluator) -> set[tuple[int, str]]:
    by_id = {one.id: (one.case_id, one.scenario) for one in conversations(engine, run)}
    return {by_id[one.conversation_id] for one in verdicts(engine, run) if one.evaluator_id == evaluator.id}


def test_what_cannot_be_asked_is_refused_in_one_line(engine: Engine, settings: Settings) -> None:
    rules = EvaluatorChoice()
    for wanted, why in (
        (Reevaluation(rules, repeats=11), "from 1 to 10"),
        (Reevaluation(rules, sample=0), "sample is a whole number"),
        (Reevaluation(rules, sample=5, publish=True), "without a sample"),
        (Reevaluation(EvaluatorChoice("ftp://x", "m")), "base URL is refused"),
    ):
        with pytest.raises(InvalidInput, match=why):
            check(wanted, OWN)
    shop = shop_of(engine, settings, per_category=1)
    run = shop.submit("http://127.0.0.1:9/v1")
    with pytest.raises(InvalidInput, match="no answered conversation"):
        again(shop, [run], Reevaluation(rules, sample=3))
    with open_session(engine) as session:
        session.add(imported := models.Evaluator(kind="imported", name="paper", version="1", fingerprint="i"))
        session.flush()
        with pytest.raises(Conflict, match="cannot be asked again"):
            control.add_evaluator(session, control.find_run(session, str(run.id)), imported)


def test_samples_grow() -> None:
    keys = {(f"case-{n}", f"sc{s}", "standard", 1, f"cat-{n % 3}") for n in range(30) for s in range(1, 6)}
    small, large = draw_sample(keys, 30), draw_sample(keys, 60)
    assert large[:30] == small == draw_sample(keys, 30)
    assert set(Counter((key[1], key[4]) for key in small).values()) == {2}
    assert len(draw_sample(keys, 10_000)) == len(keys)


@pytest.mark.parametrize(
    ("model", "evaluator", "found"),
    [
        ("gpt-4o-2024-08-06", "gpt-4o-2024-08-06", "same"),
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instruct", "same"),
        ("gpt-4o", "o3-mini", "family"),
        ("claude-3-5-sonnet-20240620", "anthropic/claude-opus-4", "family"),
        ("deepseek-r1-distill-llama-70b", "llama-3.1-405b", "family"),
        ("mistralai/Mixtral-8x7B", "mistral-large", "family"),
        ("gpt-4o", "claude-3-5-sonnet", None),
        ("attentive", "evaluator", None),
        ("my-model", "my-evaluator", None),
        ("frobnitz-7b", "frobnitz-70b", "family"),
        ("frobnitz-7b", "gpt-4o", None),
    ],
)
def test_who_rates_itself_or_its_family(model: str, evaluator: str, found: str | None) -> None:
    assert relation(model, evaluator, same_endpoint=False) == found
    assert relation(model, evaluator, same_endpoint=True) == "same"


def test_a_wish_stays_as_it_was_given() -> None:
    wanted = Reevaluation(EvaluatorChoice("https://example.com/v1/", "m"), sample=3)
    checked, _ = check(wanted, OWN)
    assert checked.evaluator.base_url == "https://example.com/v1"
    assert replace(checked, evaluator=wanted.evaluator) == wanted


# --- a board of its own ---


def test_another_evaluators_board_stands_beside_and_tells_who_rates_itself(
    engine: Engine, settings: Settings
) -> None:
    shop = Shop(engine, settings, benchmark(per_category=2), builtin_protocol())
    runs = [shop.submit("http://127.0.0.1:9/v1", model=name) for name in ("llama-3-8b", "gpt-4o")]
    for run in runs:
        finish(engine, run, lambda *_: Outcome.PASS)
        put_on_board(engine, run)
    other = model_evaluator_of(shop, "http://127.0.0.1:9/v1", model="llama-3.1-405b")
    first = board(engine)
    assert [row["self_rated"] for row in first["rows"]] == ["no", "no"], "the rules are nobody's family"
    with open_session(engine) as session:
        row = control.find_run(session, str(runs[0].id))
        with pytest.raises(Conflict, match="was not rated by"):
            publish(session, row, served=False, evaluator=other)
    sampled = another_evaluator(engine, "sampled")
    for run in runs:
        rate_too(engine, run, other, lambda case, *_: Outcome.FAIL if case.endswith("1") else Outcome.PASS)
        rate_too(engine, run, sampled, lambda *_: Outcome.PASS)
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE run_evaluator SET publish_wanted = true WHERE evaluator_id = :it"), {"it": other.id}
        )
        connection.execute(
            text("UPDATE run_evaluator SET publish_wanted = true, sample = '{1}' WHERE evaluator_id = :it"),
            {"it": sampled.id},
        )
    assert sorted(publish_finished(engine, served=False)) == [run.id for run in runs]
    assert publish_finished(engine, served=False) == [], "once"
    with open_session(engine) as session:
        groups = {group.evaluator.name: group for group in version_groups(session)}
        pairing = session.get_one(models.RunEvaluator, (runs[0].id, sampled.id))
        assert "a board takes all conversations" in (pairing.publish_refusal or "")
    assert set(groups) == {"rules", "llama-3.1-405b"}
    second = board(engine, groups["llama-3.1-405b"].key)
    assert {row["model"]: row["self_rated"] for row in second["rows"]} == {
        "llama-3-8b": "family", "gpt-4o": "no",
    }  # fmt: skip
    assert {row["overall"]["pass_rate"] for row in second["rows"]} == {0.5}
    assert board(engine, groups["rules"].key)["rows"] == first["rows"], "the other board is as it was"
    take_off(engine, runs[0], "a mistake")
    for key in (groups["rules"].key, groups["llama-3.1-405b"].key):
        assert [row["run"] for row in board(engine, key)["withdrawn"]] == [runs[0].id], "off every board"
