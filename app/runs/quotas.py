"""How much one account may have going on, so that nobody's runs crowd out the others'."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from app import models
from app.accounts.policies import is_admin
from app.errors import Conflict
from app.runs.planning import Plan
from app.settings import Settings

OPEN_RUNS = text("SELECT count(*) FROM run WHERE account_id = :account AND status IN ('running', 'paused')")

# What runs of the last day may send at most: shared openings are asked once, so it is often less.
DAILY_CALLS = text("""
SELECT coalesce(sum(least(r.max_calls, planned.calls)), 0)
FROM run r JOIN evaluator e ON e.id = r.evaluator_id, LATERAL (
    SELECT sum(c.turns_planned + CASE e.kind WHEN 'model' THEN 1 ELSE 0 END) AS calls
    FROM conversation c WHERE c.run_id = r.id
) planned
WHERE r.account_id = :account AND r.provenance NOT IN ('uploaded', 'imported')
  AND r.created_at > now() - interval '1 day'
""")


@dataclass(frozen=True)
class Quota:
    """None: no limit. `daily_calls` are planned ones, of the runs that were started within 24 hours."""

    open_runs: int | None = None
    daily_calls: int | None = None


NO_QUOTA = Quota()


def quota_of(settings: Settings, account: models.Account) -> Quota:
    """The account's own; else on a site that others reach the site's, which binds no administrator."""
    bound = not settings.on_loopback and not is_admin(account)
    usual = Quota(settings.most_open_runs, settings.most_daily_calls) if bound else NO_QUOTA
    return Quota(
        usual.open_runs if account.most_open_runs is None else account.most_open_runs,
        usual.daily_calls if account.most_daily_calls is None else account.most_daily_calls,
    )


def check_quota(
    session: Session, account: models.Account, quota: Quota, plan: Plan, max_calls: int | None
) -> None:
    """Conflict when this run would be more than the account may start. Two at once: one after the other."""
    if quota == NO_QUOTA:
        return
    session.refresh(account, ["disabled_at"], with_for_update=True)
    values = {"account": account.id}
    if quota.open_runs is not None:
        going = session.execute(OPEN_RUNS, values).scalar_one()
        if going >= quota.open_runs:
            raise Conflict(
                f"You have {going} runs that are not over, and may have {quota.open_runs}: "
                "wait for one to finish, or cancel one. An administrator can raise this."
            )
    if quota.daily_calls is not None:
        asked = _calls(plan) if max_calls is None else min(max_calls, _calls(plan))
        planned = int(session.execute(DAILY_CALLS, values).scalar_one())
        if planned + asked > quota.daily_calls:
            raise Conflict(
                f"This run may send {asked:,} requests, and yours of the last 24 hours {planned:,}; "
                f"you may plan {quota.daily_calls:,} in that time. Cap its calls, take fewer cases, or wait."
            )


def _calls(plan: Plan) -> int:
    """As DAILY_CALLS counts them."""
    turns = sum(len(arm.turn_names) * len(arm.cases) for arm in plan.arms) * len(plan.seeds)
    return turns + plan.evaluator_calls


def set_quota(
    session: Session, account: models.Account, open_runs: int | None, daily_calls: int | None
) -> None:
    account.most_open_runs, account.most_daily_calls = open_runs, daily_calls
    session.flush()
