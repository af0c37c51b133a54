"""The next version of a benchmark, without the cases that were found invalid, and its boards.

Nobody is asked again: rows stand on the new version's boards by the transcripts and verdicts that there are.
"""

from dataclasses import replace

from sqlalchemy import func, select
from sqlalchemy.orm import Session, joinedload

from app import models
from app.accounts.audit import record
from app.errors import Conflict
from app.leaderboard.boards import hold_group, key_of, recompute
from app.leaderboard.entries import entry_report
from app.leaderboard.human import measure
from app.library import load_benchmark, store_benchmark
from app.models import CorrectionKind, Decision


def leaving(session: Session, benchmark: models.Benchmark) -> list[models.Correction]:
    """Upheld reports of cases of this version that no later version has left out yet."""
    c, k = models.Correction, models.Case
    query = (
        select(c)
        .join(k, k.id == c.case_id)
        .options(joinedload(c.case))
        .where(
            c.kind == CorrectionKind.CASE,
            c.decision == Decision.UPHELD,
            c.left_in_id.is_(None),
            k.benchmark_id == benchmark.id,
        )
        .order_by(c.id)
    )
    return list(session.scalars(query))


def benchmarks_to_renew(session: Session) -> list[models.Benchmark]:
    """Those of which a case waits to be left out."""
    c, k, b = models.Correction, models.Case, models.Benchmark
    query = (
        select(b)
        .where(
            b.id.in_(
                select(k.benchmark_id)
                .join(c, c.case_id == k.id)
                .where(c.kind == CorrectionKind.CASE, c.decision == Decision.UPHELD, c.left_in_id.is_(None))
            )
        )
        .order_by(b.id)
    )
    return list(session.scalars(query))


def next_version(
    session: Session, benchmark: models.Benchmark, by: models.Account | None
) -> models.Benchmark:
    """Store it, and put every row of the old boards on the new ones. Conflict if nothing would change."""
    newest = session.scalar(select(func.max(models.Benchmark.version)).filter_by(name=benchmark.name))
    if newest != benchmark.version:
        raise Conflict(
            f"{benchmark.name} v{benchmark.version} is not the newest version any more: v{newest} is."
        )
    corrections = leaving(session, benchmark)
    if not corrections:
        raise Conflict(f"No case of {benchmark.name} v{benchmark.version} was found invalid.")
    gone = {(one.case.kind, one.case.key) for one in corrections}
    content = load_benchmark(session, benchmark)
    smaller = replace(
        content,
        cases=tuple(case for case in content.cases if ("case", case.key) not in gone),
        probes=tuple(probe for probe in content.probes if ("probe", probe.key) not in gone),
    )
    if not smaller.cases:
        raise Conflict("Every case would be left out: such a benchmark asks nothing.")
    notes = [
        f"{kind} {key} was found invalid and left out after version {benchmark.version}"
        for kind, key in sorted(gone)
    ]
    made, _ = store_benchmark(session, smaller, notes)
    for one in corrections:
        one.left_in_id = made.id
    session.flush()
    rows = _carry_over(session, benchmark, made)
    record(session, by, "benchmark.renew", f"benchmark {made.id}", left_out=len(gone), rows=rows)
    return made


def _carry_over(session: Session, old: models.Benchmark, made: models.Benchmark) -> int:
    entries = session.scalars(
        select(models.BoardEntry)
        .options(joinedload(models.BoardEntry.run))
        .where(models.BoardEntry.benchmark_id == old.id, models.BoardEntry.withdrawn_at.is_(None))
        .order_by(models.BoardEntry.published_at, models.BoardEntry.id)
    ).all()
    keys = sorted({key_of(entry)._replace(benchmark_id=made.id) for entry in entries})
    for key in keys:
        hold_group(session, key)
    for entry in entries:
        _stand_under(session, entry, made)
    for key in keys:
        recompute(session, key)
    return len(entries)


def _stand_under(session: Session, entry: models.BoardEntry, made: models.Benchmark) -> None:
    again = models.BoardEntry(
        run_id=entry.run_id,
        evaluator_id=entry.evaluator_id,
        benchmark_id=made.id,
        report=entry_report(session, entry.run, made.id, entry.evaluator_id),
    )
    again.run, again.declared = entry.run, entry.declared
    session.add(again)
    session.flush()
    measure(session, again)
