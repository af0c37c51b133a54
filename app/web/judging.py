"""The pages of judges: joining by a link, and one item after the other. The rest: `app.web.judging_series`.

A judge is known by a cookie of the study alone, so that no account is needed. Nothing here reads more of an
item than `app.studies.judging.ItemView` holds: the texts, and what this judge said of them.
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated
from uuid import UUID, uuid4

from fastapi import APIRouter, Depends, Path
from starlette.responses import Response

from app import models
from app.accounts import throttle
from app.accounts.tokens import keyed_token
from app.errors import Conflict, InvalidInput, NotFound
from app.outcomes import Rating
from app.studies import invites, judging, messages, series
from app.studies.invites import LONGEST_EXTERNAL_ID, LONGEST_PSEUDONYM, JudgeSession
from app.studies.judging import (
    LONGEST_COMMENT,
    Feedback,
    SeriesState,
    SubmissionKind,
    Submitted,
)
from app.studies.topics import TOPICS
from app.web.context import Visitor, Web
from app.web.forms import Form, Posted

router = APIRouter(prefix="/judge")

Token = Annotated[str, Path(max_length=100)]
COOKIE = "judge-"
LONGEST_CODE = 400
QUICK = {"fail": Rating.FAIL, "unclear": Rating.UNCLEAR, "pass": Rating.PASS}
WORDS = {Rating.FAIL: "Fail", Rating.UNCLEAR: "Unclear", Rating.PASS: "Pass"}
CHOICES = [(int(rating), word, word[0]) for rating, word in WORDS.items()]
BREAK_MINUTES = 30
REFUSALS = (InvalidInput, Conflict, NotFound)
NOT_IN = "This browser is not signed in as a judge of this study, or its session has ended."


# --- who rates ---


def cookie_of(study: UUID) -> str:
    return COOKIE + study.hex


def known(web: Web, study: UUID) -> JudgeSession | None:
    """The judge that this browser is in that study, and until when."""
    token = web.cookie(cookie_of(study))
    found = invites.find_judge(web.session, token) if token else None
    return found if found is not None and found.judge.study.uuid == study else None


def signed_out(web: Web, study: UUID, form: Form, message: str = NOT_IN) -> Response:
    """In place of any page of a judge; what was about to be sent stays in the form and goes with the link."""
    return web.page(
        "judging/back.html",
        fragment="turn",
        study_id=study,
        form=form,
        message=message,
        carried=[(name, form.value(name)) for name in CARRIED if form.value(name)],
        whole=not web.under_htmx,
        choices=WORDS,
        status=401,
    )


CARRIED = ("item", "do", "rating", "comment", "submission")


class JudgeNeeded(Exception):
    """Raised with the page that is shown in place of the one that was asked for."""

    def __init__(self, response: Response) -> None:
        super().__init__(NOT_IN)
        self.response = response


def _seat(web: Visitor, study: UUID, form: Posted) -> JudgeSession:
    found = known(web, study)
    if found is None:
        raise JudgeNeeded(signed_out(web, study, form))
    return found


Seat = Annotated[JudgeSession, Depends(_seat)]


def _judge(seat: Seat) -> models.StudyJudge:
    return seat.judge


Judge = Annotated[models.StudyJudge, Depends(_judge)]


def let_in(web: Web, response: Response, study: UUID, session_token: str) -> Response:
    seconds = int(invites.SESSION_LIFETIME.total_seconds())
    web.remember(response, cookie_of(study), session_token, seconds)
    return response


@router.get("")
def own(web: Visitor) -> Response:
    """The studies that this browser judges in."""
    found = [judge for name in web.cookies(COOKIE) if (judge := _judge_by_cookie(web, name)) is not None]
    rows = [(judge, judging.progress(web.session, judge)) for judge in found]
    return web.page("judging/own.html", rows=rows, form=Form.blank())


def _judge_by_cookie(web: Web, name: str) -> models.StudyJudge | None:
    study = uuid_in(name)
    found = known(web, study) if study else None
    return found.judge if found else None


# --- joining and coming back ---


@router.get("/join/{token}")
def join_page(web: Visitor, token: Token) -> Response:
    return show_join(web, token, Form.blank())


def show_join(web: Web, token: str, form: Form) -> Response:
    invitation = invites.look_at(web.session, token)
    if known(web, invitation.study.uuid) is not None:
        return web.redirect(f"/judge/{invitation.study.uuid}")
    return web.page(
        "judging/join.html",
        study=invitation.study,
        room=invitation.room,
        form=form,
        topics=list(TOPICS.items()),
        longest={"pseudonym": LONGEST_PSEUDONYM, "external": LONGEST_EXTERNAL_ID},
        token=token,
        key=web.form_key(),
        status=form.status,
    )


@router.post("/join/{token}")
def join(web: Visitor, token: Token, form: Posted) -> Response:
    """A form sent twice, by a double click or a reload, makes one judge and shows the same link again."""
    web.limit(throttle.LINK, web.peer)
    try:
        joined = invites.join(
            web.session,
            token,
            pseudonym=form.text("pseudonym", "Pseudonym", longest=LONGEST_PSEUDONYM),
            external_id=_external(form),
            refused_topics=form.choices("topics", "Topics", TOPICS),
            consented=_consent(form),
            account=web.visitor,
            way_back=keyed_token(web.settings.secret, "judge", form.key),
        )
    except (InvalidInput, Conflict) as error:
        return show_join(web, token, web.refused(form, error))
    study = joined.judge.study
    web.commit()
    link = f"{web.site.origin.base_url}{joined.return_path}"
    response = web.page("judging/joined.html", study=study, link=link)
    return let_in(web, response, study.uuid, joined.session_token)


def _external(form: Form) -> str | None:
    number = form.text("external_id", "Participant number", longest=LONGEST_EXTERNAL_ID, required=False)
    return number or None


def _consent(form: Form) -> bool:
    """Raises FormFault for all that is wrong in the form, the missing consent among it."""
    agreed = form.checked("consent")
    if not agreed:
        form.fault("consent", "Consent: without it nobody can take part; to leave, just close this page.")
    form.check()
    return agreed


@router.get("/back/{token}")
def back_page(web: Visitor, token: Token) -> Response:
    """One button, so that whatever looks at links in advance does not sign in."""
    return web.page("judging/return.html", token=token)


@router.post("/back/{token}")
def come_back(web: Visitor, token: Token) -> Response:
    return _enter(web, token, Form.blank())


@router.post("/back")
def come_back_by_code(web: Visitor, form: Posted) -> Response:
    """The link pasted into a page that asked for it; what was about to be sent is sent now."""
    code = form.text("code", "Your link", longest=LONGEST_CODE).rsplit("/", 1)[-1]
    try:
        form.check()
        return _enter(web, code, form)
    except (InvalidInput, NotFound) as error:
        form = web.refused(form, error)
        study = uuid_in(form.value("study"))
        if study is None:
            return web.page("judging/own.html", rows=[], form=form, status=form.status)
        return signed_out(web, study, form, form.message or NOT_IN)


def _enter(web: Web, token: str, carried: Form) -> Response:
    web.limit(throttle.LINK, web.peer)
    judge, session_token = invites.come_back(web.session, token)
    study = judge.study.uuid
    web.commit()
    path, notice = f"/judge/{study}", "judge-back"
    if carried.value("item") and uuid_in(carried.value("study")) == study:
        done = carry_out(web, judge, carried)
        path, notice = f"{path}?{done.query}" if done.query else path, done.notice
    return let_in(web, web.redirect(path, notice=notice), study, session_token)


def uuid_in(given: str) -> UUID | None:
    try:
        return UUID(given)
    except ValueError:
        return None


# --- the item at hand ---


@dataclass(frozen=True)
class Done:
    """What became of something that was sent, in words; `last`: the item it was about, to be undone."""

    words: str
    last: str | None = None
    refused: str | None = None
    rating: Rating | None = None
    feedback: Feedback | None = None
    status: int = 200

    @property
    def query(self) -> str:
        return f"last={self.last}" if self.last else ""

    @property
    def notice(self) -> str:
        return "judge-not-stored" if self.refused else "judge-back"


@router.get("/{study}")
def rate(web: Visitor, seat: Seat) -> Response:
    return show_turn(web, seat, _last_done(web, seat.judge))


def _last_done(web: Web, judge: models.StudyJudge) -> Done:
    """After a form without JavaScript the address names the last item; what is stored says the rest."""
    last = web.request.query_params.get("last", "")
    if not last:
        return Done("")
    try:
        item = judging.item_for(web.session, judge, last)
    except REFUSALS:
        return Done("")
    if item.rating is None:
        return Done("")
    return Done(f"Saved: {WORDS[item.rating].lower()}.", last)


def show_turn(web: Web, seat: JudgeSession, done: Done, typed: Form | None = None) -> Response:
    """The next item, or why there is none; above it what became of what was sent."""
    judge = seat.judge
    found = judging.next_item(web.session, judge)
    told = messages.unseen(web.session, judge)
    leaving = found.state not in (SeriesState.TRAINING, SeriesState.RATING, SeriesState.PAUSED)
    completion = series.completion(judge) if leaving else None
    web.commit()
    return web.page(
        "judging/turn.html",
        fragment="turn",
        status=done.status,
        study=judge.study,
        judge=judge,
        state=found.state.value,
        item=found.item,
        progress=found.progress,
        completion=completion,
        done=done,
        typed=typed,
        told=told,
        whole=not web.under_htmx,
        quick=judge.quick and found.state == SeriesState.RATING,
        choices=CHOICES,
        words=WORDS,
        submission=uuid4(),
        minutes=judge.active_ms // 60_000,
        rest=_time_for_a_break(judge),
        ends=max(0, int((seat.expires_at - datetime.now(UTC)).total_seconds())),
        longest=LONGEST_COMMENT,
        base=f"/judge/{judge.study.uuid}",
    )


def _time_for_a_break(judge: models.StudyJudge) -> bool:
    minutes = judge.active_ms // 60_000
    return minutes >= BREAK_MINUTES and minutes % BREAK_MINUTES < 2


@router.post("/{study}")
def act(web: Visitor, seat: Seat, study: UUID, form: Posted) -> Response:
    """Whatever a button on the item does: rate, put off, decline, undo."""
    done = carry_out(web, seat.judge, form)
    if done.refused is not None or done.feedback is not None or web.under_htmx:
        if done.refused is not None:
            return show_turn(web, judge_again(web, study), done, typed=form)
        return show_turn(web, seat, done)
    return web.redirect(f"/judge/{study}?{done.query}".rstrip("?"))


def judge_again(web: Web, study: UUID) -> JudgeSession:
    """After a refusal, which let go of everything that was read."""
    seat = known(web, study)
    if seat is None:
        raise JudgeNeeded(signed_out(web, study, Form.blank()))
    return seat


def carry_out(web: Web, judge: models.StudyJudge, form: Form) -> Done:
    """Do and commit it; a refusal is part of the answer, with nothing stored."""
    try:
        done = _do(web, judge, form)
        web.commit()
    except REFUSALS as error:
        form = web.refused(form, error)
        why = form.message or next(iter(form.faults.values()), "")
        return Done("", refused=why, status=error.status)
    return done


def _do(web: Web, judge: models.StudyJudge, form: Form) -> Done:
    key, deed = form.value("item"), form.value("do")
    if deed == "later":
        judging.later(web.session, judge, key)
        return Done("Put off: it comes again before the end.", key)
    if deed == "decline":
        judging.decline(web.session, judge, key)
        return Done("Declined: it does not come again, and nothing was rated.", key)
    if deed == "undo":
        judging.undo(web.session, judge, key)
        return Done("Undone: the item is here again, not rated.")
    comment = form.text("comment", "Comment", longest=LONGEST_COMMENT, required=False)
    rating = rating_in(form)
    submission = uuid_in(form.value("submission"))
    if submission is None:
        raise InvalidInput("This form came without its key: reload the page and rate again.")
    form.check()
    stored = judging.submit(web.session, judge, key, rating, submission, comment=comment or None)
    last = stored.key if stored.rating is not None else None
    return Done(_stored_words(stored, rating), last, rating=stored.rating, feedback=stored.feedback)


def rating_in(form: Form) -> Rating:
    if form.value("do") in QUICK:
        return QUICK[form.value("do")]
    chosen = form.choice("rating", "Rating", [str(int(rating)) for rating in Rating])
    form.check()
    return Rating(int(chosen))


def _stored_words(stored: Submitted, sent: Rating) -> str:
    if stored.rating is None:
        return "This rating had been stored and was undone since: nothing is stored for the item now."
    stands = WORDS[stored.rating].lower()
    if stored.rating != sent:
        return (
            f"Saved before as {stands}, so {WORDS[sent].lower()} was not stored: "
            "change it under “own ratings” if it is wrong."
        )
    return f"Saved before: {stands}." if stored.kind is SubmissionKind.RATED_BEFORE else f"Saved: {stands}."
