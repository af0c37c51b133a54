"""One record of a table as a case, probe or distractor. Nothing is guessed: what does not fit is a fault."""

import re
from collections import Counter
from dataclasses import dataclass, field

from app.benchmark.columns import CATEGORY_SPELLINGS, KINDS, header_of
from app.benchmark.records import Case, Distractor, Probe, derived_cluster, derived_key
from app.outcomes import Category, Region
from app.tables import ErrorValue, FaultLog, Formula, Record, Table, Value
from app.tables.records import Place
from app.text import clean, is_blank, normalise

MAX_CHARACTERS = 10_000
_NOT_A_TEXT = {"nan", "none", "null", "nil", "n/a", "#n/a", "<na>", "nat", "undefined"}
_IDENTIFIER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_TAG = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_REPLACED = (
    "characters that cannot be stored (NUL, control characters, lone surrogates) were replaced by U+FFFD"
)


@dataclass(slots=True)
class Parser:
    """Reads the records of one file; `keys` counts the ids given or derived so far."""

    role: str
    table: Table
    log: FaultLog
    keys: Counter[str] = field(default_factory=Counter)

    def case(self, record: Record) -> Case | None:
        cells = _Cells(self, record)
        texts = {name: cells.needed(name) for name in _CASE_TEXTS}
        optional = {name: cells.text(name) for name in _CASE_OPTIONAL}
        category = cells.category()
        mention = cells.one_of("mention", ("explicit", "implied"))
        region = cells.one_of("region", tuple(Region))
        split, cluster, tags = cells.split(), cells.identifier("cluster"), cells.tags()
        key = self._key(cells, str(category), [*texts.values(), *(optional[name] for name in _IN_KEY)])
        if cells.bad or category is None:
            return None
        return Case(
            key=key,
            number=record.number,
            category=category,
            cluster=cluster or derived_cluster(texts["constraint"]),
            split=split,
            other_constraint=optional["other_constraint"],
            preference_user=optional["preference_user"],
            person_b=optional["person_b"],
            person_c=optional["person_c"],
            person_d=optional["person_d"],
            rationale=optional["rationale"],
            mention=mention,
            tags=tags,
            region=Region(region) if region else None,
            **texts,
        )

    def probe(self, record: Record) -> Probe | None:
        cells = _Cells(self, record)
        constraint, request = cells.needed("constraint"), cells.needed("request")
        rationale = cells.text("rationale")
        category, split = cells.category(), cells.split()
        cluster, tags = cells.identifier("cluster"), cells.tags()
        key = self._key(cells, f"probe-{category}", [constraint, request])
        if cells.bad or category is None:
            return None
        cluster = cluster or derived_cluster(constraint)
        return Probe(key, record.number, category, cluster, split, constraint, request, rationale, tags)

    def distractor(self, record: Record) -> Distractor | None:
        cells = _Cells(self, record)
        text, strong, very_strong = cells.needed("text"), cells.text("strong"), cells.text("very_strong")
        tags = cells.tags()
        kind = KINDS[self.role]
        key = self._key(cells, kind, [text, strong, very_strong])
        return None if cells.bad else Distractor(kind, key, record.number, text, strong, very_strong, tags)

    def _key(self, cells: "_Cells", prefix: str, texts: list[str | None]) -> str:
        """The id given, or one that follows from the content; repeats of content get -2, -3, …"""
        if "key" in cells.record.values:
            return self._given_key(cells)
        derived = derived_key(prefix, texts)
        self.keys[derived] += 1
        return derived if self.keys[derived] == 1 else f"{derived}-{self.keys[derived]}"

    def _given_key(self, cells: "_Cells") -> str:
        key = cells.identifier("key")
        if key is None:
            if not cells.has_fault("key"):
                cells.error(
                    "key", "blank_id", "the id is blank; give each row its own, or leave out the column"
                )
            return ""
        self.keys[key.casefold()] += 1
        if self.keys[key.casefold()] > 1:
            cells.error("key", "repeated_id", f"the id '{key}' stands in an earlier row; ids are unique")
        return key


_CASE_TEXTS = (
    "constraint",
    "preference_b",
    "preference_c",
    "preference_d",
    "request_alone_neutral",
    "request_alone_leading",
    "request_together_neutral",
    "request_together_leading",
)
_IN_KEY = ("other_constraint", "preference_user")
_CASE_OPTIONAL = (*_IN_KEY, "person_b", "person_c", "person_d", "rationale")


class _Cells:
    """The cells of one record; `bad` once any has an error."""

    def __init__(self, parser: Parser, record: Record) -> None:
        self.record = record
        self._role = parser.role
        self._place = Place(parser.table, parser.log)
        self._faulty: set[str] = set()

    @property
    def bad(self) -> bool:
        return bool(self._faulty)

    def has_fault(self, name: str) -> bool:
        return name in self._faulty

    def error(self, name: str, code: str, message: str) -> None:
        self._faulty.add(name)
        self._place.add("error", code, message, self.record.row, header_of(self._role, name))

    def text(self, name: str) -> str | None:
        """The cell's text as it stands, None when blank (or at fault, which is then noted)."""
        value = self.record.values.get(name)
        if value is None or (isinstance(value, str) and is_blank(value)):
            return None
        if not isinstance(value, str):
            self.error(name, "not_text", _not_text(value))
            return None
        cleaned, flags = clean(value)
        if flags:
            self._place.add("warning", "replaced", _REPLACED, self.record.row, header_of(self._role, name))
        if problem := _unusable(cleaned):
            self.error(name, *problem)
            return None
        return cleaned

    def needed(self, name: str) -> str:
        text = self.text(name)
        if text is None and name not in self._faulty:
            self.error(name, "blank_cell", "the cell is blank; fill it or take the row out")
        return text or ""

    def category(self) -> Category | None:
        text = self.needed("category")
        category = CATEGORY_SPELLINGS.get(normalise(text))
        if text and category is None:
            names = ", ".join(Category)
            self.error("category", "unknown_category", f"the category '{text[:60]}' is unknown; use {names}")
        return category

    def one_of(self, name: str, choices: tuple[str, ...]) -> str | None:
        text = self.text(name)
        if text is None or normalise(text) in choices:
            return normalise(text) if text else None
        self.error(name, "unknown_word", f"'{text[:60]}' is none of: {', '.join(choices)}")
        return None

    def split(self) -> str:
        """Public where the file has no such column; a blank cell could hide a case that must stay private."""
        if "split" not in self.record.values:
            return "public"
        split = self.one_of("split", ("public", "private"))
        if split is None and "split" not in self._faulty:
            self.error("split", "blank_cell", "the cell is blank; write public or private")
        return split or "public"

    def identifier(self, name: str) -> str | None:
        text = self.text(name)
        if text is None or _IDENTIFIER.fullmatch(text):
            return text
        self.error(
            name,
            "bad_id",
            f"'{text[:60]}' is no id; use letters, digits, dot, hyphen and underscore, at most 64, "
            "a letter or digit first",
        )
        return None

    def tags(self) -> tuple[str, ...]:
        words = [word.strip() for word in re.split("[;,]", self.text("tags") or "") if word.strip()]
        for word in words:
            if not _TAG.fullmatch(word):
                message = (
                    f"'{word[:40]}' is no tag; use a-z, 0-9, hyphen and underscore, separated by semicolons"
                )
                self.error("tags", "bad_tag", message)
        return tuple(dict.fromkeys(words))


def _not_text(value: Value) -> str:
    match value:
        case Formula(text):
            return f"the cell has a formula ({text[:40]}), whose value is not known; replace it by its value"
        case ErrorValue(code):
            return f"the cell has an error ({code}); write the text"
        case bool() | int() | float():
            kind = "number or truth value"
        case _:
            kind = "date or time"
    return f"the cell has a {kind} ({value}), not text; format the cell as text and write it again"


def _unusable(text: str) -> tuple[str, str] | None:
    if normalise(text) in _NOT_A_TEXT:
        return (
            "not_a_value",
            f"'{text.strip()}' is what programs write for nothing; clear the cell or write the text",
        )
    if len(text) > MAX_CHARACTERS:
        return "too_long", f"{len(text):,} characters; at most {MAX_CHARACTERS:,} are taken"
    return None
