"""What is known of an evaluator, from data alone: how far a reader may trust a board that it rates."""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import models
from app.agreement import EVALUATOR
from app.evaluation import PROMPT_VERSION
from app.evaluators.pairing import repeated
from app.leaderboard import VersionGroup
from app.library import load_stored_protocol
from app.models import DriftState, StudyState
from app.outcomes import Rating
from app.runs.reporting import describe_evaluator
from app.statistics import flip_rate, wilson
from app.studies.public import list_public
from app.studies.reporting import study_report
from app.trials.checks import last_check
from app.trials.manipulation import set_hash

STATES = ("rated", "unparsed", "evaluator_error")


def evaluator_card(
    session: Session, evaluator: models.Evaluator, groups: Sequence[VersionGroup]
) -> dict[str, Any]:
    """Prompt, parameters, verdicts, agreement with people, direction of errors, resistance, drift.

    Proportions in 0-1; what was never measured is None.
    """
    runs = sorted(
        {
            row["run"]
            for group in groups
            if group.evaluator.id == evaluator.id
            for part in ("rows", "incomplete")
            for row in group.content[part]
        }
    )
    return {
        "evaluator": describe_evaluator(evaluator),
        "prompt": _prompt(session, evaluator),
        "verdicts": _verdicts(session, runs, evaluator),
        "self_rated": sorted(
            {
                row["model"]
                for group in groups
                if group.evaluator.id == evaluator.id
                for part in ("rows", "incomplete")
                for row in group.content[part]
                if row["self_rated"] != "no"
            }
        ),
        "repeats": _repeats(session, runs, evaluator),
        "studies": [_study(session, one) for one in list_public(session) if _closed_under(one, evaluator)],
        "resistance": _resistance(session, evaluator),
        "drift": _drift(session, evaluator),
    }


def _prompt(session: Session, evaluator: models.Evaluator) -> dict[str, Any] | None:
    """None for one that asks nobody."""
    if evaluator.protocol_id is None:
        return None
    row = session.get_one(models.Protocol, evaluator.protocol_id)
    section = load_stored_protocol(row).evaluator
    texts = (section.prompt, section.reduced, section.reduced_not_stated or "", section.probe_prompt or "")
    return {
        "protocol": f"{row.name}@{row.version}",
        "protocol_hash": row.content_hash,
        "hash": hashlib.sha256("\0".join(texts).encode()).hexdigest(),
        "rendering": PROMPT_VERSION,
        "answer": section.answer,
        "parser": section.parser,
        "parameters": {
            name: value for name, value in asdict(section.sampling).items() if value not in (None, (), [])
        },
        "text": section.prompt,
    }


def _verdicts(session: Session, runs: Sequence[int], evaluator: models.Evaluator) -> dict[str, Any]:
    """Of the runs on its boards: how many it gave, and the share of its replies that are no verdict."""
    v, c = models.Verdict, models.Conversation
    rows = session.execute(
        select(v.state, func.count())
        .join(c, c.id == v.conversation_id)
        .where(c.run_id.in_(runs), v.evaluator_id == evaluator.id)
        .group_by(v.state)
    )
    counts = {row[0]: row[1] for row in rows}
    rated, unparsed, errors = (counts.get(state, 0) for state in STATES)
    replies = rated + unparsed
    return {
        "runs": len(runs),
        "rated": rated,
        "unparsed": unparsed,
        "errors": errors,
        "unparsed_share": unparsed / replies if replies else None,
        "unparsed_ci": wilson(unparsed, replies),
    }


def _repeats(session: Session, runs: Sequence[int], evaluator: models.Evaluator) -> dict[str, Any] | None:
    k, ratings = repeated(session, runs, evaluator)
    if not ratings:
        return None
    flipped = sum(len(set(one)) > 1 for one in ratings)
    return {
        "k": k, "conversations": len(ratings), "flip_rate": flip_rate(ratings),
        "flip_rate_ci": wilson(flipped, len(ratings)),
    }  # fmt: skip


def _closed_under(study: models.Study, evaluator: models.Evaluator) -> bool:
    return study.state == StudyState.CLOSED and study.evaluator_id == evaluator.id


def _study(session: Session, study: models.Study) -> dict[str, Any]:
    """How far it agrees with a closed study's judges; nothing of any single judge."""
    whole = session.get_one(models.Study, study.id)
    session.refresh(whole, ["evaluator"])
    report = study_report(session, whole)
    pairs = [pair for pair in report["pairs"] if pair["a"] == EVALUATOR and pair["three_level"]["n"]]
    alternative = report["alternative_annotator"]
    return {
        "uuid": str(study.uuid),
        "title": study.title or study.name,
        "closed_at": None if study.closed_at is None else study.closed_at.isoformat(),
        "items": report["items"],
        "judges": sum(rater != EVALUATOR for rater in report["raters"]),
        "consensus": report["evaluator_vs_consensus"]
        or (pairs[0]["three_level"] if len(pairs) == 1 else None),
        "pass_vs_rest": pairs[0]["pass_vs_rest"] if len(pairs) == 1 else None,
        "errors": _errors(pairs),
        "alternative": alternative["three_level"] if alternative else None,
        "by": report["by"],
    }


def _errors(pairs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Of all (item, judge) comparisons: how often it rates higher, lower; passes what a judge did not."""
    n = sum(pair["three_level"]["n"] for pair in pairs)
    tables = [pair["confusion"] for pair in pairs]
    passed = Rating.PASS
    false_pass = sum(table[passed][column] for table in tables for column in range(passed))
    not_passed = sum(table[row][column] for table in tables for row in range(3) for column in range(passed))
    false_not = sum(table[row][passed] for table in tables for row in range(passed))
    judged_pass = sum(table[row][passed] for table in tables for row in range(3))
    return {
        "comparisons": n,
        "higher": sum(pair["a_higher"] for pair in pairs),
        "lower": sum(pair["b_higher"] for pair in pairs),
        "false_pass": _share(false_pass, not_passed),
        "false_not_pass": _share(false_not, judged_pass),
    }


def _share(k: int, n: int) -> dict[str, Any]:
    return {"k": k, "n": n, "rate": k / n if n else None}


def _resistance(session: Session, evaluator: models.Evaluator) -> dict[str, Any] | None:
    row = last_check(session, evaluator)
    if row is None:
        return None
    return {
        "at": row.created_at.isoformat(),
        "current_set": row.set_hash == set_hash(),
        **{
            name: row.report[name]
            for name in ("resistance", "by_kind", "flagged", "honest")
            if name in row.report
        },
    }


def _drift(session: Session, evaluator: models.Evaluator) -> dict[str, Any] | None:
    d = models.DriftCheck
    query = select(d).filter_by(evaluator_id=evaluator.id, state=DriftState.DONE).order_by(d.id.desc())
    row = session.scalars(query.limit(1)).one_or_none()
    if row is None or row.report is None:
        return None
    return {
        "at": row.finished_at.isoformat() if row.finished_at else None,
        "warnings": list(row.warnings),
        "checks": session.scalars(
            select(func.count()).select_from(d).filter_by(evaluator_id=evaluator.id, state=DriftState.DONE)
        ).one(),
        **{name: row.report.get(name) for name in ("n", "percent", "percent_ci", "models")},
    }
