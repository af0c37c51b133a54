"""The places of administrators, and how much waits for them at each."""

from app import models
from app.corrections import count_waiting
from app.db import Session
from app.leaderboard import count_open_requests
from app.runs.flagged import all_waiting
from app.web.site import Site

PLACES = (
    ("/admin", "People"),
    ("/admin/publications", "Publication requests"),
    ("/admin/corrections", "Corrections"),
    ("/admin/flagged", "Flagged"),
    ("/admin/runs", "Runs and queue"),
    ("/admin/endpoints", "Endpoints"),
    ("/admin/evaluators", "Evaluators"),
    ("/admin/spot-checks", "Spot checks"),
    ("/admin/audit", "Audit trail"),
    ("/admin/health", "Health"),
)


def places(site: Site, session: Session, person: models.Account) -> list[tuple[str, str, int]]:
    """(address, name, how many wait) of each page that there is."""
    waiting = {
        "/admin/publications": count_open_requests(session),
        "/admin/corrections": count_waiting(session),
        "/admin/flagged": all_waiting(session, person),
    }
    return [(path, name, waiting.get(path, 0)) for path, name in PLACES if path in site.pages]
