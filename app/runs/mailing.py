"""Mail to whoever started a run, when it is over or the site paused it. Each of both once."""

from dataclasses import dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from app.outcomes import Outcome
from app.runs.control import BY_ITS_OWNER, find_run
from app.runs.reporting import run_report
from app.text import counted

# Taken before it is sent: of two that notice one sends, and a mail that fails is not sent again and again.
TAKE = text("""
UPDATE run SET mailed_status = status
WHERE id = (
    SELECT r.id FROM run r JOIN account a ON a.id = r.account_id
    WHERE r.mail_wanted AND r.mailed_status IS DISTINCT FROM r.status
      AND (r.status = 'finished' OR (r.status = 'paused' AND r.status_reason IS DISTINCT FROM :by_owner))
      AND a.email IS NOT NULL AND a.disabled_at IS NULL
    ORDER BY r.id LIMIT 1 FOR UPDATE OF r SKIP LOCKED
)
RETURNING id
""")


@dataclass(frozen=True)
class RunMail:
    run: int
    to: str
    subject: str
    text: str


def take_mail(session: Session, base_url: str) -> RunMail | None:
    """The next one that is due; it is not given again once the caller has committed."""
    run_id = session.scalar(TAKE, {"by_owner": BY_ITS_OWNER})
    return None if run_id is None else _mail(session, run_id, base_url)


def _mail(session: Session, run_id: int, base_url: str) -> RunMail:
    run = find_run(session, str(run_id))
    report = run_report(session, run)
    counts, overall = report["counts"], report["rates"]["overall"]
    path = f"{base_url}/runs/{run.uuid}"
    name = " ".join(run.name.split())
    if run.status == "paused":
        why = (run.status_reason or "").rstrip(".")
        lines = [f"The run of {name} is paused: {why}.", "Nothing is lost; it goes on from its page."]
    else:
        lines = [f"The run of {name} is finished."]
        if overall["pass_rate"] is not None:
            passed = f"{100 * overall['pass_rate']:.1f} %"
            lines.append(f"Pass rate: {passed} of {overall['answered']:,} answered.")
    errors = sum(counts[one] for one in (Outcome.ENDPOINT_ERROR, Outcome.EVALUATOR_ERROR, Outcome.UNPARSED))
    if errors:
        failed = counted(errors, "conversation")
        lines.append(f"{failed} ended in an error; the page says why, and can retry them.")
    if run.publish_refusal:
        lines.append(f"It is not on the board: {run.publish_refusal}")
    assert run.account.email is not None
    body = "\n".join([*lines, "", path, "", "You asked for this mail when you started the run."])
    return RunMail(run.id, run.account.email, f"Run {run.id} ({name[:80]}) is {run.status}", body + "\n")
