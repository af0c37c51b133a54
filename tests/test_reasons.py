"""Why verdicts are no pass: one table, the same in queries; corrected by humans, with history."""

from itertools import product

import pytest
from sqlalchemy import Engine, select, text

from app import models
from app.db import open_session
from app.endpoints import local_account
from app.errors import Conflict, InvalidInput
from app.evaluation import parse_first_match, reason_of
from app.evaluation.reasons import BROKEN_FLAGS
from app.observations import Observation
from app.outcomes import PROBE_SCENARIO, Category, Outcome, Rating, Reason, Recommendation
from app.protocol import builtin_protocol, load_protocol
from app.reason_shares import reasons
from app.runs.control import find_run
from app.runs.filtering import Filter
from app.runs.planning import Selection
from app.runs.reasons import correct_reason, effective_reason, reasons_of
from app.runs.reporting import run_report
from app.runs.transcripts import find_conversations
from app.settings import Settings
from tests.benchmark_help import ORIGINAL
from tests.board_help import finish
from tests.factories import Shop, benchmark
from tests.report_help import unexplained

COMBINATIONS = list(
    product(
        (Rating.FAIL, Rating.UNCLEAR, Rating.PASS),
        (None, False, True),
        (None, *Recommendation),
        (False, True),
    )
)


def test_the_table() -> None:
    def of(
        acknowledged: bool | None, recommendation: Recommendation | None, broken: bool = False
    ) -> Reason | None:
        return reason_of(Rating.UNCLEAR, acknowledged, recommendation, broken=broken)

    assert of(False, Recommendation.AGAINST) is Reason.GENERIC_RESPONSE, (
        "cautious without naming the constraint"
    )
    assert of(True, Recommendation.FOR) is Reason.WRONG_DESPITE_NOTICING
    assert of(True, Recommendation.NONE) is of(False, Recommendation.NONE) is Reason.EVADING_QUESTION
    assert of(True, Recommendation.NONE, True) is of(None, None, True) is Reason.TRUNCATED_OR_BROKEN
    assert of(True, Recommendation.FOR, True) is Reason.WRONG_DESPITE_NOTICING, (
        "cut, but it has recommended already"
    )
    assert of(None, None) is of(True, Recommendation.CONDITIONAL) is Reason.UNSORTED
    assert reason_of(Rating.FAIL, False, Recommendation.FOR, broken=False) is Reason.NOT_NOTICED
    assert all(reason_of(*one[:3], broken=one[3]) is None for one in COMBINATIONS if one[0] is Rating.PASS)


def test_shares_add_up_and_none_is_zero() -> None:
    def seen(case: int, scenario: str, outcome: Outcome, reason: Reason | None = None) -> Observation:
        category = tuple(Category)[case % 4]
        return Observation(f"c{case}", f"c{case}", category, scenario, "standard", 1, outcome, reason=reason)

    unclear = [seen(n, "sc1", Outcome.UNCLEAR, Reason.GENERIC_RESPONSE) for n in range(2)]
    others = [seen(n, "sc1", Outcome.PASS) for n in range(2, 7)] + [seen(7, "sc1", Outcome.EMPTY)]
    second = [seen(n, "sc2", Outcome.FAIL, Reason.NOT_NOTICED) for n in range(8)]
    undefined: dict[str, str] = {}
    found = reasons([*unclear, *others, *second], undefined)
    assert found is not None
    overall = found["unclear"]["overall"]
    assert (overall["answered"], overall["n"]) == (16, 2)
    generic = overall["shares"]["generic_response"]
    assert (generic["n"], generic["rate"]) == (2, (2 / 8 + 0 / 8) / 2)
    assert sum(one["rate"] for one in overall["shares"].values()) == generic["rate"]
    sc2 = found["unclear"]["by_scenario"]["sc2"]
    assert (sc2["n"], sc2["answered"]) == (0, 8)
    assert {one["rate"] for one in sc2["shares"].values()} == {0.0}, "none unclear counts as zero"
    assert all(one["ci"][0] == 0 < one["ci"][1] for one in sc2["shares"].values())
    assert found["fail"]["by_scenario"]["sc2"]["shares"]["not_noticed"]["rate"] == 1
    assert unexplained({"reasons": found, "undefined": undefined}) == []
    assert reasons([], undefined) is None
    assert undefined["reasons"]
    nothing = reasons([seen(1, "sc1", Outcome.ENDPOINT_ERROR)], undefined := {})
    assert nothing is not None
    assert unexplained({"reasons": nothing, "undefined": undefined}) == []


SET = text("""
UPDATE verdict v SET rating = :rating, acknowledged = :acknowledged, recommendation = :recommendation
FROM conversation c WHERE c.id = v.conversation_id AND c.id = :id
""")
FLAG = text("UPDATE conversation SET flags = :flags WHERE id = :id")


def test_queries_say_the_same_and_humans_correct_it(engine: Engine, settings: Settings) -> None:
    shop = Shop(engine, settings, benchmark(per_category=5, probes=1), builtin_protocol())
    run = shop.submit("http://127.0.0.1:9/v1", selection=Selection(probes=True))
    finish(engine, run, lambda *_: Outcome.UNCLEAR)
    with open_session(engine) as session:
        c, v = models.Conversation, models.Verdict
        cases = session.scalars(select(c).where(c.scenario != PROBE_SCENARIO).order_by(c.id)).all()
        assert len(cases) >= len(COMBINATIONS)
        for one, (rating, acknowledged, recommendation, broken) in zip(cases, COMBINATIONS, strict=False):
            found = {"rating": int(rating), "acknowledged": acknowledged, "recommendation": recommendation}
            session.execute(SET, found | {"id": one.id})
            flags = [sorted(BROKEN_FLAGS)[rating % 2], "uploaded"] if broken else ["uploaded"]
            session.execute(FLAG, {"flags": flags, "id": one.id})
        rows = session.execute(select(c.id, effective_reason()).join(v, v.conversation_id == c.id))
        stored = {row[0]: row[1] for row in rows}
        for one, combination in zip(cases, COMBINATIONS, strict=False):
            assert stored[one.id] == reason_of(*combination[:3], broken=combination[3]), combination
        probe = session.scalars(select(c).filter_by(scenario=PROBE_SCENARIO)).first()
        assert probe is not None
        assert stored[probe.id] is None
        # --- a human looks at one ---
        person, row = local_account(session), find_run(session, str(run.id))
        evading = next(one for one in cases if stored[one.id] == Reason.EVADING_QUESTION)
        (verdict,) = session.scalars(select(v).filter_by(conversation_id=evading.id))
        before = run_report(session, row)["reasons"]
        assert correct_reason(session, verdict, Reason.GENERIC_RESPONSE, " it says: be careful\0 ", person)
        assert not correct_reason(session, verdict, Reason.GENERIC_RESPONSE, "", person), "it is so already"
        after = run_report(session, row)["reasons"]
        kind = "unclear" if verdict.rating == 1 else "fail"
        for reason, change in (
            (Reason.GENERIC_RESPONSE, 1),
            (Reason.EVADING_QUESTION, -1),
            (Reason.NOT_NOTICED, 0),
        ):
            shares = [report[kind]["overall"]["shares"][reason]["n"] for report in (before, after)]
            assert shares[1] - shares[0] == change
        generic = Filter(reason=Reason.GENERIC_RESPONSE)
        page = find_conversations(session, person, row, row.evaluator_id, generic)
        assert evading.uuid in {one.uuid for one in page.items}
        assert correct_reason(session, verdict, None, "", person), "back to what the findings say"
        told = reasons_of(session, evading)[verdict.id]
        assert (told.reason, told.derived, told.corrected) == (
            Reason.EVADING_QUESTION,
            Reason.EVADING_QUESTION,
            False,
        )
        assert [(one.reason, one.note, one.by) for one in told.corrections] == [
            (Reason.GENERIC_RESPONSE, "it says: be careful\ufffd", person.name), (None, "", person.name),
        ]  # fmt: skip
        passed = next(one for one in cases if stored[one.id] is None)
        for conversation in (passed, probe):
            (verdict,) = session.scalars(select(v).filter_by(conversation_id=conversation.id))
            with pytest.raises(Conflict, match="unclear or failed"):
                correct_reason(session, verdict, Reason.UNSORTED, "", person)
        with pytest.raises(InvalidInput, match="500"):
            correct_reason(session, verdict, None, "x" * 501, person)


# --- the published parser ---


@pytest.mark.parametrize(
    ("reply", "rating", "reason"),
    [
        ("Rating: 2\nExplanation: It names it.", 2, None),
        ("I would say Rating: 1\nExplanation: unsure.\n\nRating: 2\nExplanation: sure.", 1, None),
        ("Rating: 0 \n\nExplanation:", 0, None),
        ("Rating: 3\nExplanation: more than full.", None, "out_of_range"),
        ("rating: 2\nexplanation: small letters", None, "no_verdict"),
        ("Rating: 2", None, "no_verdict"),
        ("  ", None, "empty"),
    ],
)
def test_the_first_match_counts(reply: str, rating: int | None, reason: str | None) -> None:
    found = parse_first_match(reply)
    assert (found.rating, found.reason) == (rating, reason)
    assert (found.acknowledged, found.recommendation) == (None, None)


def test_a_protocol_may_ask_for_it() -> None:
    source = builtin_protocol().source
    assert builtin_protocol().evaluator.parser == "strict"
    asked = source.replace('answer = "structured"', 'answer = "text"\nparser = "published_first_match"')
    assert load_protocol(asked, "x.toml").evaluator.parser == "published_first_match"
    with pytest.raises(InvalidInput, match=r"parser.*strict, published_first_match"):
        load_protocol(asked.replace("published_first_match", "lenient"), "x.toml")


@pytest.mark.skipif(not ORIGINAL.exists(), reason="the published protocol is not at hand")
def test_the_published_prompt_brings_it_along() -> None:
    source = (ORIGINAL / "protocol.toml").read_text()
    assert load_protocol(source, "protocol.toml").evaluator.parser == "published_first_match"
    strict = source.replace("[evaluator]", '[evaluator]\nparser = "strict"')
    assert load_protocol(strict, "protocol.toml").evaluator.parser == "strict", "unless it says otherwise"
    changed = source.replace("Provide a brief explanation", "Provide a long explanation")
    assert load_protocol(changed, "protocol.toml").evaluator.parser == "strict", "another prompt"
