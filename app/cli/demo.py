"""`curate demo`: three simulated assistants over real HTTP, evaluated, published and shown."""

import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from typing import Annotated

import typer
from sqlalchemy import select
from sqlalchemy.orm import Session

from app import models
from app.benchmark import BUILTIN_NAME, PART_NAME
from app.cli.board import print_board
from app.cli.evaluate import start_run
from app.cli.installation import Installation, installation, out, say
from app.cli.options import DataDir
from app.cli.output import print_run_report
from app.cli.progress import follow
from app.cli.sentinels import run_sentinels
from app.cli.web import DEFAULT_HOST, DEFAULT_PORT, Port, log_to_file, print_links, site, wait_for_signal
from app.endpoints import local_account
from app.errors import ServiceUnavailable
from app.leaderboard import publish, read_board
from app.protocol import builtin_protocol
from app.runs.control import find_run
from app.runs.planning import Selection
from app.runs.reporting import run_report
from app.runs.starting import EvaluatorChoice, Target
from app.settings import Settings
from app.simulator import SimulatorProcess
from app.studies.creating import create
from app.studies.finding import find_study, list_studies
from app.studies.freezing import freeze, open_study
from app.studies.invites import create_invite
from app.studies.settings import StudySettings

ASSISTANTS = ("attentive", "forgetful", "people-pleasing")
LATENCY_SECONDS = "0.02"
STUDY_ITEMS = 30
SENTINEL_CASES = 2  # of each category: they say the same every time
INVITED = ("first judge", "second judge")


def demo(
    once: Annotated[bool, typer.Option("--once", help="End after the report.")] = False,
    every_case: Annotated[
        bool, typer.Option("--all", help="All cases of the built-in benchmark, not a balanced part.")
    ] = False,
    port: Port = DEFAULT_PORT,
    data_dir: DataDir = None,
) -> None:
    """Evaluate three simulated assistants, show the board they make, and serve the site.

    Simulated rows are marked as such.
    """
    with (
        installation(data_dir, workers=True) as installed,
        SimulatorProcess("--latency", LATENCY_SECONDS) as simulator,
        nullcontext() if once else _site(installed, port) as settings,
    ):
        benchmark = BUILTIN_NAME if every_case else PART_NAME
        runs = [_start(installed, simulator.base_url, assistant, benchmark) for assistant in ASSISTANTS]
        for run in runs:
            _finish(installed, run)
        with installed.session() as session:
            shown = read_board(session)
        if not shown["sentinels"]:
            run_sentinels(
                installed,
                simulator.base_url,
                EvaluatorChoice(),
                benchmark,
                builtin_protocol().name,
                SENTINEL_CASES,
            )
        with installed.session() as session:
            print_board(read_board(session))
        study = _study(installed, runs)
        if settings is None:
            out.print(f"Study {study}: open, for two judges.", markup=False)
            return
        out.print()
        print_links(installed, settings, DEFAULT_HOST)
        _print_invites(installed, settings, study)
        out.print(
            "\nThe simulated assistants go on answering, so that you can try your own commands on them:\n"
            f"  {_curate()} evaluate --benchmark {benchmark} --base-url {simulator.base_url} "
            "--model forgetful --variants standard,control,guiding_prompt\n"
            f"  {_curate()} run list · run show {runs[0].id} · run export {runs[0].id} · leaderboard\n"
            "Ctrl-C stops everything that was started here.",
            markup=False,
            soft_wrap=True,  # a command is to be copied as one line
        )
        wait_for_signal()


def _curate() -> str:
    """How a shell in this directory calls this command."""
    return "curate" if shutil.which("curate") else sys.argv[0]


@contextmanager
def _site(installed: Installation, port: int) -> Iterator[Settings]:
    log_to_file(installed.settings.data_dir)
    with site(installed, DEFAULT_HOST, port) as settings:
        yield settings


def _start(installed: Installation, base_url: str, assistant: str, benchmark: str) -> models.Run:
    return start_run(
        installed,
        Target(base_url, assistant, f"simulated {assistant}"),
        EvaluatorChoice(),
        Selection(probes=True, recall=True),
        benchmark=benchmark,
        protocol=builtin_protocol().name,
        seeds=(1,),
        concurrency=16,
        max_calls=None,
    )


def _finish(installed: Installation, run: models.Run) -> None:
    status = follow(installed, run)
    if status != "finished":
        raise ServiceUnavailable(f"Run {run.id} of the demo is {status}; see `curate doctor`.")
    with installed.session() as session:
        found = find_run(session, str(run.id))
        print_run_report(run_report(session, found))
        earlier = _on_board(session, found)
        if earlier is None:
            publish(session, found, served=False)
            session.commit()
            say(f"run {run.id} is on the board")
        else:
            say(f"run {run.id} is not put on the board: run {earlier} of the same assistant stands there")


def _study(installed: Installation, runs: Sequence[models.Run]) -> str:
    """A small study over these runs, open; its name."""
    with installed.session() as session:
        known = {one.study.name for one in list_studies(session, everybodys=True)}
        name = next(one for number in count(1) if (one := f"demo-{number}") not in known)
        settings = StudySettings(
            name=name,
            n=STUDY_ITEMS,
            title="How far can the evaluator be trusted?",
            judges_per_item=len(INVITED),
            ethics_kind="exemption",
            ethics="A demonstration on replies of simulated assistants; nobody is studied.",
            support="This is a demonstration: stop whenever you like.",
        )
        study = create(
            session, local_account(session), [find_run(session, str(run.id)) for run in runs], settings
        )
        freeze(session, study)
        open_study(session, study)
        session.commit()
    return name


def _print_invites(installed: Installation, settings: Settings, name: str) -> None:
    with installed.session() as session:
        study = find_study(session, name)
        for label in INVITED:
            _, path = create_invite(session, study, label=label)
            out.print(f"Study {name}, {label}: {settings.base_url}{path}", markup=False, soft_wrap=True)
        session.commit()
    out.print(
        "A judge's link does not open in a browser that is signed in as the owner of the runs: use a private "
        "window for each.",
        markup=False,
        soft_wrap=True,
    )


def _on_board(session: Session, run: models.Run) -> int | None:
    """An earlier demo's row for the same assistant, asked and rated in the same way."""
    query = (
        select(models.Run.id)
        .join(models.BoardEntry, models.BoardEntry.run_id == models.Run.id)
        .where(
            models.BoardEntry.withdrawn_at.is_(None),
            models.BoardEntry.evaluator_id == run.evaluator_id,
            models.Run.benchmark_id == run.benchmark_id,
            models.Run.protocol_id == run.protocol_id,
            models.Run.name == run.name,
            models.Run.simulated,
        )
        .order_by(models.Run.id)
    )
    return session.scalars(query).first()
