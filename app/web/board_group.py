"""Which board an address asks for: `board` names the version group, `at` the time as of which it is shown."""

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from app.leaderboard import VersionGroup, choose_group, group_at, read_moment, version_groups
from app.web.context import Web


@dataclass(frozen=True)
class Asked:
    """`group` is None where nothing was ever published; `at` as the address has it."""

    groups: list[VersionGroup]
    group: VersionGroup | None
    board: str | None
    at: str | None

    @property
    def query(self) -> dict[str, str]:
        """What a link has to keep of it."""
        return {name: one for name, one in (("board", self.board), ("at", self.at)) if one}

    @property
    def latest(self) -> bool:
        return self.at is None and (not self.groups or self.group is self.groups[0])


def asked_board(web: Web, groups: list[VersionGroup] | None = None) -> Asked:
    """NotFound for a board that there is not, or that had no row at that time."""
    query = web.request.query_params
    # `version` is what other boards call it.
    key, at = query.get("board") or query.get("version") or None, query.get("at") or None
    simulated = web.settings.on_loopback
    known = version_groups(web.session, simulated=simulated) if groups is None else groups
    group = choose_group(known, key)
    if at is not None:
        moment = read_moment(at)
        if group is not None:
            group = group_at(web.session, group, moment, simulated=simulated)
    return Asked(known, group, key, at)


def snapshot(group: VersionGroup) -> dict[str, str]:
    """The parameters that show this board as it stands now for ever: rounded up to the next whole second."""
    moment = group.computed_at.astimezone(UTC)
    whole = moment.replace(microsecond=0) + (timedelta(seconds=1) if moment.microsecond else timedelta())
    return {"board": group.key, "at": whole.strftime("%Y-%m-%dT%H:%M:%SZ")}


@dataclass(frozen=True)
class Citation:
    url: str
    date: datetime
    bibtex: str


def cite(web: Web, group: VersionGroup, path: str, what: str, **parameters: Any) -> Citation:
    """How to cite a view: an address that keeps showing the same, and BibTeX.

    `parameters` are the view's own; those of the board are put in their place.
    """
    given = {name: value for name, value in parameters.items() if value is not None}
    given |= snapshot(group)
    url = f"{web.site.settings.base_url.rstrip('/')}{path}?{urlencode(given)}"
    date = group.computed_at.astimezone(UTC)
    organisation = web.settings.operator or "CURATe Board"
    return Citation(url, date, bibtex(f"{what}: {group.title}", organisation, url, date))


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_SPECIAL = re.compile(r"([&%$#_{}])")
_LETTERS = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}


def bibtex(title: str, organisation: str, url: str, date: datetime) -> str:
    """A @misc entry; whatever names hold is escaped for LaTeX."""
    month = _MONTHS[date.month - 1]
    address = re.sub(r"[{}\\]", lambda found: f"%{ord(found[0]):02X}", url)
    return (
        f"@misc{{curate-board-{date:%Y-%m-%d},\n"
        f"  title  = {{{{{_latex(title)}}}}},\n"
        f"  author = {{{{{_latex(organisation)}}}}},\n"
        f"  year   = {{{date:%Y}}},\n"
        f"  month  = {month},\n"
        f"  url    = {{{address}}},\n"
        f"  note   = {{As computed on {date:%Y-%m-%d %H:%M:%S} UTC}}\n"
        "}"
    )


def _latex(text: str) -> str:
    plain = " ".join(text.split())
    return "".join(_LETTERS.get(one) or _SPECIAL.sub(r"\\\1", one) for one in plain)
