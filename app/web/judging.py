"""The pages of judges: joining by a link, one item after the other, own ratings, leaving.

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
from app.errors import Conflict, InvalidInput, NotFound
from app.outcomes import Rating
from app.studies import invites, judging, messages, presence, series
from app.studies.invites import LONGEST_EXTERNAL_ID, LONGEST_PSEUDONYM, JudgeSession
from app.studies.judging import (
    LONGEST_COMMENT,
    Feedback,
    ItemView,
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
    study = _uuid(name)
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
        status=form.status,
    )


@router.post("/join/{token}")
def join(web: Visitor, token: Token, form: Posted) -> Response:
    web.limit(throttle.LINK, web.peer)
    study = invites.look_at(web.session, token).study
    try:
        joined = invites.join(
            web.session,
            token,
            pseudonym=form.text("pseudonym", "Pseudonym", longest=LONGEST_PSEUDONYM),
            external_id=form.text(
                "external_id", "Participant number", longest=LONGEST_EXTERNAL_ID, required=False
            )
            or None,
            refused_topics=form.choices("topics", "Topics", TOPICS),
            consented=_consent(form),
            account=web.visitor,
        )
    except (InvalidInput, Conflict) as error:
        return show_join(web, token, web.refused(form, error))
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
        study = _uuid(form.value("study"))
        if study is None:
            return web.page("judging/own.html", rows=[], form=form, status=form.status)
        return signed_out(web, study, form, form.message or NOT_IN)


def _enter(web: Web, token: str, carried: Form) -> Response:
    web.limit(throttle.LINK, web.peer)
    judge, session_token = invites.come_back(web.session, token)
    study = judge.study.uuid
    web.commit()
    path, notice = f"/judge/{study}", "judge-back"
    if carried.value("item") and _uuid(carried.value("study")) == study:
        done = carry_out(web, judge, carried)
        path, notice = f"{path}?{done.query}" if done.query else path, done.notice
    return let_in(web, web.redirect(path, notice=notice), study, session_token)


def _uuid(given: str) -> UUID | None:
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
            return show_turn(web, _again(web, study), done, typed=form)
        return show_turn(web, seat, done)
    return web.redirect(f"/judge/{study}?{done.query}".rstrip("?"))


def _again(web: Web, study: UUID) -> JudgeSession:
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
    rating = _rating(form)
    submission = _uuid(form.value("submission"))
    if submission is None:
        raise InvalidInput("This form came without its key: reload the page and rate again.")
    form.check()
    stored = judging.submit(web.session, judge, key, rating, submission, comment=comment or None)
    last = stored.key if stored.rating is not None else None
    return Done(_stored_words(stored, rating), last, rating=stored.rating, feedback=stored.feedback)


def _rating(form: Form) -> Rating:
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


@router.post("/{study}/comment")
def comment(web: Visitor, judge: Judge, study: UUID, form: Posted) -> Response:
    """What is being typed, kept without being submitted."""
    text = form.text("comment", "Comment", longest=LONGEST_COMMENT, required=False)
    form.check()
    judging.save_comment(web.session, judge, form.value("item"), text)
    web.commit()
    return _done(web)


@router.post("/{study}/beat")
def beat(web: Visitor, judge: Judge, form: Posted) -> Response:
    presence.beat(web.session, judge, form.value("item") or None, active=form.value("active") == "1")
    web.commit()
    return _done(web)


@router.post("/{study}/stay")
def stay(web: Visitor, judge: Judge, study: UUID) -> Response:
    """The session lasts anew; how many seconds, for the page's own clock."""
    token = web.cookie(cookie_of(study)) or ""
    ends = invites.prolong(web.session, token)
    web.commit()
    seconds = int((ends - datetime.now(UTC)).total_seconds()) if ends else 0
    return let_in(web, web.data(str(seconds).encode(), "text/plain"), study, token)


def _done(web: Web) -> Response:
    web.session.close()
    return Response(status_code=204)


# --- around the item ---


@router.get("/{study}/instructions")
def instructions(web: Visitor, judge: Judge, study: UUID) -> Response:
    return web.page("judging/instructions.html", study=judge.study, base=f"/judge/{study}")


@router.get("/{study}/settings")
def settings_page(web: Visitor, judge: Judge, study: UUID) -> Response:
    form = Form.blank(
        mode="quick" if judge.quick else "careful",
        shortcuts=1 if judge.shortcuts else None,
        topics=judge.refused_topics,
    )
    return _show_settings(web, judge, form)


def _show_settings(web: Web, judge: models.StudyJudge, form: Form) -> Response:
    return web.page(
        "judging/settings.html",
        study=judge.study,
        form=form,
        topics=list(TOPICS.items()),
        base=f"/judge/{judge.study.uuid}",
        status=form.status,
    )


@router.post("/{study}/settings")
def change_settings(web: Visitor, judge: Judge, study: UUID, form: Posted) -> Response:
    try:
        quick = form.choice("mode", "Mode", ("careful", "quick")) == "quick"
        topics = form.choices("topics", "Topics", TOPICS)
        form.check()
        series.set_modes(
            web.session, judge, quick=quick, shortcuts=form.checked("shortcuts"), refused_topics=topics
        )
    except REFUSALS as error:
        form = web.refused(form, error)
        return _show_settings(web, _again(web, study).judge, form)
    web.commit()
    return web.redirect(f"/judge/{study}", notice="judge-quick" if quick else "judge-settings")


@router.post("/{study}/read")
def read(web: Visitor, judge: Judge, study: UUID, form: Posted) -> Response:
    """The messages above the item, up to the last one shown, have been read."""
    shown = form.whole("up_to", "Message", least=1, most=2**62, required=True)
    form.check()
    messages.mark_seen(web.session, judge, shown or 0)
    web.commit()
    return web.redirect(f"/judge/{study}")


@router.get("/{study}/ratings")
def ratings(web: Visitor, judge: Judge, study: UUID) -> Response:
    given = web.request.query_params.get("page", "1")
    page = int(given) if given.isdecimal() and len(given) < 7 else 0
    found = series.own_ratings(web.session, judge, page)
    return web.page(
        "judging/ratings.html",
        study=judge.study,
        found=found,
        page=page,
        words=WORDS,
        base=f"/judge/{study}",
    )


@router.get("/{study}/ratings/{key}")
def rating_page(web: Visitor, judge: Judge, study: UUID, key: UUID) -> Response:
    item = judging.item_for(web.session, judge, str(key))
    if item.rating is None:
        raise NotFound("This item is not rated yet.")
    form = Form.blank(rating=int(item.rating), comment=item.comment)
    return _show_rating(web, judge, item, form)


def _show_rating(web: Web, judge: models.StudyJudge, item: ItemView, form: Form) -> Response:
    return web.page(
        "judging/rating.html",
        study=judge.study,
        item=item,
        form=form,
        choices=CHOICES,
        words=WORDS,
        open=judge.study.state in ("open", "paused"),
        longest=LONGEST_COMMENT,
        base=f"/judge/{judge.study.uuid}",
        status=form.status,
    )


@router.post("/{study}/ratings/{key}")
def revise(web: Visitor, judge: Judge, study: UUID, key: UUID, form: Posted) -> Response:
    try:
        text = form.text("comment", "Comment", longest=LONGEST_COMMENT, required=False)
        series.revise(web.session, judge, str(key), _rating(form), comment=text or None)
    except (InvalidInput, Conflict) as error:
        form = web.refused(form, error)
        judge = _again(web, study).judge
        return _show_rating(web, judge, judging.item_for(web.session, judge, str(key)), form)
    web.commit()
    return web.redirect(f"/judge/{study}/ratings", notice="judge-revised")


# --- leaving ---


@router.get("/{study}/leave")
def leave_page(web: Visitor, judge: Judge, study: UUID) -> Response:
    return _show_leave(web, judge, Form.blank())


def _show_leave(web: Web, judge: models.StudyJudge, form: Form) -> Response:
    return web.page(
        "judging/leave.html",
        study=judge.study,
        judge=judge,
        progress=judging.progress(web.session, judge),
        form=form,
        base=f"/judge/{judge.study.uuid}",
        status=form.status,
    )


@router.post("/{study}/stop")
def stop(web: Visitor, judge: Judge, study: UUID) -> Response:
    series.stop(web.session, judge)
    web.commit()
    return web.redirect(f"/judge/{study}", notice="judge-stopped")


@router.post("/{study}/go-on")
def go_on(web: Visitor, judge: Judge, study: UUID) -> Response:
    series.go_on(web.session, judge)
    web.commit()
    return web.redirect(f"/judge/{study}")


@router.post("/{study}/withdraw")
def withdraw(web: Visitor, judge: Judge, study: UUID, form: Posted) -> Response:
    """Only with the box ticked: what is deleted is gone."""
    try:
        if not form.checked("sure"):
            form.fault("sure", "Tick this if you mean it; nothing was deleted.")
        form.check()
        series.withdraw(web.session, judge)
    except (InvalidInput, Conflict) as error:
        form = web.refused(form, error)
        return _show_leave(web, _again(web, study).judge, form)
    web.commit()
    return web.redirect(f"/judge/{study}", notice="judge-withdrawn")


@router.post("/{study}/sign-out")
def sign_out(web: Visitor, study: UUID) -> Response:
    """This browser forgets who judges; the own link opens the study again."""
    invites.sign_out(web.session, web.cookie(cookie_of(study)) or "")
    web.commit()
    response = web.redirect("/judge", notice="judge-signed-out")
    web.remember(response, cookie_of(study), "", 0)
    return response
