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
from app.errors import InvalidInput
from app.evaluation import screen
from app.outcomes import STANDARD, ConversationState
from app.protocol import Protocol, arms
from app.runs.planning import Selection

MAX_BYTES = 512 * 2**20
MAX_TURNS = 50
MAX_CHARACTERS = 32_000
MAX_FAULTS = 20


@dataclass(frozen=True)
class Uploaded:
    """One conversation of the file; `turns` are (user, assistant)."""

    case: str
    scenario: str
    variant: str
    seed: int
    constraint: str | None
    turns: tuple[tuple[str, str], ...]


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
    if not isinstance(variant, str) or isinstance(seed, bool) or not isinstance(seed, int) or seed < 1:
        raise ValueError("'variant' must be a text and 'seed' a whole number from 1")
    constraint = item.get("constraint")
    if constraint is not None and not isinstance(constraint, str):
        raise ValueError("'constraint' must be a text")
    return Uploaded(
        item["case"], item["scenario"], variant, seed, constraint, tuple(_turns(item.get("turns")))
    )


def _turns(turns: Any) -> Iterator[tuple[str, str]]:
    if not isinstance(turns, list) or not 1 <= len(turns) <= MAX_TURNS:
        raise ValueError(f"'turns' must be a list of 1 to {MAX_TURNS} objects")
    for turn in turns:
        user = turn.get("user") if isinstance(turn, dict) else None
        assistant = turn.get("assistant") if isinstance(turn, dict) else None
        if not isinstance(user, str) or not user.strip() or not isinstance(assistant or "", str):
            raise ValueError("each turn needs 'user' and 'assistant' as texts")
        yield _storable(user), _storable(assistant or "")


def _storable(text: str) -> str:
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"a text is longer than {MAX_CHARACTERS} characters")
    if "\0" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise ValueError("a text holds NUL or a lone surrogate")
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
        variants=tuple(sorted({item.variant for item in found})),
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
    )
    session.add(run)
    session.flush()
    session.add(models.RunEvaluator(run_id=run.id, evaluator_id=evaluator.id))
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
    known = set(arms(protocol))
    faults = [
        f"case {item.case} is not in benchmark {benchmark.name}@{benchmark.version}"
        for item in found
        if item.case not in cases
    ]
    faults += [
        f"case {item.case}: protocol {protocol.name} has no {item.scenario}/{item.variant}"
        for item in found
        if (item.scenario, item.variant) not in known
    ]
    if faults:
        raise InvalidInput(
            f"{len(faults)} conversations do not fit; nothing was stored.", details=faults[:MAX_FAULTS]
        )


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
    response = item.turns[-1][1]
    constraint = item.constraint or str(case.content["constraint"])
    answered = bool(response.strip())
    conversation = models.Conversation(
        run_id=run_id,
        group_id=group_id,
        case_id=case.id,
        scenario=item.scenario,
        variant=item.variant,
        category=case.category,
        seed=item.seed,
        state=ConversationState.ANSWERED if answered else ConversationState.EMPTY,
        turns_planned=len(item.turns),
        turns_done=len(item.turns),
        constraint=constraint,
        request=item.turns[-1][0],
        response=response if answered else None,
        flags=sorted(screen(response, constraint)) if answered else [],
        finished_at=datetime.now(UTC),
    )
    session.add(conversation)
    session.flush()
    session.add_all(
        models.Turn(
            conversation_id=conversation.id,
            position=position,
            user_text=user,
            assistant_text=assistant,
            state="answered" if assistant.strip() else "empty",
            copied=False,
            flags=["uploaded"],
            request_body="null",
            tries=0,
            attempts=[],
            started_at=None,
            seconds=None,
        )
        for position, (user, assistant) in enumerate(item.turns)
    )
