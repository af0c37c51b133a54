"""Studies with something to rate, made from finished runs, and ways to join them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Engine, select, text

from app import models
from app.db import open_session
from app.outcomes import Outcome
from app.runs.planning import Selection
from app.settings import Settings
from app.studies import creating, freezing, invites, known
from app.studies.settings import StudySettings, builtin_training, standard_text
from tests.board_help import finish
from tests.driving_help import shop_of
from tests.study_help import quick_draws

# Each stands in one place only: found in a judge's browser, it would tell what is behind an item.
MODELS = ("zebra-9b-canary", "okapi-70b-canary")
EXPLANATION = "canary-explanation-of-the-evaluator"
ETHICS = {"ethics_kind": "exemption", "ethics": "No personal data.", "completion_code": "STEW-42"}
OUTCOMES = (Outcome.PASS, Outcome.FAIL, Outcome.UNCLEAR)


@dataclass(frozen=True)
class Made:
    """A study by name and its address for judges; `path`: its owner's page."""

    name: str
    uuid: Any

    @property
    def path(self) -> str:
        return f"/studies/{self.name}"

    @property
    def judging(self) -> str:
        return f"/judge/{self.uuid}"


def finished_runs(
    engine: Engine, settings: Settings, owner: models.Account, *, response: str = "Go on, have number "
) -> list[models.Run]:
    """One run of each of MODELS over eight cases, rated in turn pass, fail, unclear."""
    shop = shop_of(engine, settings, per_category=2)
    runs = []
    for model in MODELS:
        run = shop.submit("http://127.0.0.1:9/v1", model=model, selection=Selection(scenarios=("sc1",)))
        finish(engine, run, lambda key, *_: OUTCOMES[sum(map(ord, key)) % 3])
        with engine.begin() as connection:
            own = {"run": run.id, "owner": owner.id}
            connection.execute(text("UPDATE run SET account_id = :owner WHERE id = :run"), own)
            connection.execute(
                text("""UPDATE endpoint SET account_id = :owner
                    WHERE id = (SELECT endpoint_id FROM run WHERE id = :run)"""),
                own,
            )
            connection.execute(
                text("""UPDATE conversation c SET "constraint" = 'I bear no spice of kind ' || c.id || '.',
                    request = 'May I try stew ' || c.id || '?', response = :response || c.id || '.'
                    WHERE run_id = :run"""),
                {"run": run.id, "response": response},
            )
            connection.execute(
                text("""UPDATE verdict v SET explanation = :why FROM conversation c
                    WHERE c.id = v.conversation_id AND c.run_id = :run"""),
                {"run": run.id, "why": EXPLANATION},
            )
        runs.append(run)
    return runs


def drawn_study(
    engine: Engine, settings: Settings, owner: models.Account, *, opened: bool = True, **options: Any
) -> Made:
    """An open study of four items for two judges each, drawn from finished runs, without repeats."""
    runs = finished_runs(engine, settings, owner, response=options.pop("response", "Go on, have number "))
    wanted: dict[str, Any] = {"name": "pilot", "title": "Stews", "n": 4, "judges_per_item": 2}
    wanted["repeat_share"] = 0.0
    with open_session(engine) as session, quick_draws():
        person = session.get_one(models.Account, owner.id)
        stored = [session.get_one(models.Run, run.id) for run in runs]
        study = creating.create(session, person, stored, StudySettings(**wanted | ETHICS | options))
        if opened:
            freezing.freeze(session, study)
            freezing.open_study(session, study)
        session.commit()
        session.refresh(study)
        return Made(study.name, study.uuid)


def plain_study(engine: Engine, responses: Sequence[str] = ("Go on.",) * 4, *, careful: bool = True) -> Made:
    """The same without any run behind it, which is made much faster; one item for each response."""
    with open_session(engine) as session:
        study = models.Study(
            name="pilot", title="Stews", design="agreement", state="draft", planned=len(responses), seed=7,
            judges_per_item=2, repeat_share=0.0, careful=careful, support="Call 000 000.",
            **{name: standard_text(name) for name in ("instructions", "content_note", "retention")}, **ETHICS,
        )  # fmt: skip
        session.add(study)
        session.flush()
        session.add_all(
            models.StudyItem(
                study_id=study.id, kind="main", position=number, scenario="sc1",
                constraint=f"I bear no spice of kind {number}.", request=f"May I try stew {number}?",
                response=response, model=MODELS[0],
                variant="standard", category="severe_allergy", evaluator_rating=number % 3,
                evaluator_explanation=EXPLANATION, shuffle=number / 100,
            )
            for number, response in enumerate(responses, 1)
        )  # fmt: skip
        known.set_training(session, study, builtin_training())
        freezing.freeze(session, study)
        freezing.open_study(session, study)
        session.commit()
        session.refresh(study)
        return Made(study.name, study.uuid)


def invitation(engine: Engine, made: Made, uses: int = 5) -> str:
    """The path of a link to join."""
    with open_session(engine) as session:
        study = session.scalars(select(models.Study).filter_by(name=made.name)).one()
        _, path = invites.create_invite(session, study, label="a panel", uses=uses)
        session.commit()
        return path


def ratings(engine: Engine) -> list[tuple[int, int, str | None]]:
    """(judge's number, rating, comment) of what is stored of main items, in order."""
    r, j, i = models.StudyRating, models.StudyJudge, models.StudyItem
    with open_session(engine) as session:
        rows = session.execute(
            select(j.number, r.rating, r.comment)
            .join(j, j.id == r.judge_id)
            .join(i, i.id == r.item_id)
            .where(i.kind == "main")
            .order_by(r.id)
        )
        return [(number, rating, comment) for number, rating, comment in rows]


def trained(engine: Engine) -> None:
    """Every judge has done the training.

    Judges are locked before their turns, as the application does: a page that is open goes on meanwhile.
    """
    with engine.begin() as connection:
        connection.execute(text("SELECT id FROM study_judge ORDER BY id FOR NO KEY UPDATE"))
        connection.execute(
            text("""INSERT INTO study_turn (judge_id, item_id, repeat, state)
                SELECT j.id, i.id, false, 'rated' FROM study_judge j
                JOIN study_item i ON i.study_id = j.study_id AND i.kind = 'training'
                ON CONFLICT (judge_id, item_id, repeat) DO UPDATE SET state = 'rated', lease_until = NULL""")
        )
        connection.execute(text("UPDATE study_judge SET state = 'rating' WHERE state = 'training'"))
