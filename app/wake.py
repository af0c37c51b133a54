"""Tell the workers that there is work. Best effort: PostgreSQL is the queue, a lost message costs seconds."""

import logging
from functools import lru_cache
from typing import TYPE_CHECKING

from app.settings import Settings

if TYPE_CHECKING:
    from celery import Celery

RUNS_QUEUE = "runs"
UPKEEP_QUEUE = "upkeep"
DRIVE_TASK = "workers.drive"
DRIFT_TASK = "workers.check_drift"

log = logging.getLogger(__name__)


def wake_run(settings: Settings, run_id: int) -> bool:
    """Send the hint; False when the broker is away (the scheduler's next round finds the run)."""
    return _send(settings, DRIVE_TASK, run_id, "run")


def wake_drift(settings: Settings, check_id: int) -> bool:
    """The same for a drift check that is wanted."""
    return _send(settings, DRIFT_TASK, check_id, "drift check")


def _send(settings: Settings, task: str, identity: int, what: str) -> bool:
    # Loaded here, since most commands send no message and Celery is slow to load.
    from kombu.exceptions import OperationalError

    if settings.redis_url is None:
        return False
    try:
        _sender(settings.redis_url).send_task(task, args=[identity], queue=RUNS_QUEUE, retry=False)
    except OperationalError as error:
        log.warning("The broker does not answer (%s); %s %s waits for the scheduler.", error, what, identity)
        return False
    return True


def ping_workers(settings: Settings, seconds: float = 2.0) -> list[str]:
    """The names of the workers that answer within that time; none when the broker is away."""
    from kombu.exceptions import OperationalError

    if settings.redis_url is None:
        return []
    try:
        answers = _sender(settings.redis_url).control.ping(timeout=seconds)
    except OperationalError:
        return []
    return [name for answer in answers or [] for name in answer]


@lru_cache(maxsize=4)
def _sender(redis_url: str) -> "Celery":
    from celery import Celery

    app = Celery("curate-wake", broker=redis_url, set_as_current=False)
    app.conf.update(
        task_ignore_result=True,
        # One try: without these, Kombu waits 2 and 4 s for a broker that refuses the connection.
        broker_transport_options={
            "socket_timeout": 3,
            "socket_connect_timeout": 3,
            "max_retries": 0,
            "interval_start": 0,
            "interval_max": 0,
        },
    )
    return app
