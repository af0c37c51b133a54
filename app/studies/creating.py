"""Make a study: what may be drawn, a preview of the draw, the study with its items."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import insert, select
from sqlalchemy.orm import Session

from app import models
from app.errors import Conflict, InvalidInput
from app.models import ItemKind, StudyDesign, StudyState
from app.outcomes import (
    CONTROL,
    PROBE_SCENARIO,
    RATING_OUTCOMES,
    RECALL,
    ConversationState,
    Rating,
    VerdictState,
)
from app.statistics import Z, wilson_of_rate
from app.studies import drawing
from app.studies.known import require_draft, set_training
from app.studies.settings import StudySettings, builtin_training, checked, checked_texts
from app.studies.topics import topics_of

ASSUMED_AGREEMENT = 0.85


@dataclass(frozen=True)
class Width:
    """How wide 95 % intervals will be if judges and evaluator agree in ASSUMED_AGREEMENT of the items.

    `kappa`: of Cohen's kappa with three ratings that are equally frequent.
    """

    of: str
    n: int
    percent: float
    kappa: float


@dataclass(frozen=True)
class Preview:
    strata: list[drawing.StratumCount]
    margins: list[drawing.Margin]
    n: int
    drawn: int
    rule: str
    widths: list[Width]
    notes: list[str]


def create(
    session: Session,
    owner: models.Account | None,
    runs: Sequence[models.Run],
    settings: StudySettings,
    *,
    evaluator: models.Evaluator | None = None,
    without_cases: frozenset[str] = frozenset(),
    cloned_from: models.Study | None = None,
) -> models.Study:
    """Draw and store: a draft with its items and the built-in training items.

    InvalidInput when nothing can be drawn, Conflict when the name is taken.
    """
    settings = checked(settings)
    check_name_free(session, settings.name)
    rated_by = common_evaluator(session, runs, evaluator)
    candidates = _candidates(session, runs, rated_by, settings, without_cases)
    assert settings.seed is not None  # checked() sets one
    drawn = drawing.draw(candidates, settings.n, per_case=settings.per_case, seed=settings.seed)
    study = models.Study(
        name=settings.name,
        title=settings.title or settings.name,
        owner_id=owner.id if owner else None,
        design=settings.design.value,
        state=StudyState.DRAFT.value,
        evaluator_id=rated_by.id,
        cloned_from_id=cloned_from.id if cloned_from else None,
        planned=len(drawn.chosen),
        seed=settings.seed,
        per_case=settings.per_case,
        judges_per_item=settings.judges_per_item,
        repeat_share=settings.repeat_share,
        draw=_told(settings, drawn),
        instructions=settings.instructions,
        careful=settings.careful,
        content_note=settings.content_note,
        ethics_kind=settings.ethics_kind,
        ethics=settings.ethics,
        retention=settings.retention,
        support=settings.support,
        completion_code=settings.completion_code,
        completion_url=settings.completion_url,
        expected_close=settings.expected_close,
    )
    session.add(study)
    session.flush()
    session.add_all(models.StudyRun(study_id=study.id, run_id=run.id) for run in runs)
    _store_items(session, study, drawn.chosen, rated_by)
    set_training(session, study, builtin_training())
    session.flush()
    return study


def preview(
    session: Session,
    runs: Sequence[models.Run],
    settings: StudySettings,
    *,
    evaluator: models.Evaluator | None = None,
    without_cases: frozenset[str] = frozenset(),
) -> Preview:
    """What `create` would draw, without inclusion probabilities; nothing is stored."""
    settings = checked(settings)
    rated_by = common_evaluator(session, runs, evaluator)
    candidates = _candidates(session, runs, rated_by, settings, without_cases)
    assert settings.seed is not None
    drawn = drawing.draw(
        candidates, settings.n, per_case=settings.per_case, seed=settings.seed, probabilities=False
    )
    sizes: dict[str, int] = {}
    for one in drawn.chosen:
        sizes[one.stratum[0]] = sizes.get(one.stratum[0], 0) + 1
    return Preview(
        strata=drawn.strata,
        margins=drawing.margins(drawn.strata, settings.design),
        n=settings.n,
        drawn=len(drawn.chosen),
        rule=drawing.RULES[settings.design],
        widths=[width("all", len(drawn.chosen)), *(width(model, n) for model, n in sorted(sizes.items()))],
        notes=_notes(settings, candidates, drawn),
    )


def width(of: str, n: int) -> Width:
    interval = wilson_of_rate(ASSUMED_AGREEMENT, n)
    assert interval is not None  # n is at least 1
    by_chance = 1 / 3
    error = math.sqrt(ASSUMED_AGREEMENT * (1 - ASSUMED_AGREEMENT) / n) / (1 - by_chance)
    return Width(of, n, interval[1] - interval[0], min(2.0, 2 * Z * error))


def _notes(
    settings: StudySettings, candidates: Sequence[drawing.Candidate], drawn: drawing.Drawn
) -> list[str]:
    notes = []
    if len(drawn.chosen) < settings.n:
        cases = len({one.case for one in candidates})
        limit = f", with {settings.per_case} of each of {cases} cases" if settings.per_case else ""
        notes.append(
            f"Only {len(drawn.chosen)} of the {settings.n} transcripts asked for can be drawn{limit}."
        )
    most = max((one.drawn for one in drawn.strata), default=0)
    spent = sum(one.drawn == one.available < most for one in drawn.strata)
    if spent:
        what = "1 stratum has" if spent == 1 else f"{spent} strata have"
        notes.append(
            f"{what} fewer transcripts than the fullest one got: all were drawn, the rest went to others."
        )
    empty = sum(not one.drawn for one in drawn.strata)
    if empty:
        notes.append(f"Of {len(drawn.strata)} strata {empty} get no item.")
    return notes


def check_name_free(session: Session, name: str) -> None:
    if session.scalars(select(models.Study.id).filter_by(name=name)).one_or_none() is not None:
        raise Conflict(f"There is a study '{name}' already: choose another name.")


def common_evaluator(
    session: Session, runs: Sequence[models.Run], chosen: models.Evaluator | None
) -> models.Evaluator:
    """The evaluator whose verdicts the study is about; InvalidInput where the runs have none in common."""
    if not runs:
        raise InvalidInput("A study needs at least one run to draw from.")
    if len({run.id for run in runs}) != len(runs):
        raise InvalidInput("A run is named twice.")
    if chosen is not None:
        return chosen
    own = {run.evaluator_id for run in runs}
    if len(own) > 1:
        raise InvalidInput(
            "These runs were rated by different evaluators: name the one whose verdicts are to be judged, "
            "or rate them by one with `curate run reevaluate`."
        )
    return session.get_one(models.Evaluator, own.pop())


def _candidates(
    session: Session,
    runs: Sequence[models.Run],
    evaluator: models.Evaluator,
    settings: StudySettings,
    without_cases: frozenset[str],
) -> list[drawing.Candidate]:
    """Rated answers on public cases, by conversation."""
    if RECALL in settings.variants:
        raise InvalidInput("Recall answers cannot be judged by this rubric: they recommend nothing.")
    if CONTROL in settings.variants:
        raise InvalidInput("Controls cannot be judged: the constraint was never stated in them.")
    c, v, k, r, e = (
        models.Conversation, models.Verdict, models.Case, models.Run, models.Endpoint,
    )  # fmt: skip
    narrowed = [
        column.in_(chosen)
        for column, chosen in ((c.scenario, settings.scenarios), (c.category, settings.categories))
        if chosen
    ]
    rows = session.execute(
        select(c.id, k.benchmark_id, k.key, e.name, c.scenario, c.category, v.rating)
        .join(k, k.id == c.case_id)
        .join(r, r.id == c.run_id)
        .join(e, e.id == r.endpoint_id)
        .join(v, (v.conversation_id == c.id) & (v.evaluator_id == evaluator.id))
        .where(
            c.run_id.in_([run.id for run in runs]),
            c.state == ConversationState.ANSWERED,
            v.state == VerdictState.RATED,
            c.constraint.is_not(None),
            c.scenario != PROBE_SCENARIO,
            c.variant.in_(settings.variants),
            k.split == "public",
            *narrowed,
        )
        .order_by(c.id)
    )
    stratum_of = drawing.by(settings.design)
    found = [
        drawing.Candidate(
            identity,
            f"{benchmark}/{key}",
            stratum_of(model, scenario, category, RATING_OUTCOMES[Rating(rating)].value),
        )
        for identity, benchmark, key, model, scenario, category, rating in rows
        if rating is not None and key not in without_cases
    ]
    if not found:
        raise InvalidInput(
            "Nothing can be drawn: these runs have no rated answers of the chosen scenarios, variants and "
            f"categories on public cases under the evaluator {evaluator.name}."
        )
    return found


def _told(settings: StudySettings, drawn: drawing.Drawn) -> dict[str, object]:
    return {
        "rule": drawing.RULES[settings.design],
        "asked": settings.n,
        "variants": list(settings.variants),
        "scenarios": list(settings.scenarios),
        "categories": list(settings.categories),
        "repetitions": drawn.repetitions,
        "strata": [
            {"stratum": " · ".join(one.stratum), "available": one.available, "drawn": one.drawn}
            for one in drawn.strata
        ],
    }


def _store_items(
    session: Session,
    study: models.Study,
    chosen: Sequence[drawing.Chosen],
    evaluator: models.Evaluator,
) -> None:
    c, v = models.Conversation, models.Verdict
    rows = session.execute(
        select(c, models.Case, v, models.Endpoint.name)
        .join(models.Case, models.Case.id == c.case_id)
        .join(models.Run, models.Run.id == c.run_id)
        .join(models.Endpoint, models.Endpoint.id == models.Run.endpoint_id)
        .join(v, (v.conversation_id == c.id) & (v.evaluator_id == evaluator.id))
        .where(c.id.in_([one.conversation for one in chosen]))
    )
    behind = {row[0].id: row for row in rows}
    values = []
    for position, (one, shuffle) in enumerate(zip(chosen, shuffles(study, len(chosen)), strict=True), 1):
        conversation, case, verdict, model = behind[one.conversation]
        values.append(
            {
                "study_id": study.id,
                "kind": ItemKind.MAIN.value,
                "position": position,
                "conversation_id": conversation.id,
                "case_id": case.id,
                "case_key": case.key,
                "cluster": case.cluster,
                "constraint": conversation.constraint,
                "request": conversation.request,
                "response": conversation.response,
                "model": model,
                "scenario": conversation.scenario,
                "variant": conversation.variant,
                "category": conversation.category,
                "topics": topics_of(conversation.category, conversation.constraint or ""),
                "evaluator_rating": verdict.rating,
                "evaluator_explanation": verdict.explanation,
                "stratum": " · ".join(one.stratum),
                "inclusion_probability": one.probability,
                "shuffle": shuffle,
            }
        )
    session.execute(insert(models.StudyItem), values)


def shuffles(study: models.Study, n: int) -> list[float]:
    """Random places by the study's seed."""
    dice = random.Random(f"{study.seed}:shuffle")  # noqa: S311  (to be repeated from its seed, no secret)
    return [dice.random() for _ in range(n)]


def edit(session: Session, study: models.Study, **texts: object) -> None:
    """Change what `settings.TEXTS` names. Conflict unless a draft: what judges agree to does not change."""
    require_draft(study)
    for name, value in checked_texts(texts).items():
        setattr(study, name, value)
    session.flush()


def settings_of(study: models.Study, name: str, *, n: int | None = None) -> StudySettings:
    """The settings of a study, for another that begins as it did, with a new seed."""
    if study.design == StudyDesign.IMPORTED:
        raise Conflict("An imported study has no draw that could be repeated.")
    return StudySettings(
        name=name,
        n=n or int(study.draw["asked"]),
        design=StudyDesign(study.design),
        title=study.title,
        judges_per_item=study.judges_per_item,
        per_case=study.per_case,
        variants=tuple(study.draw["variants"]),
        scenarios=tuple(study.draw.get("scenarios", ())),
        categories=tuple(study.draw.get("categories", ())),
        repeat_share=study.repeat_share,
        careful=study.careful,
        instructions=study.instructions,
        content_note=study.content_note,
        retention=study.retention,
        support=study.support,
        ethics_kind=study.ethics_kind,
        ethics=study.ethics,
        completion_code=study.completion_code,
        completion_url=study.completion_url,
        expected_close=None,
    )
