"""The replication bundle: one zip from which others can compute a study's figures again.

It holds no external ids, no exact times and no addresses, and what judges wrote only if the owner says so.
"""

import hashlib
import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from sqlalchemy import select
from sqlalchemy.orm import Session

from app import models
from app.agreement import EVALUATOR, HEADER, report_rows
from app.models import ItemKind
from app.studies.exporting import export_study, slug
from app.studies.lines import ITEMS_NAME, STUDY_NAME, SUMS_NAME
from app.studies.methods import codebook, methods_paragraph
from app.studies.reporting import judge_name, study_report
from app.tables import write_atomically, write_table
from app.tables.cells import Value

EPOCH = (1980, 1, 1, 0, 0, 0)  # of every member: no time of day goes out
RATING_HEADER = ("Item", "Judge", "Repeat", "Counted", "Rating", "Earlier Ratings", "Active Seconds")
TIMES = ("created_at", "frozen_at", "opened_at", "closed_at")


def write_bundle(session: Session, study: models.Study, path: Path, *, comments: bool) -> Path:
    """Write the zip; `study.evaluator` must be loaded."""
    with TemporaryDirectory(prefix="curate-bundle-") as made:
        folder = Path(made)
        for format_, name in (("jsonl", ITEMS_NAME), ("csv", "sheet.csv"), ("xlsx", "sheet.xlsx")):
            export_study(session, study, format_, folder / name, comments=comments)
        write_table(folder / "ratings.csv", RATING_HEADER, _ratings(session, study))
        report = study_report(session, study)
        for moment in TIMES:
            if report["study"][moment] is not None:
                report["study"][moment] = report["study"][moment][:10]
        described = _described(study, report)
        _write(folder / "report.json", _json(report))
        write_table(folder / "report.csv", HEADER, report_rows(report), sheet="Agreement")
        _write(folder / STUDY_NAME, _json(described))
        _write(folder / "methods.md", methods_paragraph(report, described) + "\n")
        _write(folder / "codebook.md", codebook(report, with_comments=comments))
        _write(folder / "instructions.md", _instructions(study))
        _write(folder / SUMS_NAME, _sums(folder))
        _pack(folder, path, slug(study.name))
    return path


def _pack(folder: Path, path: Path, top: str) -> None:
    with write_atomically(path) as temporary, zipfile.ZipFile(temporary, "w") as bundle:
        for file in sorted(folder.iterdir()):
            member = zipfile.ZipInfo(f"{top}/{file.name}", EPOCH)
            member.compress_type = zipfile.ZIP_DEFLATED
            member.external_attr = 0o644 << 16
            bundle.writestr(member, file.read_bytes())


def _write(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", newline="\n")


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, allow_nan=False) + "\n"


def _sums(folder: Path) -> str:
    return "".join(
        f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in sorted(folder.iterdir())
    )


def _ratings(session: Session, study: models.Study) -> Iterator[list[Value]]:
    """Every rating of a main item, repeats and surplus ones too, by item and judge, without a time of day."""
    r, j, i, h = models.StudyRating, models.StudyJudge, models.StudyItem, models.StudyRatingChange
    steps: dict[tuple[int, int, bool], list[str]] = {}
    changes = (
        select(h.item_id, h.judge_id, h.repeat, h.after)
        .join(j, j.id == h.judge_id)
        .where(j.study_id == study.id)
        .order_by(h.id)
    )
    for item, judge, repeat, after in session.execute(changes):
        steps.setdefault((item, judge, repeat), []).append("undone" if after is None else str(after))
    rows = session.execute(
        select(i.uuid, r.item_id, r.judge_id, j.number, r.repeat, r.counted, r.rating, r.active_ms)
        .join(j, j.id == r.judge_id)
        .join(i, i.id == r.item_id)
        .where(i.study_id == study.id, i.kind == ItemKind.MAIN)
        .order_by(i.position, j.number, r.repeat)
    )
    for uuid, item, judge, number, repeat, counted, rating, active in rows:
        earlier = " ".join(steps.get((item, judge, repeat), [])[:-1])
        seconds = None if active is None else round(active / 1000)
        yield [str(uuid), judge_name(number), repeat, counted, rating, earlier or None, seconds]


def _described(study: models.Study, report: dict[str, Any]) -> dict[str, Any]:
    raters = [name for name in report["raters"] if name != EVALUATOR]
    return {
        **{name: value for name, value in report["study"].items() if name != "runs"},
        "models": sorted(report["by"]["model"]),
        "items": report["items"],
        "judges": raters,
        "repeat_share": study.repeat_share,
        "draw": study.draw,
        "ethics": {"kind": study.ethics_kind, "statement": study.ethics},
        "retention": study.retention,
    }


def _instructions(study: models.Study) -> str:
    parts = [("Instructions to judges", study.instructions), ("Content note", study.content_note)]
    told = [f"# {title}\n\n{text.strip()}\n" for title, text in parts if text.strip()]
    return "\n".join(told) or "The sheet that this study was imported from tells of no instructions.\n"
