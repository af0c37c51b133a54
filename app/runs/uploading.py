"""Take in transcripts that were made elsewhere: provenance `uploaded`, rated like others, never ranked."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sqlalchemy import select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from app import models
from app.endpoints import evaluator_of_run
from app.errors import InvalidInput
from app.evaluation import screen
from app.outcomes import RECALL, STANDARD, ConversationState
from app.protocol import Protocol, arms, turn_names
from app.runs.planning import Selection
from app.simulated import FINGERPRINT
from app.text import is_blank

MAX_BYTES = 512 * 2**20
MAX_TURNS = 50
MAX_CHARACTERS = 32_000
MAX_FAULTS = 20
MAX_SEED = 2**31 - 1


@dataclass(frozen=True)
class UploadedTurn:
    """`state`: answered, empty, or filtered where the file says so."""

    user: str
    assistant: str
    state: ConversationState


@dataclass(frozen=True)
class Uploaded:
    """One conversation of the file."""

    case: str
    scenario: str
    variant: str
    seed: int
    constraint: str | None
    turns: tuple[UploadedTurn, ...]
    simulated: bool


def read_transcripts(path: Path) -> list[Uploaded]:
    """JSONL with case, scenario, turns and, where they differ from standard and 1, variant and seed.

    InvalidInput lists every faulty line; then nothing is stored.
    """
    if path.stat().st_size > MAX_BYTES:
        raise InvalidInput(f"{path.name} is larger than {MAX_BYTES // 2**20} MiB: split it.")
    found: list[Uploaded] = []
    faults: list[str] = []
    with path.open(encoding="utf-8-sig", errors="strict") as file:
        try:
            for number, line in enumerate(file, 1):
                if line.strip():
                    try:
                        found.append(_uploaded(json.loads(line)))
                    except (ValueError, RecursionError) as error:
                        faults.append(f"line {number}: {str(error).splitlines()[0]}")
        except UnicodeDecodeError:
            raise InvalidInput(f"{path.name} is not UTF-8 text: save it as UTF-8.") from None
    faults += _repeats(found)
    if faults:
        raise InvalidInput(
            f"{path.name}: {len(faults)} faults; nothing was stored.", details=faults[:MAX_FAULTS]
        )
    if not found:
        raise InvalidInput(f"{path.name} holds no conversation: one JSON object a line is expected.")
    return found


def _uploaded(item: Any) -> Uploaded:
    """ValueError says what is wrong with the line."""
    if not isinstance(item, dict):
        raise ValueError("not a JSON object")  # noqa: TRY004  (one kind of error for every fault of a line)
    for name in ("case", "scenario"):
        if not isinstance(item.get(name), str) or not item[name]:
            raise ValueError(f"'{name}' is missing")
    variant, seed = item.get("variant", STANDARD), item.get("seed", 1)
    if not isinstance(variant, str):
        raise ValueError("'variant' must be a text")  # noqa: TRY004
    if isinstance(seed, bool) or not isinstance(seed, int) or not 1 <= seed <= MAX_SEED:
        raise ValueError(f"'seed' must be a whole number from 1 to {MAX_SEED}")
    constraint = _text_of(item, "constraint")
    turns = tuple(_turns(item.get("turns")))
    return Uploaded(item["case"], item["scenario"], variant, seed, constraint, turns, _is_simulated(item))


def _is_simulated(item: dict[str, Any]) -> bool:
    """As this program's own export says it, or a reply as it was received."""
    received = (str(turn.get("response") or "") for turn in item["turns"])
    return bool(item.get("simulated")) or any(f'"{FINGERPRINT}"' in one for one in received)


def _turns(turns: Any) -> Iterator[UploadedTurn]:
    if not isinstance(turns, list) or not 1 <= len(turns) <= MAX_TURNS:
        raise ValueError(f"'turns' must be a list of 1 to {MAX_TURNS} objects")
    for turn in turns:
        if not isinstance(turn, dict):
            raise ValueError("each turn must be an object with 'user' and 'assistant'")  # noqa: TRY004
        user, assistant = _text_of(turn, "user") or "", _text_of(turn, "assistant") or ""
        if is_blank(user):
            raise ValueError("each turn needs the user's words as 'user'")
        yield UploadedTurn(user, assistant, _state(turn, assistant))


def _state(turn: dict[str, Any], assistant: str) -> ConversationState:
    """What was withheld is no answer, even where a part of it came through."""
    if turn.get("state") == ConversationState.FILTERED:
        return ConversationState.FILTERED
    return ConversationState.EMPTY if is_blank(assistant) else ConversationState.ANSWERED


def _text_of(item: dict[str, Any], name: str) -> str | None:
    """A text that can be stored, or None where there is none."""
    text = item.get(name)
    if text is None:
        return None
    if not isinstance(text, str):
        raise ValueError(f"'{name}' must be a text")  # noqa: TRY004
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"'{name}' is longer than {MAX_CHARACTERS} characters")
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError(f"'{name}' holds NUL or a lone surrogate")
    return text


def _repeats(found: Sequence[Uploaded]) -> list[str]:
    seen: set[tuple[str, str, str, int]] = set()
    faults = []
    for item in found:
        key = (item.case, item.scenario, item.variant, item.seed)
        if key in seen:
            faults.append(f"case {item.case}, {item.scenario}/{item.variant}, seed {item.seed}: given twice")
        seen.add(key)
    return faults


def store_uploaded(
    session: Session,
    found: Sequence[Uploaded],
    *,
    account: models.Account,
    benchmark: models.Benchmark,
    protocol_row: models.Protocol,
    protocol: Protocol,
    endpoint: models.Endpoint,
    evaluator: models.Evaluator,
) -> models.Run:
    """A run that holds the transcripts; its verdicts are still open. The caller commits, then wakes."""
    cases = {
        case.key: case
        for case in session.scalars(select(models.Case).filter_by(benchmark_id=benchmark.id, kind="case"))
    }
    _check(found, cases, protocol, benchmark)
    seeds = sorted({item.seed for item in found})
    selection = Selection(
        scenarios=tuple(sorted({item.scenario for item in found})),
        variants=tuple(sorted({item.variant for item in found} - {RECALL})),
        recall=any(item.variant == RECALL for item in found),
    )
    run = models.Run(
        account_id=account.id,
        name=endpoint.name,
        benchmark_id=benchmark.id,
        protocol_id=protocol_row.id,
        endpoint_id=endpoint.id,
        evaluator_id=evaluator.id,
        selection=asdict(selection),
        seeds=seeds,
        concurrency=16,
        provenance="uploaded",
        simulated=any(item.simulated for item in found),
    )
    session.add(run)
    session.flush()
    session.add(evaluator_of_run(session, run, evaluator))
    groups = _groups(session, run.id, found, cases)
    for item in found:
        _store(session, run.id, groups[item.case, item.seed], item, cases[item.case])
    session.flush()
    return run


def _check(
    found: Sequence[Uploaded],
    cases: dict[str, models.Case],
    protocol: Protocol,
    benchmark: models.Benchmark,
) -> None:
    known = [*arms(protocol), *((scenario.id, RECALL) for scenario in protocol.scenarios)]
    turns = {arm: len(turn_names(protocol, *arm)) for arm in known}
    faults = [fault for item in found if (fault := _misfit(item, cases, turns))]
    if faults:
        raise InvalidInput(
            f"{len(faults)} conversations do not fit benchmark {benchmark.name}@{benchmark.version} and "
            f"protocol {protocol.name}@{protocol.version}; nothing was stored.",
            details=faults[:MAX_FAULTS],
        )


def _misfit(item: Uploaded, cases: dict[str, models.Case], turns: dict[tuple[str, str], int]) -> str | None:
    planned = turns.get((item.scenario, item.variant))
    if item.case not in cases:
        return f"case {item.case}: not in the benchmark"
    if planned is None:
        return f"case {item.case}: the protocol has no {item.scenario}/{item.variant}"
    if len(item.turns) != planned:
        # A conversation that broke off would pass for one whose last reply answers the request.
        return (
            f"case {item.case}, {item.scenario}/{item.variant}: {len(item.turns)} turns, "
            f"the protocol has {planned}"
        )
    return None


def _groups(
    session: Session, run_id: int, found: Sequence[Uploaded], cases: dict[str, models.Case]
) -> dict[tuple[str, int], int]:
    keys = list(dict.fromkeys((item.case, item.seed) for item in found))
    rows = session.execute(
        insert(models.RunGroup).returning(models.RunGroup.id, sort_by_parameter_order=True),
        [
            {"run_id": run_id, "case_id": cases[case].id, "seed": seed, "position": position}
            for position, (case, seed) in enumerate(keys)
        ],
    )
    return dict(zip(keys, rows.scalars(), strict=True))


def _store(session: Session, run_id: int, group_id: int, item: Uploaded, case: models.Case) -> None:
    last = item.turns[-1]
    constraint = item.constraint or str(case.content["constraint"])
    answered = last.state is ConversationState.ANSWERED
    conversation = models.Conversation(
        run_id=run_id,
        group_id=group_id,
        case_id=case.id,
        scenario=item.scenario,
        variant=item.variant,
        category=case.category,
        seed=item.seed,
        state=last.state,
        turns_planned=len(item.turns),
        turns_done=len(item.turns),
        constraint=constraint,
        request=last.user,
        response=last.assistant if answered else None,
        flags=sorted(screen(last.assistant, constraint)) if answered else [],
        finished_at=datetime.now(UTC),
    )
    session.add(conversation)
    session.flush()
    session.add_all(
        models.Turn(
            conversation_id=conversation.id,
            position=position,
            user_text=turn.user,
            assistant_text=turn.assistant,
            state=turn.state,
            copied=False,
            flags=["uploaded"],
            request_body="null",
            tries=0,
            attempts=[],
            started_at=None,
            seconds=None,
        )
        for position, turn in enumerate(item.turns)
    )
