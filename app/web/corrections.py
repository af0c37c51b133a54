"""Reports that a verdict or a case is wrong: the form, the public log, what makers reply, what is decided."""

from urllib.parse import urlencode
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app.accounts.throttle import REPORT
from app.cases import benchmarks_shown, called, find_case
from app.corrections import LONGEST, About, about_own_runs, decide, log, reply, report, waiting
from app.errors import AppError, Conflict, InvalidInput, NotFound
from app.leaderboard.versions import benchmarks_to_renew, leaving, next_version
from app.library import find_benchmark
from app.models import CASE_KINDS, Decision
from app.runs.reporting import find_evaluator
from app.runs.transcripts import visible_conversation
from app.web.board_view import read_page
from app.web.cases import case_path
from app.web.context import Admin, SignedIn, Visitor, Web
from app.web.forms import Form, Posted
from app.web.runs import as_uuid

router = APIRouter()

LOG = "/corrections"
QUEUE = "/admin/corrections"
TRAP = "website"  # people do not see this field; programs that fill in every field do


def report_path(**about: str) -> str:
    """Where something can be reported: `conversation`, or `benchmark` and `case` (and `kind`)."""
    return f"{LOG}/new?{urlencode(about)}"


@router.get(LOG)
def page(web: Visitor) -> Response:
    return _show_log(web, Form.blank())


def _show_log(web: Web, form: Form) -> Response:
    number = read_page(web.request.query_params.get("page", "1"), "the log")
    return web.page(
        "corrections/log.html",
        found=log(web.session, number),
        number=number,
        own=about_own_runs(web.session, web.visitor) if web.visitor else [],
        form=form,
        longest=LONGEST,
        case_path=case_path,
        status=form.status,
    )


@router.get(f"{LOG}/new")
def write(web: Visitor) -> Response:
    query = web.request.query_params
    names = ("conversation", "evaluator", "benchmark", "case", "kind")
    return _show_form(web, Form.blank(**{name: query[name] for name in names if query.get(name)}))


def _show_form(web: Web, form: Form) -> Response:
    return web.page(
        "corrections/new.html",
        about=_about(web, form),
        form=form,
        key=web.form_key(),
        longest=LONGEST,
        trap=TRAP,
        case_path=case_path,
        status=form.status,
    )


def _about(web: Web, form: Form) -> About:
    """NotFound for what there is not, or what whoever reports may not see."""
    if form.value("conversation"):
        identity = as_uuid(form.value("conversation"))
        conversation, run, case = visible_conversation(web.session, web.visitor, identity)
        given = form.value("evaluator")
        evaluator = find_evaluator(web.session, run, given) if given else run.evaluator
        return About(case, conversation, evaluator)
    benchmark = called(benchmarks_shown(web.session), form.value("benchmark") or None, "benchmark")
    kind = form.value("kind") or "case"
    if kind not in CASE_KINDS:
        raise NotFound(f"There is no kind '{kind[:80]}'.", details=[*CASE_KINDS])
    return About(find_case(web.session, web.visitor, benchmark, kind, form.value("case")).row)


@router.post(f"{LOG}/new")
def send(web: Visitor, form: Posted) -> Response:
    web.limit(REPORT, web.peer)
    try:
        about = _about(web, form)
        body = form.text("body", "What is wrong", longest=LONGEST)
        form.check()
        # Whoever fills in the trap is told the same, and nothing is stored.
        if not form.value(TRAP):
            report(web.session, about, body, form.key, web.visitor)
    except (InvalidInput, Conflict) as error:
        return _show_form(web, web.refused(form, error))
    web.commit()
    return web.redirect(LOG, notice="correction-sent")


@router.post(f"{LOG}/{{identity}}/reply")
def answer(web: SignedIn, identity: UUID, form: Posted) -> Response:
    try:
        words = form.text("reply", "Reply", longest=LONGEST)
        form.check()
        reply(web.session, identity, web.person, words)
    except (InvalidInput, Conflict) as error:
        return _show_log(web, web.refused(form, error))
    web.commit()
    return web.redirect(LOG, notice="correction-replied")


# --- for administrators ---


@router.get(QUEUE)
def queue(web: Admin) -> Response:
    return _show_queue(web, Form.blank())


def _show_queue(web: Web, form: Form) -> Response:
    renewable = benchmarks_to_renew(web.session)
    return web.page(
        "admin/corrections.html",
        waiting=waiting(web.session),
        renewable=[(one, [found.case.key for found in leaving(web.session, one)]) for one in renewable],
        form=form,
        longest=LONGEST,
        case_path=case_path,
        status=form.status,
    )


@router.post(f"{QUEUE}/next-version")
def renew(web: Admin, form: Posted) -> Response:
    try:
        benchmark = find_benchmark(web.session, form.value("benchmark"))
        next_version(web.session, benchmark, web.person)
    except AppError as error:
        return _show_queue(web, web.refused(form, error))
    web.commit()
    return web.redirect(QUEUE, notice="benchmark-renewed")


@router.post(f"{QUEUE}/{{identity}}")
def decided(web: Admin, identity: UUID, form: Posted) -> Response:
    try:
        decision = Decision(form.choice("decision", "Decision", list(Decision)))
        reason = form.text("reason", "Reason", longest=LONGEST, required=False)
        form.check()
        decide(web.session, identity, web.person, decision, reason)
    except ValueError:
        return _show_queue(web, web.refused(form, InvalidInput("Choose a decision.")))
    except (InvalidInput, Conflict) as error:
        return _show_queue(web, web.refused(form, error))
    web.commit()
    return web.redirect(QUEUE, notice="correction-decided")
