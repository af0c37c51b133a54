"""Result sheets stored as runs: provenance `imported`, the sheets' verdicts, never ranked, nobody asked."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app import models
from app.endpoints import ELSEWHERE, evaluator_of_run, imported_evaluator, store_endpoint
from app.errors import InvalidInput
from app.evaluation import screen
from app.library import load_benchmark, load_stored_protocol, one_at_a_time
from app.outcomes import RATING_OUTCOMES, ConversationState, Outcome, VerdictState
from app.runs.planning import Selection
from app.runs.result_checks import ModelSheet, TakenOver, by_model
from app.runs.result_sheets import SheetRow, Source

IMPORTED, NOT_IN_SHEETS, OTHER_REQUEST = "imported", "not_in_sheets", "other_request"
TWO_VERDICTS, NO_VERDICT = "two_verdicts", "no_verdict_in_sheet"
SHEETS_EVALUATOR = "the sheets' evaluator"
MAX_NAME = 200


def check_sheets(
    session: Session, rows: Sequence[SheetRow], benchmark: models.Benchmark, protocol: models.Protocol
) -> list[ModelSheet]:
    """What the sheets hold of each model, and what is wrong with it; nothing is stored."""
    return by_model(rows, load_benchmark(session, benchmark), load_stored_protocol(protocol))


def store_model(
    session: Session,
    sheet: ModelSheet,
    sources: Sequence[Source],
    *,
    account: models.Account,
    secret: bytes,
    benchmark: models.Benchmark,
    protocol: models.Protocol,
    rated_by: str = SHEETS_EVALUATOR,
) -> models.Run:
    """A finished run of what the sheets hold of one model. InvalidInput where nothing of it can be used."""
    if not sheet.conversations:
        raise InvalidInput(f"No row of {sheet.model} can be used; see what was found.")
    if not rated_by.strip() or len(rated_by) > MAX_NAME or not rated_by.isprintable():
        raise InvalidInput(f"Who rated is named with printable characters, {MAX_NAME} at most.")
    one_at_a_time(session, f"sheets of {sheet.model}")
    endpoint = store_endpoint(
        session, account, secret, name=sheet.model, provider="openai", base_url=ELSEWHERE, model=sheet.model,
        api_key=None, private_allowed=False,
    )  # fmt: skip
    evaluator = imported_evaluator(session, rated_by.strip())
    taken = sheet.conversations
    run = models.Run(
        account_id=account.id,
        name=sheet.model,
        benchmark_id=benchmark.id,
        protocol_id=protocol.id,
        endpoint_id=endpoint.id,
        evaluator_id=evaluator.id,
        status="finished",
        selection=asdict(
            Selection(
                scenarios=tuple(sorted({one.arm[0] for one in taken})),
                variants=tuple(sorted({one.arm[1] for one in taken})),
            )
        ),
        seeds=sorted({one.seed for one in taken}),
        notes=[_origin(sources), *map(str, sheet.findings)],
        concurrency=1,
        provenance="imported",
        finished_at=datetime.now(UTC),
    )
    session.add(run)
    session.flush()
    session.add(evaluator_of_run(session, run, evaluator))
    _store_conversations(session, run, sheet)
    session.flush()
    return run


def _origin(sources: Sequence[Source]) -> str:
    files = ", ".join(f"{one.name} (sha256 {one.sha256})" for one in sources)
    return f"Taken over from {files}."


def _store_conversations(session: Session, run: models.Run, sheet: ModelSheet) -> None:
    ids = _case_ids(session, run.benchmark_id)
    wanted = [(one.case.key, one.seed) for one in sheet.conversations]
    wanted += [(case.key, 1) for case, _ in sheet.missing]
    keys = list(dict.fromkeys(wanted))
    stored = session.execute(
        insert(models.RunGroup).returning(models.RunGroup.id, sort_by_parameter_order=True),
        [
            {"run_id": run.id, "case_id": ids[key], "seed": seed, "position": position, "done": True}
            for position, (key, seed) in enumerate(keys)
        ],
    )
    groups = dict(zip(keys, stored.scalars(), strict=True))
    rows = session.execute(
        insert(models.Conversation).returning(models.Conversation.id, sort_by_parameter_order=True),
        [
            {"run_id": run.id, "group_id": groups[key, seed], "case_id": ids[key], "seed": seed} | values
            for key, seed, values in _conversations(sheet)
        ],
    ).scalars()
    verdicts = [
        _verdict(one, conversation, run.evaluator_id)
        for one, conversation in zip(sheet.conversations, rows, strict=False)
        if one.row.response
    ]
    if verdicts:
        session.execute(insert(models.Verdict), verdicts)


def _case_ids(session: Session, benchmark_id: int) -> dict[str, int]:
    query = select(models.Case.key, models.Case.id).filter_by(benchmark_id=benchmark_id, kind="case")
    return {key: identity for key, identity in session.execute(query)}  # noqa: C416


def _conversations(sheet: ModelSheet) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Those of the sheets first, then those that are missing; all with the same columns.

    Only the reduced conversation is known, so there are no turns.
    """
    now = datetime.now(UTC)
    for one in sheet.conversations:
        response = one.row.response or None
        flags = {IMPORTED, *([OTHER_REQUEST] if one.other_request else [])}
        flags |= screen(response, one.row.constraint) if response else set()
        said = {
            "state": ConversationState.ANSWERED if response else ConversationState.EMPTY,
            "constraint": one.row.constraint,
            "request": one.row.request,
            "response": response,
            "finished_at": now,
        }
        yield one.case.key, one.seed, _values(one.arm, one.case.category, sorted(flags)) | said
    unknown = {"constraint": None, "request": None, "response": None, "finished_at": now}
    for case, arm in sheet.missing:
        values = _values(arm, case.category, [IMPORTED, NOT_IN_SHEETS])
        yield case.key, 1, values | {"state": ConversationState.CANCELLED} | unknown


def _values(arm: tuple[str, str], category: str, flags: list[str]) -> dict[str, Any]:
    scenario, variant = arm
    return {
        "scenario": scenario,
        "variant": variant,
        "category": category,
        "turns_planned": 0,
        "turns_done": 0,
        "flags": flags,
    }


def _verdict(one: TakenOver, conversation: int, evaluator: int) -> dict[str, Any]:
    usable = one.row.rating is not None and not one.contradicted
    reason = TWO_VERDICTS if one.contradicted else NO_VERDICT
    return {
        "conversation_id": conversation,
        "evaluator_id": evaluator,
        "state": VerdictState.RATED if usable else VerdictState.UNPARSED,
        "rating": one.row.rating if usable else None,
        "explanation": one.row.explanation,
        "reason": None if usable else reason,
        "mode": "none",
        "calls": 0,
        "retries": 0,
    }


def counts_of(sheet: ModelSheet) -> dict[str, int]:
    """Planned conversations by outcome, as the stored run reports them."""
    found = Counter(_outcome(one) for one in sheet.conversations)
    found[Outcome.CANCELLED] += len(sheet.missing)
    return {"planned": found.total(), **{outcome.value: found[outcome] for outcome in Outcome}}


def _outcome(one: TakenOver) -> Outcome:
    if not one.row.response:
        return Outcome.EMPTY
    if one.contradicted or one.row.rating is None:
        return Outcome.UNPARSED
    return RATING_OUTCOMES[one.row.rating]
