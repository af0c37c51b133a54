"""What `curate run push` does with its file."""

from pathlib import Path

from app import models
from app.cli.evaluate import evaluator_for
from app.cli.installation import Installation, say
from app.endpoints import local_account, store_endpoint
from app.library import load_stored_protocol
from app.protocol import builtin_protocol
from app.runs.control import find_run
from app.runs.starting import EvaluatorChoice
from app.runs.uploading import read_transcripts, store_uploaded
from app.starter import benchmark_called, protocol_called
from app.text import counted
from app.wake import wake_run

ELSEWHERE = "uploaded://elsewhere"


def push_transcripts(
    installed: Installation,
    file: Path,
    choice: EvaluatorChoice,
    benchmark: str,
    protocol: str | None,
    model: str,
    name: str,
) -> models.Run:
    """Store the transcripts as a run and wake the workers to rate them."""
    found = read_transcripts(file)
    with installed.session() as session:
        account = local_account(session)
        benchmark_row = benchmark_called(session, benchmark)
        protocol_row = protocol_called(session, protocol or builtin_protocol().name)
        endpoint = store_endpoint(
            session,
            account,
            installed.settings.secret,
            name=name,
            provider="openai",
            base_url=ELSEWHERE,
            model=model,
            api_key=None,
            private_allowed=False,
        )
        run = store_uploaded(
            session,
            found,
            account=account,
            benchmark=benchmark_row,
            protocol_row=protocol_row,
            protocol=load_stored_protocol(protocol_row),
            endpoint=endpoint,
            evaluator=evaluator_for(installed, session, account, choice, protocol_row),
        )
        session.commit()
        wake_run(installed.settings, run.id)
        say(f"run {run.id}: {counted(len(found), 'conversation')} uploaded")
        return find_run(session, str(run.id))
