"""Find, pause, cancel, resume and re-evaluate runs. Twice is as good as once."""

import uuid
from collections.abc import Collection
from decimal import Decimal

from sqlalchemy import select, text
from sqlalchemy.orm import Session, joinedload

from app import models
from app.endpoints import evaluator_of_run, price_of
from app.errors import Conflict, InvalidInput, NotFound
from app.prices import HIGHEST, dollars
from app.runs.recording import RUN_LOCK
from app.runs.spending import total_cost

HOLD_RUN = text("SELECT pg_advisory_xact_lock(:key)")

CANCEL_CONVERSATIONS = text("""
UPDATE conversation SET state = 'cancelled', finished_at = now() WHERE run_id = :run AND state = 'pending'
""")

CANCEL_VERDICTS = text("""
INSERT INTO verdict (conversation_id, evaluator_id, state, explanation, mode, calls, retries)
SELECT c.id, e.evaluator_id, 'cancelled', '', 'none', 0, 0
FROM conversation c JOIN run_evaluator e ON e.run_id = c.run_id
WHERE c.run_id = :run AND c.state = 'answered' AND (e.sample IS NULL OR c.id = ANY(e.sample))
ON CONFLICT (conversation_id, evaluator_id) DO NOTHING
""")

CLOSE_ALL_GROUPS = text("UPDATE run_group SET done = true, driver_id = NULL WHERE run_id = :run AND NOT done")

# A driver that still works on what was cancelled finds its lease gone, also when the run is resumed at once.
DISMISS_DRIVERS = text("DELETE FROM driver WHERE run_id = :run")

# Requests that are on record; what was in flight when something broke is not.
SENT_SO_FAR = text("""
SELECT (SELECT coalesce(sum(t.tries), 0) FROM turn t JOIN conversation c ON c.id = t.conversation_id
        WHERE c.run_id = :run AND NOT t.copied)
     + (SELECT coalesce(sum(v.calls + v.retries), 0) FROM verdict v JOIN conversation c
        ON c.id = v.conversation_id WHERE c.run_id = :run)
     + (SELECT coalesce(sum(coalesce((log->>'calls')::int + (log->>'retries')::int,
                                     json_array_length(log->'attempts'))), 0)
        FROM conversation c, json_array_elements(c.failed_attempts) AS log WHERE c.run_id = :run)
""")

# What a retried conversation or verdict had cost stays on record with the conversation.
REOPEN_CONVERSATIONS = text("""
UPDATE conversation SET state = 'pending', error = NULL, error_message = NULL, finished_at = NULL
WHERE run_id = :run AND state = ANY(:states)
RETURNING group_id
""")

DROP_VERDICTS = text("""
WITH dropped AS (
    DELETE FROM verdict v USING conversation c
    WHERE c.id = v.conversation_id AND c.run_id = :run AND v.state = ANY(:states)
    RETURNING v.conversation_id, v.evaluator_id, v.state, v.reason, v.calls, v.retries, v.prompt_tokens,
              v.completion_tokens, v.exchanges, c.group_id
), kept AS (
    UPDATE conversation c SET failed_attempts = (c.failed_attempts::jsonb || d.log)::json
    FROM (
        SELECT conversation_id, jsonb_agg(jsonb_build_object(
            'kind', 'evaluator', 'evaluator', evaluator_id, 'state', state, 'error', reason,
            'calls', calls, 'retries', retries, 'prompt_tokens', prompt_tokens,
            'completion_tokens', completion_tokens, 'exchanges', exchanges
        )) AS log
        FROM dropped WHERE state <> 'cancelled' GROUP BY conversation_id
    ) d
    WHERE c.id = d.conversation_id
)
SELECT group_id FROM dropped
""")

REOPEN_GROUPS = text("UPDATE run_group SET done = false WHERE run_id = :run AND id = ANY(:groups) AND done")

REOPEN_UNRATED = text("""
UPDATE run_group g SET done = false
WHERE g.run_id = :run AND g.done AND EXISTS (
    SELECT 1 FROM conversation c
    JOIN run_evaluator e ON e.run_id = c.run_id AND e.evaluator_id = :evaluator
    WHERE c.group_id = g.id AND c.state = 'answered' AND (e.sample IS NULL OR c.id = ANY(e.sample))
    AND NOT EXISTS (
        SELECT 1 FROM verdict v WHERE v.conversation_id = c.id AND v.evaluator_id = :evaluator
    )
)
""")

BY_ITS_OWNER = "paused by its owner"

RUN_DETAILS = (
    joinedload(models.Run.account),
    joinedload(models.Run.benchmark),
    joinedload(models.Run.protocol),
    joinedload(models.Run.endpoint),
    joinedload(models.Run.evaluator),
)


def find_run(session: Session, reference: str) -> models.Run:
    """By number, uuid, or unique name; NotFound and Conflict say what to give instead."""
    query = select(models.Run).options(*RUN_DETAILS).order_by(models.Run.id.desc())
    if reference.isdecimal() and len(reference) < 19:
        query = query.where(models.Run.id == int(reference))
    elif (identity := _as_uuid(reference)) is not None:
        query = query.where(models.Run.uuid == identity)
    else:
        query = query.where(models.Run.name == reference)
    rows = session.scalars(query.limit(2)).all()
    if not rows:
        raise NotFound(f"There is no run '{reference}'. `curate run list` shows the runs that exist.")
    if len(rows) > 1:
        raise Conflict(
            f"Several runs are called '{reference}': give the run's number from `curate run list`."
        )
    return rows[0]


def _as_uuid(text_: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(text_)
    except ValueError:
        return None


def list_runs(session: Session) -> list[models.Run]:
    """All runs, the newest first."""
    return list(session.scalars(select(models.Run).options(*RUN_DETAILS).order_by(models.Run.id.desc())))


def cancel(session: Session, run: models.Run) -> None:
    """End a run now: what is open becomes cancelled, what is in flight does not count any more."""
    _lock(session, run)
    if run.status == "cancelled":
        return
    if run.status == "finished":
        raise Conflict(f"Run {run.id} is finished: there is nothing to cancel.")
    session.execute(CANCEL_CONVERSATIONS, {"run": run.id})
    session.execute(CANCEL_VERDICTS, {"run": run.id})
    session.execute(CLOSE_ALL_GROUPS, {"run": run.id})
    session.execute(DISMISS_DRIVERS, {"run": run.id})
    run.status, run.status_reason = "cancelled", "cancelled by its owner"
    run.finished_at = session.scalar(select(text("now()")))
    session.flush()


def pause(session: Session, run: models.Run, reason: str = BY_ITS_OWNER) -> None:
    _lock(session, run)
    if run.status == "paused":
        return
    if run.status != "running":
        raise Conflict(f"Run {run.id} is {run.status}: only a running one can be paused.")
    run.status, run.status_reason = "paused", reason
    session.flush()


def keep_back(session: Session, run: models.Run) -> None:
    """Do not publish it when it is finished; one that is published stays so."""
    _lock(session, run)
    run.publish_wanted = False
    session.flush()


def resume(
    session: Session,
    run: models.Run,
    *,
    retry_errors: bool = False,
    max_calls: int | None = None,
    max_cost: Decimal | None = None,
) -> bool:
    """Go on with what is open, cancelled or (if asked) ended in an error. False: there was nothing to do.

    A finished run without errors to retry stays as it is, however often it is resumed. Conflict for one that
    was taken over from sheets: there is nobody to ask.
    """
    _lock(session, run)
    if run.provenance == "imported":
        raise Conflict(
            f"Run {run.id} was taken over from result sheets: what they leave out cannot be asked."
        )
    if max_calls is not None:
        _raise_cap(session, run, max_calls)
    if max_cost is not None:
        _raise_cost_cap(session, run, max_cost)
    conversations, verdicts = ["cancelled"], ["cancelled"]
    if retry_errors:
        conversations.append("endpoint_error")
        verdicts += ["evaluator_error", "unparsed"]
    values = {"run": run.id}
    groups = set(session.scalars(REOPEN_CONVERSATIONS, values | {"states": conversations}))
    groups |= set(session.scalars(DROP_VERDICTS, values | {"states": verdicts}))
    session.execute(REOPEN_GROUPS, values | {"groups": sorted(groups)})
    if not groups and run.status in ("finished", "running"):
        return False
    run.status, run.status_reason, run.finished_at = "running", None, None
    run.mailed_status = None  # what comes of it now is told anew
    session.flush()
    return True


def _raise_cap(session: Session, run: models.Run, max_calls: int) -> None:
    """The cap counts from the run's first request, whether or not it had one from the beginning."""
    if run.max_calls is None:
        run.calls_reserved = session.execute(SENT_SO_FAR, {"run": run.id}).scalar_one()
    if max_calls <= run.calls_reserved:
        raise InvalidInput(
            f"Run {run.id} has sent {run.calls_reserved} requests already: give a cap above that, or none."
        )
    run.max_calls = max_calls


def _raise_cost_cap(session: Session, run: models.Run, max_cost: Decimal) -> None:
    spent, why_unknown = total_cost(session, run)
    if spent is None:
        raise InvalidInput(f"A cap on cost cannot be kept: {why_unknown}.")
    if not spent < max_cost <= HIGHEST:
        raise InvalidInput(
            f"Run {run.id} has cost {dollars(spent)} already: give a cap above that, at most {HIGHEST:,}."
        )
    run.max_cost = max_cost


def add_evaluator(
    session: Session,
    run: models.Run,
    evaluator: models.Evaluator,
    *,
    sample: Collection[int] | None = None,
    publish: bool = False,
) -> bool:
    """Have the stored conversations rated by another evaluator too. False: it has rated them all.

    `sample`: the conversations, by number, that it is to rate; beside those that it was given before. None:
    all of the run. `publish`: the run goes on this evaluator's board when it is finished.
    Conflict on a paused run, which would go on asking the model; a running one's are rated as they come.
    """
    _lock(session, run)
    if run.status == "paused":
        raise Conflict(
            f"Run {run.id} is paused ({run.status_reason}): resume it first, "
            "since another evaluator alone must not send what is left to ask."
        )
    if evaluator.kind == "imported":
        raise Conflict(f"{evaluator.name} rated what was taken over from sheets; it cannot be asked again.")
    pairing = session.get(models.RunEvaluator, (run.id, evaluator.id))
    added = evaluator_of_run(session, run, evaluator)
    if pairing is None:
        added.sample = None if sample is None else sorted(sample)
        session.add(added)
    else:
        if not price_of(pairing).known:
            pairing.price_prompt, pairing.price_completion = added.price_prompt, added.price_completion
        if pairing.sample is not None:
            pairing.sample = None if sample is None else sorted({*pairing.sample, *sample})
    (pairing or added).publish_wanted = publish
    session.flush()
    reopened = session.execute(REOPEN_UNRATED, {"run": run.id, "evaluator": evaluator.id})
    if run.status == "running":
        return pairing is None
    if reopened.rowcount == 0:  # type: ignore[attr-defined]
        return False
    # When the run was finished stays as it was: its conversations are no others.
    run.status, run.status_reason = "running", None
    session.flush()
    return True


def _lock(session: Session, run: models.Run) -> None:
    """One change of a run's status at a time, and no writer in the middle; reads what others changed."""
    session.execute(HOLD_RUN, {"key": RUN_LOCK + run.id})
    session.refresh(
        run,
        ["status", "status_reason", "finished_at", "max_calls", "calls_reserved", "max_cost"],
        with_for_update=True,
    )
