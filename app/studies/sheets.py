"""A finished study as a sheet: which columns it has, and how its rows are read. No database.

Nothing is guessed: whatever does not fit is a fault with file, sheet, row and column. A blank rating is a
missing one, and times that a sheet does not tell stay unknown.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from app.outcomes import STANDARD, Rating
from app.runs.exporting import PUBLISHED_CATEGORIES, published_scenario
from app.runs.sheet_rows import SHOWN, RowReader, kind_of
from app.studies.reasons import REASONS
from app.tables import Column, Fault, FaultLog, Record, Table, read_records
from app.tables import read_table as read_any_table
from app.tables.cells import is_blank_cell
from app.tables.records import Place
from app.text import normalise

TEXT_COLUMNS = (
    Column("model", "Model"),
    Column("scenario", "Scenario"),
    Column("category", "Category"),
    Column("number", "Conversation Number"),
    Column("constraint", "First User Input"),
    Column("request", "Last User Input"),
    Column("response", "Last Model Response"),
    Column("evaluator_rating", "Model Eval Rating"),
    Column("evaluator_explanation", "Model Eval Explanation", required=False),
)
DRAW_COLUMNS = (
    Column("item", "Item", required=False),
    Column("stratum", "Stratum", required=False),
    Column("inclusion_probability", "Inclusion Probability", required=False),
)
FINAL_COLUMNS = (
    Column("final_rating", "Final Rating", required=False),
    Column("final_reason", "Final Reason", required=False),
)
_RATER = re.compile(r"human ([1-9]\d{0,3}) eval rating")
_COMMENT = re.compile(r"human ([1-9]\d{0,3}) (?:eval )?(?:comment|explanation)")
_LIKE_A_RATER = re.compile(r"(?=.*(?:human|judge|rater|annotator))(?=.*(?:rating|label|score))")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class SheetItem:
    """One row: a reduced conversation with the evaluator's and the humans' ratings, by judge number.

    `histories`: what a judge said before, oldest first, None where it was undone; `final_earlier`: labels
    with their reasons, before the final one. Only JSON lines tell of either.
    """

    row: int
    model: str
    scenario: str
    variant: str
    category: str
    number: int
    constraint: str
    request: str
    response: str
    evaluator_rating: int | None
    evaluator_explanation: str | None
    ratings: dict[int, int]
    comments: dict[int, str]
    item: str | None = None
    stratum: str | None = None
    inclusion_probability: float | None = None
    histories: dict[int, list[int | None]] = field(default_factory=dict)
    final_rating: int | None = None
    final_reason: str | None = None
    final_earlier: list[tuple[int, str]] = field(default_factory=list)


@dataclass(frozen=True)
class Sheet:
    """What a file holds; with any error in `faults`, its items are not to be used.

    `origin`: what a replication bundle says of the study that it was made from.
    """

    items: tuple[SheetItem, ...]
    judges: tuple[int, ...]
    faults: tuple[Fault, ...]
    origin: dict[str, str | int] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Fault, ...]:
        return tuple(fault for fault in self.faults if fault.severity == "error")


def rater_header(number: int) -> str:
    return f"Human {number} Eval Rating"


def comment_header(number: int) -> str:
    return f"Human {number} Comment"


def read_sheet(path: Path, name: str | None = None) -> Sheet:
    """The .xlsx or .csv file's items; `name` is what it is called in messages, where that differs.

    Raises InvalidInput for a file that cannot be read at all.
    """
    log = FaultLog()
    table = read_any_table(path, name=name, headers=[column.header for column in TEXT_COLUMNS])
    place = Place(table, log)
    raters, comments = _rater_columns(place)
    columns = [*TEXT_COLUMNS, *DRAW_COLUMNS, *FINAL_COLUMNS, *raters.values(), *comments.values()]
    _note_unknown(place, columns)
    records, _ = read_records(table, columns, log, extra=True)
    reader = _Reader(place, columns, tuple(raters), tuple(comments))
    items = [item for record in records if (item := reader.item(record))]
    check_items(items, list(raters), place)
    return Sheet(tuple(items), tuple(raters), log.faults())


def _titles(table: Table) -> list[str]:
    return [str(cell) for cell in table.rows[0].cells if not is_blank_cell(cell)] if table.rows else []


def _rater_columns(place: Place) -> tuple[dict[int, Column], dict[int, Column]]:
    """The humans' columns by number; one that only looks like it is a fault, never dropped in silence."""
    raters: dict[int, Column] = {}
    comments: dict[int, Column] = {}
    row = place.table.rows[0].number if place.table.rows else None
    for title in _titles(place.table):
        key = normalise(title)
        if found := _RATER.fullmatch(key):
            raters[int(found[1])] = Column(f"rating_{int(found[1])}", rater_header(int(found[1])))
        elif found := _COMMENT.fullmatch(key):
            number = int(found[1])
            comments[number] = Column(
                f"comment_{number}",
                comment_header(number),
                aliases=tuple(f"Human {number} {ending}" for ending in _COMMENT_ENDINGS),
            )
        elif _LIKE_A_RATER.match(key):
            message = f"looks like a human's ratings; call the column '{rater_header(1)}', with the number"
            place.add("error", "misnamed_rater", message, row, title[:SHOWN])
    if not raters and place.table.rows:
        message = f"no column holds a human's ratings; add '{rater_header(1)}'"
        place.add("error", "no_rater", message, row)
    return dict(sorted(raters.items())), dict(sorted(comments.items()))


_COMMENT_ENDINGS = ("Comment", "Explanation", "Eval Comment", "Eval Explanation")


def _note_unknown(place: Place, columns: Sequence[Column]) -> None:
    known = set[str]().union(*(column.keys for column in columns))
    for title in _titles(place.table):
        if normalise(title) not in known and not _LIKE_A_RATER.match(normalise(title)):
            place.add(
                "warning",
                "unread_column",
                "the column is unknown and is not read",
                place.table.rows[0].number,
                title[:SHOWN],
            )


@dataclass
class _Reader(RowReader):
    """Rows to items; each fault of a row is noted, not only its first."""

    raters: tuple[int, ...] = ()
    comments: tuple[int, ...] = ()

    def item(self, record: Record) -> SheetItem | None:
        self.bad = False
        scenario, variant = self.scenario(record)
        item = SheetItem(
            row=record.row,
            model=self.short(record, "model"),
            scenario=scenario,
            variant=variant,
            category=self.category(record),
            number=self.number(record),
            constraint=self.needed(record, "constraint"),
            request=self.needed(record, "request"),
            response=self.text(record, "response") or "",
            evaluator_rating=self._rating(record, "evaluator_rating"),
            evaluator_explanation=self.text(record, "evaluator_explanation"),
            ratings=_known((k, self._rating(record, f"rating_{k}")) for k in self.raters),
            comments=_known((k, self.text(record, f"comment_{k}")) for k in self.comments),
            item=self.text(record, "item"),
            stratum=self.text(record, "stratum"),
            inclusion_probability=self._probability(record),
            **self._final(record),
        )
        return None if self.bad else item

    def _rating(self, record: Record, name: str) -> int | None:
        value = record.values.get(name)
        if is_blank_cell(value):
            return None
        rating = rating_of(value)
        if rating is None:
            message = (
                f"{kind_of(value)}; a rating is 0 (fail), 1 (unclear) or 2 (pass), or blank where missing"
            )
            self.fault(record, name, "no_rating", message)
        return rating

    def _final(self, record: Record) -> dict[str, Any]:
        """Of an adjudication; a sheet from elsewhere may mean something else by these columns."""
        given, reason = record.values.get("final_rating"), self.text(record, "final_reason")
        final = None if is_blank_cell(given) else rating_of(given)
        wrong = final_fault(final, reason)
        if final is None and not is_blank_cell(given):
            wrong = f"{kind_of(given)} is no rating"
        if wrong is not None:
            self.warn(record, "final_rating", "no_final", f"{wrong}; the final rating is not read")
            return {}
        return {"final_rating": final, "final_reason": reason}

    def _probability(self, record: Record) -> float | None:
        value = record.values.get("inclusion_probability")
        if is_blank_cell(value):
            return None
        try:
            number = float(value) if isinstance(value, str | int | float) else 0.0
        except ValueError:
            number = 0.0
        if isinstance(value, bool) or not 0 < number <= 1:
            message = f"{kind_of(value)}; a probability is above 0 and at most 1"
            self.fault(record, "inclusion_probability", "no_probability", message)
        return number


def rating_of(value: object) -> int | None:
    """0, 1 or 2 as number or digit; None for anything else."""
    if isinstance(value, str):
        value = {"0": 0, "1": 1, "2": 2}.get(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in tuple(Rating):
        return None
    return int(value)


def final_fault(rating: int | None, reason: str | None) -> str | None:
    """What is wrong with a final label and its reason; None if nothing."""
    if rating is None:
        return None if reason is None else "a reason is given, and no final rating"
    if reason in REASONS:
        return None
    given = "no reason is given" if reason is None else f"'{reason[:SHOWN]}' is no reason of a final rating"
    return f"{given}; use one of {', '.join(REASONS)}"


def _known(pairs: Iterable[tuple[int, T | None]]) -> dict[int, T]:
    return {number: value for number, value in pairs if value is not None}


def check_items(items: Sequence[SheetItem], raters: Sequence[int], place: Place) -> None:
    """What no single row shows: repeated rows, ratings in another coding, raters and items without any."""
    ids = Counter(item.item for item in items if item.item is not None)
    seen: dict[tuple[object, ...], int] = {}
    for item in items:
        if item.item is not None:
            if ids[item.item] > 1:
                message = (
                    f"the id '{item.item[:SHOWN]}' stands in {ids[item.item]} rows; each item has its own"
                )
                place.add("error", "repeated_item", message, item.row, "Item")
            continue
        source = (item.model, item.scenario, item.variant, item.category, item.number)
        first = seen.setdefault((*source, item.constraint, item.request, item.response), item.row)
        if first != item.row:
            message = f"the row repeats row {first}, which would count it twice; keep one"
            place.add("error", "repeated_row", message, item.row)
    if len(items) > 0:
        _note_ratings(items, raters, place)


def _note_ratings(items: Sequence[SheetItem], raters: Sequence[int], place: Place) -> None:
    columns = {"Model Eval Rating": [item.evaluator_rating for item in items]}
    columns |= {rater_header(k): [item.ratings.get(k) for item in items] for k in raters}
    for header, values in columns.items():
        used = {value for value in values if value is not None}
        if not used:
            place.add("warning", "no_ratings", "the column holds no rating", None, header)
        elif used == {Rating.FAIL, Rating.UNCLEAR}:
            message = (
                "holds 0 and 1 but never 2; here 2 is pass and 1 unclear, while sheets with clear verdicts "
                "only write 1 for pass: see that it is coded 0, 1, 2"
            )
            place.add("warning", "coding", message, None, header)
    for item in items:
        if not item.response:
            message = "the response is blank, and an empty answer is never rated; its ratings are kept"
            place.add("warning", "blank_response", message, item.row, "Last Model Response")
        if item.evaluator_rating is None and not item.ratings:
            place.add("warning", "unrated_row", "nobody has rated this item", item.row)


def scenario_label(scenario: str | None, variant: str | None) -> str:
    """`Scenario 3 (guiding prompt)`, as `read_sheet` reads it back."""
    return published_scenario(scenario, variant or STANDARD) if scenario else ""


def category_label(category: str | None) -> str:
    return PUBLISHED_CATEGORIES.get(category or "", category or "")
