"""/api/v1: evaluators, re-evaluation without a model call, and two evaluators compared."""

from typing import Annotated, Any
from uuid import UUID

from fastapi import Query
from pydantic import Field
from starlette.responses import Response

from app import models
from app.accounts import throttle
from app.accounts.policies import require_admin
from app.errors import NotFound
from app.evaluators import board_runs, evaluator_comparison, find_any, rating_evaluators, scope_of
from app.leaderboard import choose_group, version_groups
from app.runs.browsing import managed_run, visible_run
from app.runs.reevaluating import MOST_REPEATS, MOST_SAMPLED, Reevaluation, begin, check, effort, price_known
from app.runs.reporting import describe_evaluator
from app.wake import wake_run
from app.web import api_models as shapes
from app.web.api_context import Api, Reader, Runner, answers, api_router
from app.web.api_runs import evaluator_of
from app.web.runs import has_to_ask
from app.web.starting import addresses

router = api_router()


class ReevaluationGiven(shapes.Given):
    """Who is to rate the stored conversations once more; no model under test is asked."""

    evaluator: shapes.EvaluatorGiven | None = Field(
        default=None, description="None: the lexical rules, without a model."
    )
    protocol: shapes.Word | None = Field(
        default=None, description="Whose evaluator prompt and parameters; the run's own otherwise."
    )
    sample: Annotated[int, Field(ge=1, le=MOST_SAMPLED)] | None = Field(
        default=None, description="So many conversations of each run, the same ones in all."
    )
    repeats: int = Field(default=1, ge=1, le=MOST_REPEATS, description="Verdicts of each conversation.")
    publish: bool = Field(default=False, description="Put the runs on this evaluator's own board.")


class EvaluatorShown(shapes.Answer):
    id: UUID
    kind: str
    name: str
    version: str
    label: str
    fingerprint: str
    repeat: int


class ListedEvaluator(EvaluatorShown):
    runs: int = Field(description="Of how many runs that you may see.")


class Evaluators(shapes.Answer):
    evaluators: list[ListedEvaluator]


class Begun(shapes.Answer):
    """`runs`: those in which there was something to do; follow each as any run."""

    evaluators: list[EvaluatorShown] = Field(description="The one asked for, then its repeats.")
    runs: list[UUID]
    conversations: int
    calls: int
    prompt_tokens: int
    completion_tokens: int
    cost_usd: float | None
    warnings: list[str]


class Compared(shapes.Answer):
    """As `curate evaluator compare --json` prints it."""

    a: dict[str, Any]
    b: dict[str, Any]
    scope: dict[str, Any]
    conversations: dict[str, int]
    agreement: dict[str, Any]
    flips: dict[str, Any]
    by: dict[str, Any]
    rows: list[dict[str, Any]]
    exchanged: list[dict[str, Any]]
    repeats: dict[str, Any]
    effort: dict[str, Any]
    undefined: dict[str, str]


@router.get("/evaluators", responses=answers(Evaluators, "Those that have rated runs which you may see."))
def list_of_evaluators(web: Reader) -> Response:
    found = [
        {**describe_evaluator(one), "runs": runs} for one, runs in rating_evaluators(web.session, web.visitor)
    ]
    return web.answer({"evaluators": found})


@router.get(
    "/evaluators/compare", responses=answers(Compared, "Flips, agreement, rows that change places, effort.")
)
def compare_evaluators(
    web: Reader,
    a: Annotated[str, Query(max_length=shapes.LONGEST_WORD, description="uuid, name or name@version.")],
    b: Annotated[str, Query(max_length=shapes.LONGEST_WORD)],
    run: Annotated[UUID | None, Query(description="On this run alone.")] = None,
    board: Annotated[str | None, Query(max_length=500, description="On this board's runs alone.")] = None,
) -> Response:
    one, two = (find_any(web.session, web.visitor, name) for name in (a, b))
    group = choose_group(_groups(web), board) if board else None
    chosen = visible_run(web.session, web.visitor, run) if run else None
    runs = scope_of(web.session, web.visitor, one, two, group=group, run=chosen)
    return web.answer(evaluator_comparison(web.session, runs, one, two))


def _groups(web: Api) -> Any:
    return version_groups(web.session, simulated=web.settings.on_loopback)


@router.post(
    "/runs/{run_id}/reevaluations",
    status_code=201,
    responses=answers(Begun, "The verdicts come by themselves; nothing is overwritten.", 201),
)
def reevaluate_run(web: Runner, run_id: UUID, given: ReevaluationGiven) -> Response:
    return _begin(web, [managed_run(web.session, web.person, run_id)], given)


@router.post(
    "/boards/reevaluations",
    status_code=201,
    responses=answers(Begun, "Every run of a board, rated once more; for administrators.", 201),
)
def reevaluate_board(
    web: Runner,
    given: ReevaluationGiven,
    board: Annotated[str, Query(max_length=500, description="The board's key.")],
) -> Response:
    require_admin(web.person)
    group = choose_group(_groups(web), board)
    if group is None:
        raise NotFound("There is no board yet: nothing has been published.")
    return _begin(web, board_runs(web.session, group), given)


def _begin(web: Api, runs: list[models.Run], given: ReevaluationGiven) -> Response:
    web.limit(throttle.SUBMIT, str(web.person.id))
    choice = evaluator_of(given.evaluator)
    publish = given.publish and not has_to_ask(web)
    wanted = Reevaluation(choice, given.protocol, given.sample, given.repeats, publish)
    wanted, warnings = check(wanted, addresses(web))
    if given.publish and not publish:
        warnings.append("It is not put on a board: on this site an administrator decides.")
    needed = effort(web.session, runs, wanted, price_known(web.session, web.person, wanted.evaluator))
    begun = begin(web.session, web.person, web.settings.secret, runs, wanted, addresses(web))
    for run in begun.runs:
        web.record("run.reevaluate", f"run {run.id}", token=web.token.name if web.token else "")
    web.commit()
    for run in begun.runs:
        wake_run(web.settings, run.id)
    return web.answer(
        {
            "evaluators": [describe_evaluator(one) for one in begun.evaluators],
            "runs": [str(run.uuid) for run in begun.runs],
            "conversations": needed.conversations,
            "calls": needed.calls,
            "prompt_tokens": needed.prompt_tokens,
            "completion_tokens": needed.completion_tokens,
            "cost_usd": None if needed.cost is None else float(needed.cost),
            "warnings": warnings,
        },
        status=201,
    )
