"""A study as JSON lines, one item a line: what an export writes, and how it is read back."""

import hashlib
import io
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from app.errors import InvalidInput
from app.outcomes import SCENARIOS, STANDARD, Category
from app.runs.sheet_rows import MAX_NAME, SHOWN
from app.studies.sheets import Sheet, SheetItem, check_items, final_fault, rating_of
from app.tables import FaultLog, Table
from app.tables.files import checked_size
from app.tables.records import Place
from app.text import clean, is_blank

MAX_BYTES = 256 * 2**20
MAX_LINE = 8 * 2**20
MAX_BESIDE = 2**20
ITEMS_NAME, STUDY_NAME, SUMS_NAME = "items.jsonl", "study.json", "SHA256SUMS"  # in a replication bundle
ORIGIN = ("name", "title", "design", "planned", "judges_per_item", "per_case", "seed", "hash", "rule")
LONGEST_ORIGIN = 500
JUDGE = "judge_"
LONGEST_HISTORY = 1_000


def read_lines(path: Path, name: str | None = None) -> Sheet:
    """The items of a .jsonl file or of a replication bundle (.zip); faults by line and field.

    Raises InvalidInput for a file that cannot be read at all.
    """
    name = name or path.name
    checked_size(path, name, MAX_BYTES)
    log = FaultLog()
    place = Place(Table(name, None, (), False), log)
    if path.suffix.lower() == ".zip":
        items, origin = _from_bundle(path, name, place)
    else:
        with path.open("rb") as file:
            items, origin = list(_items(file, name, place)), {}
    judges = sorted({judge for item in items for judge in item.ratings})
    if not items and not log.has_errors:
        place.add("error", "no_rows", "the file holds no item")
    elif items and not judges:
        place.add("error", "no_rater", "no human has rated any of the items")
    check_items(items, judges, place)
    return Sheet(tuple(items), tuple(judges), log.faults(), origin)


def _from_bundle(path: Path, name: str, place: Place) -> tuple[list[SheetItem], dict[str, str | int]]:
    try:
        with zipfile.ZipFile(path) as bundle:
            content = _member(bundle, name, ITEMS_NAME, MAX_BYTES)
            if content is None:
                raise InvalidInput(
                    f"{name}: holds no {ITEMS_NAME}; give a replication bundle as it was made."
                )
            sums = _member(bundle, name, SUMS_NAME, MAX_BESIDE)
            told = _member(bundle, name, STUDY_NAME, MAX_BESIDE)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, zlib.error) as error:
        raise InvalidInput(f"{name}: is no zip file that can be read ({error}).") from error
    for member, own in ((ITEMS_NAME, content), (STUDY_NAME, told)):
        wanted = re.search(
            rb"^([0-9a-f]{64})  " + re.escape(member.encode()) + rb"$", sums or b"", re.MULTILINE
        )
        if own is not None and wanted and hashlib.sha256(own).hexdigest() != wanted[1].decode():
            raise InvalidInput(
                f"{name}: its {member} is not what {SUMS_NAME} says: it was changed since the bundle was "
                f"made. To import it all the same, give the {ITEMS_NAME} by itself."
            )
    return list(_items(io.BytesIO(content), name, place)), _origin(told)


def _member(bundle: zipfile.ZipFile, name: str, wanted: str, most: int) -> bytes | None:
    """The content of the one file of that name, in whatever folder; None where there is none."""
    found = [one for one in bundle.infolist() if Path(one.filename).name == wanted]
    if len(found) > 1:
        raise InvalidInput(f"{name}: holds {len(found)} files called {wanted}; give a bundle as it was made.")
    if not found:
        return None
    if found[0].file_size > most:
        raise InvalidInput(f"{name}: its {wanted} is larger than {most // 2**20} MiB.")
    with bundle.open(found[0]) as file:
        return file.read(most)


def _origin(content: bytes | None) -> dict[str, str | int]:
    """What a bundle's study.json says of the study, as far as it is text or a whole number."""
    try:
        told = json.loads(content or b"{}")
    except (ValueError, RecursionError):
        return {}
    found: dict[str, str | int] = {}
    for field in ORIGIN if isinstance(told, dict) else ():
        value = told.get(field)
        if isinstance(value, str):
            found[field] = clean(value)[0][:LONGEST_ORIGIN]
        elif isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63:
            found[field] = value
    evaluator = told.get("evaluator") if isinstance(told, dict) else None
    if isinstance(evaluator, dict) and isinstance(evaluator.get("label"), str):
        found["evaluator"] = clean(evaluator["label"])[0][:LONGEST_ORIGIN]
    return found


def _items(lines: Iterable[bytes], name: str, place: Place) -> Iterator[SheetItem]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if len(line) > MAX_LINE:
            place.add("error", "too_long", f"the line is longer than {MAX_LINE // 2**20} MiB", number)
            continue
        try:
            record: Any = json.loads(line.decode("utf-8-sig"))
        except (ValueError, RecursionError) as error:
            place.add("error", "not_json", f"not JSON ({str(error).splitlines()[0][:120]})", number)
            continue
        if not isinstance(record, dict):
            place.add("error", "not_json", "not a JSON object", number)
        elif (item := _Line(place, number, record).item()) is not None:
            yield item


class _Line:
    """One line to an item; `bad` once any of its fields has an error."""

    def __init__(self, place: Place, number: int, record: dict[str, Any]) -> None:
        self.place, self.number, self.record = place, number, record
        self.bad = False

    def item(self) -> SheetItem | None:
        ratings, comments, histories = self._ratings()
        final = self._rating("final_rating", self.record.get("final_rating"))
        reason = self._maybe("final_reason")
        if (fault := final_fault(final, reason)) is not None:
            self._fault("final_reason", "no_reason", fault)
        found = SheetItem(
            row=self.number,
            model=self._text("model", longest=MAX_NAME),
            scenario=self._scenario(),
            variant=self._maybe("variant") or STANDARD,
            category=self._category(),
            number=self._case_number(),
            constraint=self._text("constraint"),
            request=self._text("request"),
            response=self._maybe("response") or "",
            evaluator_rating=self._rating("evaluator_rating", self.record.get("evaluator_rating")),
            evaluator_explanation=self._maybe("evaluator_explanation"),
            ratings=ratings,
            comments=comments,
            item=self._maybe("item"),
            stratum=self._maybe("stratum"),
            inclusion_probability=self._probability(),
            histories=histories,
            final_rating=final,
            final_reason=reason,
            final_earlier=self._earlier_labels(final),
        )
        return None if self.bad else found

    def _fault(self, field: str, code: str, message: str) -> None:
        self.bad = True
        self.place.add("error", code, message, self.number, field)

    def _maybe(self, field: str) -> str | None:
        value = self.record.get(field)
        if value is None:
            return None
        if not isinstance(value, str):
            self._fault(field, "not_text", f"{_shown(value)} is not text")
            return None
        text, flags = clean(value)
        if flags:
            message = "characters that cannot be stored were replaced by U+FFFD"
            self.place.add("warning", "replaced", message, self.number, field)
        return text

    def _text(self, field: str, longest: int | None = None) -> str:
        text = self._maybe(field)
        if text is None or is_blank(text):
            if not isinstance(self.record.get(field), int | float | list | dict):
                self._fault(field, "blank_cell", "is missing or blank")
            return ""
        if longest is not None and len(text) > longest:
            self._fault(field, "too_long", f"{len(text)} characters; at most {longest} are taken")
        return text

    def _scenario(self) -> str:
        text = self._text("scenario")
        if text and text not in SCENARIOS:
            self._fault("scenario", "unknown_scenario", f"'{text[:SHOWN]}' is none of {', '.join(SCENARIOS)}")
        return text

    def _category(self) -> str:
        text = self._text("category")
        if text and text not in tuple(Category):
            self._fault("category", "unknown_category", f"'{text[:SHOWN]}' is none of {', '.join(Category)}")
        return text

    def _case_number(self) -> int:
        value = self.record.get("conversation_number")
        if isinstance(value, int) and not isinstance(value, bool) and 0 < value < 2**31:
            return value
        self._fault("conversation_number", "no_number", f"{_shown(value)} is no number of 1 or more")
        return 0

    def _rating(self, field: str, value: Any) -> int | None:
        if value is None:
            return None
        rating = rating_of(value) if isinstance(value, int) else None
        if rating is None:
            self._fault(field, "no_rating", f"{_shown(value)} is none of 0, 1, 2 and null")
        return rating

    def _probability(self) -> float | None:
        value = self.record.get("inclusion_probability")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            self._fault("inclusion_probability", "no_probability", f"{_shown(value)} is no probability")
            return None
        return float(value)

    def _ratings(self) -> tuple[dict[int, int], dict[int, str], dict[int, list[int | None]]]:
        ratings: dict[int, int] = {}
        comments: dict[int, str] = {}
        histories: dict[int, list[int | None]] = {}
        given = self.record.get("ratings")
        if not isinstance(given, list):
            self._fault("ratings", "no_rating", "is no list of ratings")
            return ratings, comments, histories
        for at, one in enumerate(given):
            field = f"ratings.{at}"
            judge = _judge_number(one.get("judge")) if isinstance(one, dict) else None
            if judge is None or judge in ratings:
                message = "names no judge as judge_1, judge_2, …" if judge is None else "repeats a judge"
                self._fault(field, "no_judge", message)
                continue
            rating = self._rating(field, one.get("rating"))
            if rating is None and not self.bad:
                self._fault(field, "no_rating", "has no rating; leave out what is missing")
            if rating is not None:
                ratings[judge] = rating
            comment = one.get("comment")
            if isinstance(comment, str) and comment:
                comments[judge] = clean(comment)[0]
            if one.get("history"):
                histories[judge] = self._history(f"{field}.history", one["history"])
        return ratings, comments, histories

    def _history(self, field: str, given: Any) -> list[int | None]:
        """What was said before, oldest first; null: undone, which takes a rating before it."""
        if not isinstance(given, list) or len(given) > LONGEST_HISTORY:
            self._fault(field, "no_history", f"is no list of at most {LONGEST_HISTORY} earlier ratings")
            return []
        steps = [self._rating(field, one) for one in given]
        if any(step is None and (at == 0 or steps[at - 1] is None) for at, step in enumerate(steps)):
            self._fault(field, "no_history", "undoes (null) what was not rated")
        return steps

    def _earlier_labels(self, final: int | None) -> list[tuple[int, str]]:
        given = self.record.get("final_history")
        if not given:
            return []
        labels = []
        if final is None or not isinstance(given, list) or len(given) > LONGEST_HISTORY:
            self._fault("final_history", "no_history", "is no list of labels before a final one")
            return []
        for one in given:
            label = self._rating("final_history", one.get("rating")) if isinstance(one, dict) else None
            reason = one.get("reason") if isinstance(one, dict) else None
            if label is None or not isinstance(reason, str) or final_fault(label, reason) is not None:
                self._fault("final_history", "no_reason", f"{_shown(one)} is no label with its reason")
            else:
                labels.append((label, reason))
        return labels


def _judge_number(value: Any) -> int | None:
    number = value.removeprefix(JUDGE) if isinstance(value, str) and value.startswith(JUDGE) else ""
    return int(number) if number.isdecimal() and 0 < int(number[:9]) < 10_000 else None


def _shown(value: Any) -> str:
    return f"'{json.dumps(value, ensure_ascii=False)[:SHOWN]}'"


def line(record: dict[str, Any]) -> bytes:
    return (json.dumps(record, ensure_ascii=False, allow_nan=False) + "\n").encode()
