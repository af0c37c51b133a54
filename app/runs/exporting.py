"""Write a run's conversations: JSONL with everything, csv and xlsx for people, and the published sheet form.

Rows are streamed in id order, so that 30,000 conversations need no more memory than a few hundred.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TextIO

from sqlalchemy import ColumnElement, Engine, select
from sqlalchemy.orm import Session

from app import models
from app.accounts.policies import conversations_visible_to
from app.accounts.withholding import withheld_of_run
from app.db import session_scope
from app.errors import InvalidInput
from app.outcomes import CONTROL, PROBE_SCENARIO, RECALL, STANDARD, Outcome
from app.runs.filtering import Filter
from app.runs.reporting import outcome_of
from app.tables import write_atomically, write_table

FORMATS = ("jsonl", "csv", "xlsx", "published-xlsx")
CHUNK = 500

FLAT_COLUMNS = (
    "run", "conversation", "case", "scenario", "variant", "category", "seed", "constraint", "request",
    "response", "outcome", "rating", "acknowledged", "recommendation", "explanation", "flags", "error",
)  # fmt: skip

# Every name of a record, in order.
RECORD = (
    "run", "conversation", "case", "case_number", "scenario", "variant", "category", "seed", "constraint",
    "request", "response", "turns", "outcome", "rating", "acknowledged", "recommendation", "explanation",
    "reason", "evaluator_reply", "flags", "error", "error_message", "failed_attempts", "model", "simulated",
    "withheld",
)  # fmt: skip

PUBLISHED_COLUMNS = (
    "Model", "Scenario", "Category", "Conversation Number", "First User Input", "Last User Input",
    "Last Model Response", "Evaluation Rating", "Evaluation Explanation",
)  # fmt: skip

PUBLISHED_CATEGORIES = {
    "severe_allergy": "Severe allergy",
    "severe_phobia": "Severe phobia",
    "physical_constraint": "Physical constraint",
    "trauma_trigger": "Trauma triggers",
}

PUBLISHED_VARIANTS = {
    "middle_placement": "middle placement",
    "unbiased_question": "unbiased question",
    "helpful_harmless": "HH prompt",
    "guiding_prompt": "guiding prompt",
    "roles_reversed": "user and first person reversed",
}


Named = tuple[str, dict[str, Any]]


def export_run(
    session: Session, run: models.Run, evaluator: models.Evaluator, format_: str, to: Path | None
) -> list[Path]:
    """Write the export; jsonl and csv without a file go to standard output. Returns the files written."""
    if format_ not in FORMATS:
        raise InvalidInput(f"Unknown format '{format_}': choose one of {', '.join(FORMATS)}.")
    if format_ == "jsonl":
        return _write_jsonl(conversations(session, run, evaluator), to)
    rows = partial(conversations, session, run, evaluator, with_turns=False)
    if format_ == "published-xlsx":
        named = partial(_named, run.endpoint.name, rows)
        return write_published(named, to or Path(f"run-{run.id}-published"))
    path = to or Path(f"run-{run.id}.{format_}")
    if path.suffix.lower() != f".{format_}":
        path = path.with_name(f"{path.name}.{format_}")
    return [write_table(path, FLAT_COLUMNS, map(_flat, rows()))]


def conversations(
    session: Session, run: models.Run, evaluator: models.Evaluator, *, with_turns: bool = True
) -> Iterator[dict[str, Any]]:
    """One record a conversation, as `run export --format jsonl` gives it; without turns, `turns` is empty."""
    last = 0
    while True:
        records, last = _chunk(session, run, evaluator, last, with_turns=with_turns)
        if not records:
            return
        yield from records


def conversations_for_reader(
    engine: Engine,
    run: models.Run,
    evaluator: models.Evaluator,
    person: models.Account | None,
    *,
    with_turns: bool,
    own: bool,
    wanted: Filter | None = None,
) -> Iterator[dict[str, Any]]:
    """What the person may see of them, for a slow reader too: no connection is held between two chunks.

    `own` False, for a run that is merely published: nothing of what errors said. Where something is withheld
    because it is in a study, a last record holds that alone, as `withheld`.
    """
    last, seen = 0, conversations_visible_to(person)
    while True:
        with session_scope(engine) as session:
            records, last = _chunk(
                session, run, evaluator, last, with_turns=with_turns, seen=seen, own=own, wanted=wanted
            )
            withheld = None if records else withheld_of_run(session, person, run)
        if records:
            yield from records
            continue
        if withheld is not None:
            yield dict.fromkeys(RECORD) | {
                "run": run.id, "turns": [], "flags": [], "withheld": withheld.as_report(),
            }  # fmt: skip
        return


def _chunk(
    session: Session,
    run: models.Run,
    evaluator: models.Evaluator,
    last: int,
    *,
    with_turns: bool,
    seen: ColumnElement[bool] | None = None,
    own: bool = True,
    wanted: Filter | None = None,
) -> tuple[list[dict[str, Any]], int]:
    """The records after the conversation `last`, and which is the last one now."""
    c, v, k = models.Conversation, models.Verdict, models.Case
    query = (
        select(c, k, v)
        .join(models.Run, models.Run.id == c.run_id)
        .join(k, k.id == c.case_id)
        .outerjoin(v, (v.conversation_id == c.id) & (v.evaluator_id == evaluator.id))
        .where(c.run_id == run.id, c.id > last)
    )
    if seen is not None:
        query = query.where(seen)
    if wanted is not None:
        query = query.where(*wanted.conditions())
    rows = session.execute(query.order_by(c.id).limit(CHUNK)).all()
    turns = _turns(session, [row[0].id for row in rows]) if with_turns and rows else {}
    records = [
        _record(run, conversation, case, verdict, turns.get(conversation.id, []))
        for conversation, case, verdict in rows
    ]
    session.expunge_all()
    if not own:
        for record in records:
            record |= {"error_message": None, "failed_attempts": []}
    return records, rows[-1][0].id if rows else last


def jsonl_lines(records: Iterable[dict[str, Any]]) -> Iterator[bytes]:
    for record in records:
        yield (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()


def table_rows(records: Iterable[dict[str, Any]]) -> Iterator[list[Any]]:
    """Under FLAT_COLUMNS."""
    return map(_flat, records)


def _turns(session: Session, ids: Sequence[int]) -> dict[int, list[dict[str, Any]]]:
    found: dict[int, list[dict[str, Any]]] = {}
    query = select(models.Turn).where(models.Turn.conversation_id.in_(ids))
    for turn in session.scalars(query.order_by(models.Turn.conversation_id, models.Turn.position)):
        found.setdefault(turn.conversation_id, []).append(
            {
                "user": turn.user_text,
                "assistant": turn.assistant_text,
                "state": turn.state,
                "copied": turn.copied,
                "flags": turn.flags,
                "request": json.loads(turn.request_body),
                "response": turn.response_body,
                "model_reported": turn.model_reported,
                "prompt_tokens": turn.prompt_tokens,
                "completion_tokens": turn.completion_tokens,
                "attempts": turn.attempts,
                "started_at": turn.started_at.isoformat() if turn.started_at else None,
                "seconds": turn.seconds,
            }
        )
    return found


def _record(
    run: models.Run,
    conversation: models.Conversation,
    case: models.Case,
    verdict: models.Verdict | None,
    turns: list[dict[str, Any]],
) -> dict[str, Any]:
    outcome = outcome_of(
        conversation.state,
        verdict.state if verdict else None,
        verdict.rating if verdict else None,
        probe=conversation.scenario == PROBE_SCENARIO,
    )
    return {
        "run": run.id,
        "conversation": str(conversation.uuid),
        "case": case.key,
        "case_number": case.number,
        "scenario": conversation.scenario,
        "variant": conversation.variant,
        "category": conversation.category,
        "seed": conversation.seed,
        "constraint": conversation.constraint if conversation.constraint is not None else _stated(case),
        "request": conversation.request,
        "response": conversation.response,
        "turns": turns,
        "outcome": outcome.value,
        "rating": verdict.rating if verdict else None,
        "acknowledged": verdict.acknowledged if verdict else None,
        "recommendation": verdict.recommendation if verdict else None,
        "explanation": verdict.explanation if verdict else None,
        "reason": verdict.reason if verdict else None,
        "evaluator_reply": verdict.reply if verdict else None,
        "flags": sorted({*conversation.flags, *(verdict.flags if verdict else [])}),
        "error": conversation.error,
        "error_message": conversation.error_message,
        "failed_attempts": conversation.failed_attempts,
        "model": run.endpoint.model,
        "simulated": run.simulated,
        "withheld": None,
    }


def _stated(case: models.Case) -> str:
    """The case's own constraint, for a conversation that did not get to its end."""
    return str(case.content["constraint"])


def _write_jsonl(rows: Iterator[dict[str, Any]], to: Path | None) -> list[Path]:
    if to is None:
        _write_lines(rows, sys.stdout)
        return []
    with write_atomically(to) as temporary, temporary.open("w", encoding="utf-8") as file:
        _write_lines(rows, file)
    return [to]


def _write_lines(rows: Iterator[dict[str, Any]], file: TextIO) -> None:
    for row in rows:
        file.write(json.dumps(row, ensure_ascii=False, allow_nan=False) + "\n")


def _flat(row: dict[str, Any]) -> list[Any]:
    """`error`: the endpoint's class, or why there is no verdict, JSONL's `reason`; or what is withheld."""
    error = _withheld_words(row["withheld"]) or row["error"] or row["reason"]
    shown = row | {"flags": ", ".join(row["flags"]), "error": error}
    return [shown[name] for name in FLAT_COLUMNS]


def _withheld_words(withheld: dict[str, Any] | None) -> str | None:
    return f"{withheld['conversations']} more conversations. {withheld['why']}" if withheld else None


def write_published(rows: Callable[[], Iterator[Named]], folder: Path) -> list[Path]:
    """The two sheets of the released scripts: clear verdicts and unclear ones; there is no third.

    `rows` gives each conversation with the name of its model, and is asked once for each sheet.
    """
    folder.mkdir(parents=True, exist_ok=True)
    clear, unclear = (Outcome.PASS, Outcome.FAIL), (Outcome.UNCLEAR,)
    return [
        write_table(
            folder / f"eval_results_{name}.xlsx",
            PUBLISHED_COLUMNS,
            (
                _published(name, row)
                for name, row in rows()
                if row["outcome"] in outcomes and _is_publishable(row)
            ),
        )
        for name, outcomes in (("binary", clear), ("neutral", unclear))
    ]


def _named(name: str, rows: Callable[[], Iterator[dict[str, Any]]]) -> Iterator[Named]:
    return ((name, row) for row in rows())


def _is_publishable(row: dict[str, Any]) -> bool:
    """The form says what the user stated and rates cases: it has no place for controls, probes and recall."""
    is_probe = row["scenario"] == PROBE_SCENARIO
    return not is_probe and row["variant"] not in (CONTROL, RECALL)


def _published(name: str, row: dict[str, Any]) -> list[Any]:
    rating = {Outcome.PASS: 1, Outcome.FAIL: 0, Outcome.UNCLEAR: "Unclear"}[Outcome(row["outcome"])]
    return [
        name,
        published_scenario(row["scenario"], row["variant"]),
        PUBLISHED_CATEGORIES[row["category"]],
        row["case_number"],
        row["constraint"],
        row["request"],
        row["response"],
        rating,
        row["explanation"],
    ]


def published_scenario(scenario: str, variant: str) -> str:
    """`Scenario 3 (guiding prompt)`: the released scripts' spelling, our own name where they have none."""
    number = f"Scenario {scenario.removeprefix('sc')}"
    if variant == STANDARD:
        return number
    return f"{number} ({PUBLISHED_VARIANTS.get(variant, variant)})"
