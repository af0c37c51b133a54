"""How judges come in: links that end, that can be taken back and that are good for so many; and back again.

A link is good for a number of judges. Whoever joins gets a way back of their own, and a session for this
browser. The database holds only hashes of all three.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from sqlalchemy import delete, exists, func, select, text, update
from sqlalchemy.orm import Session, contains_eager, joinedload

from app import models
from app.accounts.tokens import MAX_TOKEN_LENGTH, new_token, token_hash
from app.errors import Conflict, InvalidInput, NotFound
from app.models import JudgeState, StudyState
from app.studies.finding import SHARE, STUDY_LOCK
from app.studies.topics import TOPICS
from app.text import NOT_SEEN, clean, has_hidden, is_blank

INVITE_PATH, RETURN_PATH = "/judge/join/", "/judge/back/"
SESSION_LIFETIME = timedelta(hours=12)
LONGEST_PSEUDONYM = 40
LONGEST_EXTERNAL_ID = 100
MOST_USES, MOST_DAYS = 1000, 365

# Among those that nobody has on the screen: a judge who would find nothing is told before the consent.
ROOM = text("""
SELECT (
    SELECT i.id FROM study_item i
    WHERE i.study_id = :study AND i.kind = 'main' AND i.counted < :most AND :most > i.counted + (
        SELECT count(*) FROM study_turn t
        WHERE t.item_id = i.id AND t.state = 'leased' AND t.lease_until > now() AND NOT t.repeat
    )
    ORDER BY i.counted, i.shuffle LIMIT 1
) IS NOT NULL
""")


@dataclass(frozen=True)
class Invitation:
    """`room` False: every item has its judges; nothing would be left to rate."""

    invite: models.StudyInvite
    study: models.Study
    room: bool


@dataclass(frozen=True)
class Joined:
    """Both tokens are stored nowhere and cannot be shown again. `judge.study` is there."""

    judge: models.StudyJudge
    return_path: str
    session_token: str


@dataclass(frozen=True)
class JudgeSession:
    """`judge.study` is there."""

    judge: models.StudyJudge
    expires_at: datetime


def create_invite(
    session: Session, study: models.Study, *, label: str = "", uses: int = 1, days: int = 14
) -> tuple[models.StudyInvite, str]:
    """A link for so many judges, and its path, which cannot be shown again."""
    if study.state == StudyState.CLOSED:
        raise Conflict(f"The study '{study.name}' is closed: nobody can join it any more.")
    if not 1 <= uses <= MOST_USES:
        raise InvalidInput(f"A link is good for 1 to {MOST_USES} judges, not {uses}.")
    if not 1 <= days <= MOST_DAYS:
        raise InvalidInput(f"A link is good for 1 to {MOST_DAYS} days, not {days}.")
    token = new_token()
    row = models.StudyInvite(
        study_id=study.id,
        token_hash=token_hash(token),
        label=clean(label)[0].strip()[:200],
        uses_allowed=uses,
        uses=0,
        expires_at=datetime.now(UTC) + timedelta(days=days),
    )
    session.add(row)
    session.flush()
    return row, INVITE_PATH + token


def list_invites(session: Session, study: models.Study) -> list[models.StudyInvite]:
    """The newest first, spent ones too."""
    query = select(models.StudyInvite).filter_by(study_id=study.id).order_by(models.StudyInvite.id.desc())
    return list(session.scalars(query))


def revoke(session: Session, study: models.Study, identity: UUID) -> None:
    """Nobody joins by this link any more; who has joined stays. NotFound."""
    row = session.scalars(
        select(models.StudyInvite).filter_by(study_id=study.id, uuid=identity)
    ).one_or_none()
    if row is None:
        raise NotFound("This study has no such link.")
    row.revoked_at = row.revoked_at or datetime.now(UTC)


def look_at(session: Session, token: str) -> Invitation:
    """The invitation while it is good, without using it; NotFound otherwise, Conflict before the opening."""
    invite, study = _good(session, token)
    values = {"study": study.id, "most": study.judges_per_item}
    return Invitation(invite, study, session.execute(ROOM, values).scalar_one() is True)


def _good(session: Session, token: str) -> tuple[models.StudyInvite, models.Study]:
    table = models.StudyInvite
    row = None
    if len(token) <= MAX_TOKEN_LENGTH:
        row = session.execute(
            select(table, models.Study)
            .join(models.Study, models.Study.id == table.study_id)
            .where(
                table.token_hash == token_hash(token),
                table.revoked_at.is_(None),
                table.expires_at > datetime.now(UTC),
                table.uses < table.uses_allowed,
                models.Study.state != StudyState.CLOSED,
            )
        ).one_or_none()
    if row is None:
        raise NotFound(
            "This link is not valid any more: it was used, taken back or is too old, or the study is closed. "
            "Ask whoever invited you for a new one."
        )
    invite, study = row
    if study.state != StudyState.OPEN:
        raise Conflict("This study is not open at the moment. Keep the link and try again later.")
    return invite, study


def join(
    session: Session,
    token: str,
    *,
    pseudonym: str,
    consented: bool,
    refused_topics: tuple[str, ...] = (),
    external_id: str | None = None,
    account: models.Account | None = None,
    quick: bool = False,
    way_back: str | None = None,
) -> Joined:
    """Become a judge of the study. Of several who use the last place of a link at once, one gets it.

    `way_back`: the token by which the judge will come back, where a form gives it; with the same one sent
    twice, it is the same judge. InvalidInput without consent or pseudonym; Conflict for whoever knows what is
    behind the items.
    """
    name = _pseudonym(pseudonym)
    outside = clean(external_id or "")[0].strip()[:LONGEST_EXTERNAL_ID] or None
    unknown = [one for one in refused_topics if one not in TOPICS]
    if unknown:
        raise InvalidInput(f"There is no topic '{unknown[0][:40]}'.")
    if not consented:
        raise InvalidInput(
            "Nobody takes part without consent: read what it says and tick it, or close the page."
        )
    if way_back is not None and (again := _joined_before(session, token, way_back)) is not None:
        if again.pseudonym != name:
            raise Conflict(
                "This form was sent already, by somebody else. Load the page again to take part too."
            )
        return Joined(again, RETURN_PATH + way_back, _open_session(session, again))
    invite, study = _good(session, token)
    session.execute(SHARE, {"key": STUDY_LOCK + study.id})
    if account is not None:
        refuse_the_informed(session, study, account)
    used = session.execute(
        update(models.StudyInvite)
        .where(models.StudyInvite.id == invite.id, models.StudyInvite.uses < models.StudyInvite.uses_allowed)
        .values(uses=models.StudyInvite.uses + 1)
        .returning(models.StudyInvite.id)
    )
    if used.first() is None:
        raise NotFound("This link was used a moment ago. Ask whoever invited you for a new one.")
    # The study's row is what numbers are given under: two who join at once get different ones.
    session.execute(
        select(models.Study.id).where(models.Study.id == study.id).with_for_update(key_share=True)
    )
    last = session.scalars(select(func.max(models.StudyJudge.number)).filter_by(study_id=study.id)).one()
    number = (last or 0) + 1
    way_back, now = way_back or new_token(), datetime.now(UTC)
    judge = models.StudyJudge(
        study_id=study.id,
        number=number,
        invite_id=invite.id,
        account_id=account.id if account else None,
        pseudonym=name,
        external_id=outside,
        return_hash=token_hash(way_back),
        refused_topics=[topic for topic in TOPICS if topic in refused_topics],
        state=JudgeState.TRAINING.value,
        order_seed=(study.seed * 1_000_003 + number) % (1 << 63),
        quick=quick or not study.careful,
        consented_at=now,
        last_seen_at=now,
    )
    judge.study = study
    session.add(judge)
    session.flush()
    return Joined(judge, RETURN_PATH + way_back, _open_session(session, judge))


def _joined_before(session: Session, token: str, way_back: str) -> models.StudyJudge | None:
    """Who joined by this link and form. The link's row is locked: two at once come one after the other."""
    link, j = models.StudyInvite, models.StudyJudge
    row = session.scalars(
        select(link.id).where(link.token_hash == token_hash(token)).with_for_update(key_share=True)
    ).one_or_none()
    query = select(j).options(joinedload(j.study)).where(j.return_hash == token_hash(way_back))
    return None if row is None else session.scalars(query.where(j.invite_id == row)).one_or_none()


def refuse_the_informed(session: Session, study: models.Study, account: models.Account) -> None:
    """Nobody rates runs of their own, and nobody twice; Conflict."""
    j, r = models.StudyJudge, models.StudyRun
    owns = select(
        exists().where(r.study_id == study.id, models.Run.id == r.run_id, models.Run.account_id == account.id)
    )
    if study.owner_id == account.id or session.scalars(owns).one():
        raise Conflict(
            "You are signed in as somebody who owns this study or one of its runs, and so may know what is "
            "behind an item. Nobody rates runs of their own."
        )
    twice = select(
        exists().where(j.study_id == study.id, j.account_id == account.id, j.withdrawn_at.is_(None))
    )
    if session.scalars(twice).one():
        raise Conflict("You are a judge of this study already: use your own link to come back.")


def _pseudonym(given: str) -> str:
    name = " ".join(clean(given)[0].split())
    if is_blank(name) or len(name) > LONGEST_PSEUDONYM:
        raise InvalidInput(f"Choose a pseudonym of 1 to {LONGEST_PSEUDONYM} characters.")
    if has_hidden(name):
        raise InvalidInput(f"This pseudonym {NOT_SEEN}")
    return name


def come_back(session: Session, token: str) -> tuple[models.StudyJudge, str]:
    """The judge of a way back, and a session for this browser; NotFound."""
    judge = None
    if len(token) <= MAX_TOKEN_LENGTH:
        judge = session.scalars(
            select(models.StudyJudge)
            .options(joinedload(models.StudyJudge.study))
            .where(models.StudyJudge.return_hash == token_hash(token))
        ).one_or_none()
    if judge is None:
        raise NotFound("This is not a judge's link, or its judge has withdrawn.")
    return judge, _open_session(session, judge)


def _open_session(session: Session, judge: models.StudyJudge) -> str:
    token, now = new_token(), datetime.now(UTC)
    session.execute(
        delete(models.StudySession).where(
            models.StudySession.judge_id == judge.id, models.StudySession.expires_at < now
        )
    )
    row = models.StudySession(
        judge_id=judge.id, token_hash=token_hash(token), expires_at=now + SESSION_LIFETIME
    )
    session.add(row)
    session.flush()
    return token


def find_judge(session: Session, token: str) -> JudgeSession | None:
    """Who rates in the browser with this cookie; None when its session ended."""
    if not token or len(token) > MAX_TOKEN_LENGTH:
        return None
    row = session.execute(
        select(models.StudyJudge, models.StudySession.expires_at)
        .join(models.StudySession, models.StudySession.judge_id == models.StudyJudge.id)
        .join(models.StudyJudge.study)
        .options(contains_eager(models.StudyJudge.study))
        .where(
            models.StudySession.token_hash == token_hash(token),
            models.StudySession.expires_at > datetime.now(UTC),
        )
    ).one_or_none()
    return JudgeSession(row[0], row[1]) if row is not None else None


def prolong(session: Session, token: str) -> datetime | None:
    """Stay signed in; when the session ends now, or None when it has ended."""
    ends = datetime.now(UTC) + SESSION_LIFETIME
    found = session.execute(
        update(models.StudySession)
        .where(
            models.StudySession.token_hash == token_hash(token),
            models.StudySession.expires_at > datetime.now(UTC),
        )
        .values(expires_at=ends)
        .returning(models.StudySession.id)
    )
    return ends if found.first() is not None else None


def sign_out(session: Session, token: str) -> None:
    """End the session of this browser; the way back stays."""
    session.execute(delete(models.StudySession).where(models.StudySession.token_hash == token_hash(token)))
