"""What a judge finds around the item at hand: instructions, settings, messages, own ratings, leaving."""

from datetime import UTC, datetime
from uuid import UUID

from fastapi import APIRouter
from starlette.responses import Response

from app import models
from app.errors import Conflict, InvalidInput, NotFound
from app.studies import invites, judging, messages, presence, series
from app.studies.judging import LONGEST_COMMENT, ItemView
from app.studies.topics import TOPICS
from app.web.context import Visitor, Web
from app.web.forms import Form, Posted
from app.web.judging import CHOICES, REFUSALS, WORDS, Judge, cookie_of, judge_again, let_in, rating_in

router = APIRouter(prefix="/judge")


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
        return _show_settings(web, judge_again(web, study).judge, form)
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
        series.revise(web.session, judge, str(key), rating_in(form), comment=text or None)
    except (InvalidInput, Conflict) as error:
        form = web.refused(form, error)
        judge = judge_again(web, study).judge
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
        return _show_leave(web, judge_again(web, study).judge, form)
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
