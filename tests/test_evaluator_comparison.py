"""Two evaluators on the same conversations, checked by a small example worked by hand."""

import json

import pytest
from sqlalchemy import Engine

from app import models
from app.db import open_session
from app.endpoints import local_account
from app.errors import InvalidInput, NotFound
from app.evaluation import RULES_VERSION
from app.evaluators import evaluator_comparison, find_any, flips, rating_evaluators, scope_of
from app.outcomes import Outcome
from app.protocol import builtin_protocol
from app.runs.planning import Selection
from app.settings import Settings
from app.statistics import wilson
from tests.board_help import finish
from tests.evaluator_help import another_evaluator, rate_too
from tests.factories import Shop, benchmark
from tests.report_help import unexplained

PASS, UNCLEAR, FAIL = Outcome.PASS, Outcome.UNCLEAR, Outcome.FAIL
TWO = Selection(scenarios=("sc1", "sc2"), variants=("standard", "control"), probes=True)


def test_a_worked_example(engine: Engine, settings: Settings) -> None:
    """Two models, 8 cases, two scenarios: 32 standard conversations, rated by the rules and by another.

    Model x passes all under the rules; y passes sc1 only. The other evaluator turns x's sc1 to unclear, but
    for one conversation where it has no verdict, and passes all of y. So x and y change places.
    """
    shop = Shop(engine, settings, benchmark(per_category=2, probes=1), builtin_protocol())
    x, y = (shop.submit("http://127.0.0.1:9/v1", model=name, selection=TWO) for name in ("x", "y"))
    finish(engine, x, lambda *_: PASS)
    finish(engine, y, lambda _c, scenario, *_: PASS if scenario == "sc1" else FAIL)
    other = another_evaluator(engine)
    again = another_evaluator(engine, repeat_of=other)
    left_out = "severe_allergy-001"

    def of_x(case: str, scenario: str, *_: object) -> Outcome | None:
        return PASS if scenario != "sc1" else None if case == left_out else UNCLEAR

    rate_too(engine, x, other, of_x)
    rate_too(engine, y, other, lambda *_: PASS)
    # Once more: of x's 15 two come out otherwise, one of them as a pass.
    rate_too(
        engine, x, again,
        lambda case, scenario, *_: {"severe_allergy-002": PASS, "severe_phobia-001": FAIL}.get(case, UNCLEAR)
        if scenario == "sc1" else None,
    )  # fmt: skip
    with open_session(engine) as session:
        person = local_account(session)
        rules = find_any(session, person, f"rules@{RULES_VERSION}")
        assert [one.id for one, _ in rating_evaluators(session, person)] == [rules.id, other.id, again.id]
        assert find_any(session, person, "other").id == other.id
        assert find_any(session, person, "other@1#2").id == again.id
        runs = scope_of(session, person, rules, other)
        assert {run.id for run in runs} == {x.id, y.id}
        found = evaluator_comparison(session, runs, rules, other)
        json.dumps(found, allow_nan=False)
        assert unexplained(found) == []

        assert found["conversations"] == {"both": 31, "only_a": 1, "only_b": 0}
        # x: 7 pass → unclear; y: 8 fail → pass. Controls and probes are left out.
        assert found["flips"]["n"] == 15
        assert found["flips"]["rate"] == 15 / 31
        assert found["flips"]["ci"] == wilson(15, 31)
        assert found["flips"]["steps"] == [
            {"a": "fail", "b": "pass", "n": 8}, {"a": "pass", "b": "unclear", "n": 7},
        ]  # fmt: skip
        assert (found["flips"]["only_a_passes"], found["flips"]["only_b_passes"]) == (7, 8)
        assert found["agreement"]["confusion"] == [[0, 0, 8], [0, 0, 0], [0, 7, 16]]
        assert found["agreement"]["three_level"]["percent"] == 16 / 31
        assert found["agreement"]["pass_vs_rest"]["n"] == 31
        assert "The second evaluator rates higher on 8" in found["agreement"]["direction"].replace(
            "the second", "The second"
        )
        assert found["by"]["scenario"]["sc1"]["flips"]["n"] == 7
        assert found["by"]["model"]["y"]["flips"] | {"ci": None, "pass_ci": None} == {
            "n": 8, "of": 16, "rate": 0.5, "ci": None, "pass_n": 8, "pass_rate": 0.5, "pass_ci": None,
            "only_a_passes": 0, "only_b_passes": 8, "steps": [{"a": "fail", "b": "pass", "n": 8}],
        }  # fmt: skip
        assert next(iter(found["by"]["category"])) == "severe_allergy"

        rows = {row["model"]: row for row in found["rows"]}
        assert (rows["x"]["a"]["pass_rate"], rows["x"]["b"]["pass_rate"]) == (1, 0.5)
        assert (rows["y"]["a"]["pass_rate"], rows["y"]["b"]["pass_rate"]) == (0.5, 1)
        assert rows["x"]["n"] == 15, "on what both have an outcome for"
        assert rows["y"]["difference"] == 0.5
        assert rows["x"]["a"]["rank"] == [1, 1]
        assert rows["x"]["b"]["rank"] == [2, 2]
        assert found["exchanged"] == [{"above": "x", "below": "y", "a": 0.5, "b": -0.5}]

        assert found["repeats"]["a"] is None
        assert "--repeats" in found["undefined"]["repeats.a"]
        repeats = found["repeats"]["b"]
        assert (repeats["k"], repeats["conversations"], repeats["flipped"]) == (2, 7, 2)
        assert (repeats["flip_rate"], repeats["pass_flip_rate"]) == (2 / 7, 1 / 7)
        assert found["effort"]["a"]["verdicts"] == 2 * (8 * 4) + 2 * 4, (
            "all of its verdicts, whatever they are on"
        )
        assert found["effort"]["b"]["cost_usd"] == 0
        assert found["undefined"]["effort.b.seconds_median"] == "it makes no calls"

        # --- which they are ---
        page = flips(session, person, [x.id, y.id], rules, other)
        assert (page.total, page.pages, len(page.items)) == (15, 2, 12)
        assert {(one.model, one.a.outcome, one.b.outcome) for one in page.items} == {
            ("x", PASS, UNCLEAR), ("y", FAIL, PASS),
        }  # fmt: skip
        only = flips(
            session,
            person,
            [x.id, y.id],
            rules,
            other,
            ratings=(0, 2),
            scenario="sc2",
            category="severe_phobia",
        )
        assert [one.case for one in only.items] == ["severe_phobia-001", "severe_phobia-002"]
        assert flips(session, None, [x.id, y.id], rules, other).total == 0, (
            "nobody else sees unpublished runs"
        )

        # --- what cannot be compared ---
        with pytest.raises(InvalidInput, match="twice"):
            scope_of(session, person, rules, rules)
        lonely = models.Evaluator(kind="rules", name="lonely", version="1", fingerprint="lonely")
        session.add(lonely)
        session.flush()
        with pytest.raises(NotFound, match="no run in common: rate one again"):
            scope_of(session, person, rules, lonely)
        with pytest.raises(NotFound, match=r"Those that have rated: .*other@1#2"):
            find_any(session, person, "nobody")
