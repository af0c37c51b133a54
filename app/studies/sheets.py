"""A finished study as a sheet: which columns it has, and how its rows are read. No database.

Nothing is guessed: whatever does not fit is a fault with file, sheet, row and column. A blank rating is a
missing one, and times that a sheet does not tell stay unknown.
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from app.benchmark.columns import CATEGORY_SPELLINGS
from app.outcomes import CONTROL, STANDARD, Category, Rating
from app.runs.exporting import PUBLISHED_CATEGORIES, PUBLISHED_VARIANTS, published_scenario
from app.tables import Column, ErrorValue, Fault, FaultLog, Formula, Record, Table, Value, read_records
from app.tables import read_table as read_any_table
from app.tables.cells import is_blank_cell
from app.tables.records import Place
from app.text import clean, is_blank, normalise

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
# Written for readers of an export; what an adjudicator decided is not taken from a sheet.
FINAL_COLUMNS = ("Final Rating", "Final Reason")
_RATER = re.compile(r"human ([1-9]\d{0,3}) eval rating")
_COMMENT = re.compile(r"human ([1-9]\d{0,3}) (?:eval )?(?:comment|explanation)")
_LIKE_A_RATER = re.compile(r"(?=.*(?:human|judge|rater|annotator))(?=.*(?:rating|label|score))")
_SCENARIO = re.compile(r"(?:(?:scenario|sc)[ _-]*)?([1-5])(?:\.0)?(?:\s*\((.+)\))?")
_SLUG = re.compile(r"[^a-z0-9]+")
_VARIANTS = {
    "baseline": STANDARD,
    **{normalise(shown): variant for variant, shown in PUBLISHED_VARIANTS.items()},
    **{
        variant.replace("_", " "): variant for variant in (*PUBLISHED_VARIANTS, "together", STANDARD, CONTROL)
    },
}
MAX_NAME = 200
T = TypeVar("T")
SHOWN = 40  # characters of a wrong cell


@dataclass(frozen=True, slots=True)
class SheetItem:
    """One row: a reduced conversation with the evaluator's and the humans' ratings, by judge number."""

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


@dataclass(frozen=True)
class Sheet:
    """What a file holds; with any error in `faults`, its items are not to be used."""

    items: tuple[SheetItem, ...]
    judges: tuple[int, ...]
    faults: tuple[Fault, ...]

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
    columns = [*TEXT_COLUMNS, *DRAW_COLUMNS, *raters.values(), *comments.values()]
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
    known |= {normalise(title) for title in FINAL_COLUMNS}
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
class _Reader:
    """Rows to items; each fault of a row is noted, not only its first."""

    place: Place
    columns: Sequence[Column]
    raters: tuple[int, ...]
    comments: tuple[int, ...]
    headers: dict[str, str] = field(init=False)
    bad: bool = field(init=False, default=False)

    def __post_init__(self) -> None:
        self.headers = {column.name: column.header for column in self.columns}

    def item(self, record: Record) -> SheetItem | None:
        self.bad = False
        scenario, variant = self._scenario(record)
        item = SheetItem(
            row=record.row,
            model=self._short(record, "model"),
            scenario=scenario,
            variant=variant,
            category=self._category(record),
            number=self._number(record),
            constraint=self._needed(record, "constraint"),
            request=self._needed(record, "request"),
            response=self._text(record, "response") or "",
            evaluator_rating=self._rating(record, "evaluator_rating"),
            evaluator_explanation=self._text(record, "evaluator_explanation"),
            ratings=_known((k, self._rating(record, f"rating_{k}")) for k in self.raters),
            comments=_known((k, self._text(record, f"comment_{k}")) for k in self.comments),
            item=self._text(record, "item"),
            stratum=self._text(record, "stratum"),
            inclusion_probability=self._probability(record),
        )
        return None if self.bad else item

    def _fault(self, record: Record, name: str, code: str, message: str) -> None:
        self.bad = True
        self.place.add("error", code, message, record.row, self.headers[name])

    def _warn(self, record: Record, name: str, code: str, message: str) -> None:
        self.place.add("warning", code, message, record.row, self.headers[name])

    def _text(self, record: Record, name: str) -> str | None:
        value = record.values.get(name)
        if value is None or (isinstance(value, str) and is_blank(value)):
            return None
        if not isinstance(value, str):
            self._fault(record, name, "not_text", f"{_kind(value)}, not text; write it as text")
            return None
        text, flags = clean(value)
        if flags:
            self._warn(record, name, "replaced", "characters that cannot be stored were replaced by U+FFFD")
        return text

    def _needed(self, record: Record, name: str) -> str:
        if is_blank_cell(record.values.get(name)):
            self._fault(record, name, "blank_cell", "the cell is blank; fill it or take the row out")
            return ""
        return self._text(record, name) or ""

    def _short(self, record: Record, name: str) -> str:
        """A name; a model may be called 4.5, which a spreadsheet takes for a number."""
        value = record.values.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return f"{value:g}"
        text = self._needed(record, name).strip()
        if len(text) > MAX_NAME:
            self._fault(record, name, "too_long", f"{len(text)} characters; at most {MAX_NAME} are taken")
        return text

    def _number(self, record: Record) -> int:
        value = record.values.get("number")
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value[:12])
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31:
            return value
        shown = "the cell is blank" if is_blank_cell(value) else f"{_kind(value)}"
        self._fault(record, "number", "no_number", f"{shown}; write the case's number, 1 or more")
        return 0

    def _category(self, record: Record) -> str:
        text = self._needed(record, "category")
        found = _CATEGORIES.get(_loosely(text))
        if text and found is None:
            names = ", ".join(PUBLISHED_CATEGORIES.values())
            self._fault(
                record, "category", "unknown_category", f"'{text[:SHOWN]}' is no category; use {names}"
            )
        return found.value if found else ""

    def _scenario(self, record: Record) -> tuple[str, str]:
        value = record.values.get("scenario")
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        text = str(value) if is_number else self._needed(record, "scenario")
        found = _SCENARIO.fullmatch(normalise(text))
        if found is None:
            if text:
                message = f"'{text[:SHOWN]}' is no scenario; write Scenario 1 to Scenario 5"
                self._fault(record, "scenario", "unknown_scenario", message)
            return "", STANDARD
        variant = found[2]
        if variant is None:
            return f"sc{found[1]}", STANDARD
        known = _VARIANTS.get(variant.strip().replace("_", " "))
        if known is None:
            known = _SLUG.sub("_", variant.casefold()).strip("_")[:MAX_NAME] or "other"
            message = f"'{variant[:SHOWN]}' is no variant that is known; it is kept as '{known}'"
            self._warn(record, "scenario", "unknown_variant", message)
        return f"sc{found[1]}", known

    def _rating(self, record: Record, name: str) -> int | None:
        value = record.values.get(name)
        if is_blank_cell(value):
            return None
        rating = rating_of(value)
        if rating is None:
            message = f"{_kind(value)}; a rating is 0 (fail), 1 (unclear) or 2 (pass), or blank where missing"
            self._fault(record, name, "no_rating", message)
        return rating

    def _probability(self, record: Record) -> float | None:
        value = record.values.get("inclusion_probability")
        if is_blank_cell(value):
            return None
        try:
            number = float(value) if isinstance(value, str | int | float) else 0.0
        except ValueError:
            number = 0.0
        if isinstance(value, bool) or not 0 < number <= 1:
            message = f"{_kind(value)}; a probability is above 0 and at most 1"
            self._fault(record, "inclusion_probability", "no_probability", message)
        return number


def rating_of(value: object) -> int | None:
    """0, 1 or 2 as number or digit; None for anything else."""
    if isinstance(value, str):
        value = {"0": 0, "1": 1, "2": 2}.get(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float) or value not in tuple(Rating):
        return None
    return int(value)


def _known(pairs: Iterable[tuple[int, T | None]]) -> dict[int, T]:
    return {number: value for number, value in pairs if value is not None}


def _kind(value: Value) -> str:
    match value:
        case Formula(text):
            return f"a formula ({text[:SHOWN]}), whose value is not known"
        case ErrorValue(code):
            return f"the error {code}"
        case bool():
            return f"the truth value {str(value).upper()}"
        case str():
            return f"'{value.strip()[:SHOWN]}'"
        case int() | float():
            return f"the number {value:g}"
        case _:
            return f"the date or time {value}"


def _loosely(text: str) -> str:
    return normalise(text).replace("_", " ").replace("-", " ").rstrip("s")


_CATEGORIES: dict[str, Category] = {
    _loosely(spelling): found for spelling, found in CATEGORY_SPELLINGS.items()
}


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
