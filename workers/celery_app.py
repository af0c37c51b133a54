"""The Celery application: JSON, ids as arguments, no result backend, early acknowledgement.

A message is only a hint to look into PostgreSQL, so losing or doubling one is harmless; with late
acknowledgement a task longer than Redis' visibility timeout would start again and again.
"""

import gc
import logging
import multiprocessing

from celery import Celery
from celery.signals import setup_logging, worker_process_init, worker_shutting_down

from app.embedded import die_with_parent
from app.errors import InvalidInput
from app.logs import log_to
from app.settings import load_settings
from app.wake import DRIFT_TASK, DRIVE_TASK, RUNS_QUEUE, UPKEEP_QUEUE

RECONCILE_TASK = "workers.reconcile"
RECONCILE_SECONDS = 20
HARD_LIMIT_SECONDS = 12 * 60

# Made before the fork, so that the parent can tell the children to hand back their work and end.
stopping = multiprocessing.get_context("fork").Event()


def make_app() -> Celery:
    settings = load_settings()
    if settings.redis_url is None:
        raise InvalidInput("Set CURATE_REDIS_URL, or use `curate up`, which starts an embedded broker.")
    app = Celery("curate", broker=settings.redis_url, include=["workers.tasks"])
    app.conf.update(
        task_serializer="json",
        accept_content=["json"],
        task_ignore_result=True,
        task_acks_late=False,
        task_time_limit=HARD_LIMIT_SECONDS,
        task_default_queue=RUNS_QUEUE,
        task_routes={
            DRIVE_TASK: {"queue": RUNS_QUEUE},
            DRIFT_TASK: {"queue": RUNS_QUEUE},
            RECONCILE_TASK: {"queue": UPKEEP_QUEUE},
        },
        worker_prefetch_multiplier=1,
        worker_hijack_root_logger=False,
        worker_cancel_long_running_tasks_on_connection_loss=False,
        broker_connection_retry_on_startup=True,
        broker_connection_max_retries=None,
        broker_transport_options={"socket_keepalive": True, "health_check_interval": 10},
        beat_schedule={"reconcile": {"task": RECONCILE_TASK, "schedule": RECONCILE_SECONDS}},
        timezone="UTC",
    )
    return app


celery_app = make_app()


@setup_logging.connect
def log_as_the_site_does(**_: object) -> None:
    """Worker and scheduler; of what each task does, ours says the part that matters."""
    log_to()
    logging.captureWarnings(True)
    for noisy in ("celery", "kombu"):
        logging.getLogger(noisy).setLevel(logging.WARNING)


@worker_shutting_down.connect
def _tell_children(**_: object) -> None:
    stopping.set()


@worker_process_init.connect
def _begin_process(**_: object) -> None:
    from workers import tasks

    die_with_parent()
    tasks.reset_engine()
    # What is loaded by now stays: to search it for garbage again and again took a tenth of the time.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)
