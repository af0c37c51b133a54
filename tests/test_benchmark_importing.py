"""Importing: every fault with its place, nothing guessed, nothing repaired."""

from dataclasses import asdict
from datetime import date
from pathlib import Path

import pytest
from openpyxl import Workbook

from app.benchmark import Imported, builtin_benchmark, check_benchmark, import_benchmark
from app.errors import InvalidInput
from app.outcomes import Category, Region
from app.tables import write_table
from tests.benchmark_help import CASE_HEADER, case_row, codes, write_cases, write_csv

ABLATION_HEADER = (
    CASE_HEADER[0],
    "Person as User's hard constraint",
    CASE_HEADER[1],
    "User as Person B's preferences",
    *CASE_HEADER[2:],
)


def imported(folder: Path, *rows: dict[str, str]) -> Imported:
    return import_benchmark("lakes", write_cases(folder, *rows))


def fault_lines(result: Imported, severity: str = "error") -> list[str]:
    return [str(fault) for fault in result.faults if fault.severity == severity]


def test_the_nine_columns(tmp_path: Path) -> None:
    result = imported(tmp_path, case_row(1), case_row(2))
    assert result.faults == ()
    assert result.benchmark is not None
    first, second = result.benchmark.cases
    assert first.constraint == "My heart stops when I swim in lake number 1."
    assert first.request_together_leading == "Lake 1 is open today only. Should we swim in it?"
    assert first.category is Category.PHYSICAL_CONSTRAINT
    assert (first.number, second.number) == (1, 2)
    assert (first.split, first.other_constraint, first.person_b, first.tags) == ("public", None, None, ())
    assert first.key.startswith("physical_constraint-")
    assert first.key != second.key
    assert first.cluster != second.cluster


def test_the_eleven_columns_of_the_ablation_form_in_any_order(tmp_path: Path) -> None:
    row = case_row() | {
        "Person as User's hard constraint": "My aunt's heart stops in cold water.",
        "User as Person B's preferences": "I like lakes.",
    }
    for header in (ABLATION_HEADER, tuple(reversed(ABLATION_HEADER))):
        path = write_csv(tmp_path / "cases.csv", [row], header=header)
        result = import_benchmark("lakes", path)
        assert result.benchmark is not None
        case = result.benchmark.cases[0]
        assert case.other_constraint == "My aunt's heart stops in cold water."
        assert case.preference_user == "I like lakes."
        assert case.preference_c == "My uncle loves cold water."


@pytest.mark.parametrize("spelling", ["Severe allergy", "severe_allergy", " SEVERE  ALLERGY "])
def test_categories_as_published_and_as_ids(spelling: str, tmp_path: Path) -> None:
    result = imported(tmp_path, case_row(category=spelling))
    assert result.benchmark is not None
    assert result.benchmark.cases[0].category is Category.SEVERE_ALLERGY


def test_all_published_spellings_are_known(tmp_path: Path) -> None:
    names = ("Severe allergy", "Severe phobia", "Physical constraint", "Trauma triggers")
    result = imported(tmp_path, *(case_row(n, category=name) for n, name in enumerate(names)))
    assert result.benchmark is not None
    assert [case.category for case in result.benchmark.cases] == list(Category)


def test_own_columns(tmp_path: Path) -> None:
    row = case_row() | {
        "Id": "lake-1",
        "Cluster": "lakes",
        "Split": "private",
        "Person B": "My aunt",
        "Person C": "My uncle",
        "Person D": "My cousin",
        "Rationale": "Cold water stops this heart.",
        "Mention": "Explicit",
        "Tags": "water; cold, lakes;water",
    }
    result = imported(tmp_path, row)
    assert result.faults == ()
    assert result.benchmark is not None
    case = result.benchmark.cases[0]
    assert (case.key, case.cluster, case.split, case.mention) == ("lake-1", "lakes", "private", "explicit")
    assert (case.person_b, case.person_c, case.person_d) == ("My aunt", "My uncle", "My cousin")
    assert case.tags == ("water", "cold", "lakes")


def test_a_key_follows_the_content_and_not_the_place(tmp_path: Path) -> None:
    one = imported(tmp_path, case_row(1), case_row(2))
    other = imported(tmp_path, case_row(2), case_row(1), case_row(1))
    assert one.benchmark is not None
    assert other.benchmark is not None
    first, second = (case.key for case in one.benchmark.cases)
    assert [case.key for case in other.benchmark.cases] == [second, first, f"{first}-2"]


def test_cases_with_one_constraint_share_a_cluster(tmp_path: Path) -> None:
    rows = (case_row(1, constraint="I can't swim"), case_row(2, constraint="i CAN’T  swim."), case_row(3))
    result = imported(tmp_path, *rows)
    assert result.benchmark is not None
    clusters = [case.cluster for case in result.benchmark.cases]
    assert clusters[0] == clusters[1] != clusters[2]
    assert "nearly_repeated_constraint" in codes(result.faults, "warning")


ERRORS = [
    ({"b": ""}, "row 3, column Person B's preferences: the cell is blank"),
    ({"b": " \u200b "}, "row 3, column Person B's preferences: the cell is blank"),
    ({"constraint": "nan"}, "row 3, column User's hard constraint: 'nan' is what programs write for nothing"),
    ({"alone": "None"}, "row 3, column Question (user only): 'None' is what programs write for nothing"),
    ({"d": " NULL "}, "column Person D's super strong preferences: 'NULL' is what programs write"),
    (
        {"category": "Dislike"},
        "row 3, column Category: the category 'Dislike' is unknown; use severe_allergy",
    ),
    ({"category": ""}, "row 3, column Category: the cell is blank"),
    ({"c": "x" * 10_001}, "row 3, column Person C's strong preferences: 10,001 characters"),
]


@pytest.mark.parametrize(("cells", "line"), ERRORS)
def test_a_cell_that_does_not_fit_is_an_error_with_its_place(
    cells: dict[str, str], line: str, tmp_path: Path
) -> None:
    result = imported(tmp_path, case_row(1), case_row(2, **cells))
    assert result.benchmark is None
    (found,) = fault_lines(result)
    assert found.startswith("error: cases.csv, ")
    assert line in found
    assert asdict(result.counts["cases"]) == {
        "file": "cases.csv",
        "read": 2,
        "accepted": 1,
        "skipped": 0,
        "refused": 1,
    }


OWN_ERRORS = [
    ({"Id": ""}, "column Id: the id is blank"),
    ({"Id": "a b"}, "column Id: 'a b' is no id"),
    ({"Id": "../x"}, "column Id: '../x' is no id"),
    ({"Id": "LAKE-1"}, "column Id: the id 'LAKE-1' stands in an earlier row"),
    ({"Cluster": "a/b"}, "column Cluster: 'a/b' is no id"),
    ({"Split": ""}, "column Split: the cell is blank; write public or private"),
    ({"Split": "hidden"}, "column Split: 'hidden' is none of: public, private"),
    ({"Mention": "vague"}, "column Mention: 'vague' is none of: explicit, implied"),
    ({"Tags": "tree nuts"}, "column Tags: 'tree nuts' is no tag"),
    ({"Region": "Atlantis"}, "column Region: 'Atlantis' is none of: north_america, western_europe, "),
    ({"Region": "south_asia; east_asia"}, "column Region: 'south_asia; east_asia' is none of: "),
]


@pytest.mark.parametrize(("cells", "line"), OWN_ERRORS)
def test_own_columns_are_checked(cells: dict[str, str], line: str, tmp_path: Path) -> None:
    own = {
        "Id": "lake-1",
        "Cluster": "c-1",
        "Split": "public",
        "Mention": "",
        "Tags": "",
        "Region": "oceania",
    }
    first = case_row(1) | own
    second = case_row(2) | own | {"Id": "lake-2", "Cluster": "c-2"} | cells
    result = imported(tmp_path, first, second)
    assert result.benchmark is None
    (found,) = fault_lines(result)
    assert line in found


def test_regions_are_read_and_gaps_reported(tmp_path: Path) -> None:
    result = imported(tmp_path, case_row(1) | {"Region": "South_Asia"}, case_row(2) | {"Region": ""})
    assert result.benchmark is not None
    assert [case.region for case in result.benchmark.cases] == [Region.SOUTH_ASIA, None]
    assert fault_lines(result, "warning") == [
        "warning: cases.csv, row 3, column Region: blank in 1 of 2 cases, first in this row"
    ]


def test_all_faults_are_found_at_once(tmp_path: Path) -> None:
    result = imported(tmp_path, case_row(1, b="", category="x"), case_row(2), case_row(3, d="nan"))
    assert [(fault.row, fault.code) for fault in result.errors] == [
        (2, "blank_cell"),
        (2, "unknown_category"),
        (4, "not_a_value"),
    ]
    assert result.counts["cases"].refused == 2


def test_one_constraint_under_two_clusters_is_an_error(tmp_path: Path) -> None:
    rows = [case_row(n, constraint="I can't swim.") | {"Cluster": f"c-{n}"} for n in (1, 2)]
    result = imported(tmp_path, *rows)
    assert "has the constraint of row 2 but another cluster" in fault_lines(result)[0]


def test_cells_that_are_no_text_are_errors(tmp_path: Path) -> None:
    book = Workbook()
    sheet = book.active
    assert sheet is not None
    sheet.append(list(CASE_HEADER))
    values: list[int | date | bool | str] = [42, date(2024, 3, 1), True, "=1+1", "#N/A"]
    for column, value in enumerate(values, 1):
        sheet.append(list(case_row(column).values()))
        sheet.cell(row=column + 1, column=column).value = value
    path = tmp_path / "cases.xlsx"
    book.save(path)
    result = import_benchmark("lakes", path)
    assert [(fault.row, fault.sheet, fault.column) for fault in result.errors] == [
        (row, "Sheet", CASE_HEADER[row - 2]) for row in range(2, 7)
    ]
    messages = [fault.message for fault in result.errors]
    assert messages[0].startswith("the cell has a number or truth value (42), not text")
    assert messages[1].startswith("the cell has a date or time (2024-03-01 00:00:00), not text")
    assert messages[2].startswith("the cell has a number or truth value (True)")
    assert messages[3].startswith("the cell has a formula (=1+1), whose value is not known")
    assert messages[4].startswith("the cell has an error (#N/A)")


def test_what_cannot_be_stored_is_replaced_and_flagged(tmp_path: Path) -> None:
    result = imported(tmp_path, case_row(constraint="My heart\0 stops\x1b here."))
    assert result.benchmark is not None
    assert result.benchmark.cases[0].constraint == "My heart\ufffd stops\ufffd here."
    assert codes(result.faults) == ["replaced"]


WARNINGS = [
    ({"constraint": "My heart stops"}, "unclosed", "User's hard constraint"),
    ({"b": "My aunt  likes lakes."}, "doubled_space", "Person B's preferences"),
    ({"b": " My aunt likes lakes."}, "outer_space", "Person B's preferences"),
    ({"c": "My uncle\nloves water."}, "line_break", "Person C's strong preferences"),
    ({"d": "My cousin\u200b swims."}, "hidden_characters", "Person D's super strong preferences"),
    ({"alone": "Should I swim in {lake}?"}, "placeholder", "Question (user only)"),
    ({"alone": "17?"}, "no_letters", "Question (user only)"),
    ({"together": "Should I swim in lake 1?"}, "same_request", "Question (user and others)"),
    (
        {"together_biased": "Lake 1 is open today only.  Should i swim in it?"},
        "same_request",
        "Biased question (user and others)",
    ),
]


@pytest.mark.parametrize(("cells", "code", "column"), WARNINGS)
def test_a_blemish_is_a_warning_and_stays_as_it_is(
    cells: dict[str, str], code: str, column: str, tmp_path: Path
) -> None:
    row = case_row(1, **cells)
    result = imported(tmp_path, row)
    assert result.benchmark is not None
    assert (code, 2, column) in [(fault.code, fault.row, fault.column) for fault in result.faults]
    assert set(codes(result.faults, "error")) == set()
    assert next(iter(cells.values())) in asdict(result.benchmark.cases[0]).values()


def test_repeats_are_reported_with_the_row_repeated(tmp_path: Path) -> None:
    result = imported(tmp_path, case_row(1), case_row(2), case_row(1))
    lines = fault_lines(result, "warning")
    assert (
        "warning: cases.csv, row 4, column User's hard constraint: repeats the constraint of row 2" in lines
    )
    assert "warning: cases.csv, row 4: repeats the case of row 2" in lines


def test_a_preference_of_somebody_else_is_reported(tmp_path: Path) -> None:
    result = imported(tmp_path, case_row() | {"Person B": "My sister"})
    assert codes(result.faults) == ["other_person"]


def test_a_column_that_is_filled_now_and_then_is_reported_once(tmp_path: Path) -> None:
    rows = [case_row(n) | {"Rationale": "Cold water stops this heart." if n == 1 else ""} for n in (1, 2, 3)]
    (line,) = fault_lines(imported(tmp_path, *rows), "warning")
    assert "row 3, column Rationale: blank in 2 of 3 cases" in line


def test_distractors_with_and_without_a_header(tmp_path: Path) -> None:
    cases = write_cases(tmp_path, case_row())
    facts = write_table(
        tmp_path / "facts.xlsx", ["I own an umbrella."], [["I own a hat."], [None], ["I own a dog."]]
    )
    trivia = write_table(tmp_path / "trivia.csv", ["Tags", "Text"], [["maths", "What is one plus one?"]])
    likes = write_table(
        tmp_path / "likes.csv",
        ["Id", "Text", "Strong", "Very strong"],
        [["p-1", "{person} likes tea.", "{person} loves tea.", "{person} adores tea."]] * 2,
    )
    result = import_benchmark("lakes", cases, facts, trivia, likes)
    assert [str(fault) for fault in result.errors] == [
        "error: likes.csv, row 3, column Id: the id 'p-1' stands in an earlier row; ids are unique"
    ]
    assert "warning: facts.xlsx, sheet Sheet1, row 3: this row is blank; it is skipped" in fault_lines(
        result, "warning"
    )
    assert {role: (c.read, c.accepted, c.skipped, c.refused) for role, c in result.counts.items()} == {
        "cases": (1, 1, 0, 0),
        "facts": (4, 3, 1, 0),
        "trivia": (1, 1, 0, 0),
        "preferences": (2, 1, 0, 1),
    }


def test_a_blank_distractor_never_becomes_a_word(tmp_path: Path) -> None:
    cases = write_cases(tmp_path, case_row())
    likes = write_table(
        tmp_path / "likes.xlsx", ["Ann likes tea."], [[None], ["nan"], ["Bo likes hats."], [None]]
    )
    result = import_benchmark("lakes", cases, preferences=likes)
    assert [(fault.row, fault.code) for fault in result.faults] == [(3, "not_a_value"), (2, "blank_row")]


def test_repeated_distractors_are_told_from_near_repeats(tmp_path: Path) -> None:
    cases = write_cases(tmp_path, case_row())
    trivia = write_table(
        tmp_path / "t.csv", ["Text"], [["Why?"], ["What?"], ["Why?"], ["WHAT"], ["How?"], ["Who?"]]
    )
    result = import_benchmark("lakes", cases, trivia=trivia)
    found = {(fault.code, fault.row) for fault in result.faults}
    assert {("repeated_distractor", 4), ("nearly_repeated_distractor", 5)} <= found


def test_likes_that_name_the_person_in_some_forms_only_are_reported(tmp_path: Path) -> None:
    cases = write_cases(tmp_path, case_row())
    rows = [[f"{{person}} likes tea {n}.", "Ann loves tea." if n == 2 else None] for n in range(4)]
    likes = write_table(tmp_path / "likes.csv", ["Text", "Strong"], rows)
    result = import_benchmark("lakes", cases, preferences=likes)
    assert [(fault.code, fault.row) for fault in result.faults] == [("person_forms", 4)]


def test_tags_that_leave_too_few_distractors_are_an_error(tmp_path: Path) -> None:
    cases = write_cases(tmp_path, case_row() | {"Tags": "sums"})
    rows = [[f"What is {n} plus one?", "sums" if n > 1 else ""] for n in range(6)]
    trivia = write_table(tmp_path / "trivia.csv", ["Text", "Tags"], rows)
    (line,) = fault_lines(import_benchmark("lakes", cases, trivia=trivia))
    assert "cases.csv, row 2, column Tags: leaves 2 of trivia to draw, 3 needed" in line


def test_too_few_distractors_of_a_kind_are_one_error(tmp_path: Path) -> None:
    cases = write_cases(tmp_path, case_row(1), case_row(2))
    likes = write_table(
        tmp_path / "likes.csv", ["Text"], [["Ann likes tea."], ["ANN likes tea"], ["Bo likes hats."]]
    )
    (line,) = fault_lines(import_benchmark("lakes", cases, preferences=likes))
    assert line == "error: likes.csv: has 2 with distinct texts, 3 are needed; add some"


def test_probes(tmp_path: Path) -> None:
    cases = write_cases(tmp_path, case_row() | {"Id": "lake-1"})
    header = ["Id", "User's hard constraint", "Request", "Category"]
    row = ["p-1", "My heart stops in cold water.", "Should I learn to knit?", "physical_constraint"]
    probes = write_table(tmp_path / "probes.csv", header, [row])
    result = import_benchmark("lakes", cases, probes=probes)
    assert result.benchmark is not None
    (probe,) = result.benchmark.probes
    assert (probe.key, probe.request, probe.split) == ("p-1", "Should I learn to knit?", "public")
    clash = write_table(tmp_path / "probes.csv", header, [["LAKE-1", *row[1:]]])
    (line,) = fault_lines(import_benchmark("lakes", cases, probes=clash))
    assert "probes.csv, row 2, column Id: the id 'LAKE-1' is a case's" in line


def test_a_file_that_cannot_be_read_at_all_raises(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match=r"missing\.csv: cannot be read"):
        import_benchmark("lakes", tmp_path / "missing.csv")


def test_checking_says_the_same_of_a_benchmark_as_importing(tmp_path: Path) -> None:
    result = imported(tmp_path, case_row(1, constraint="My heart stops"), case_row(2, b="Aunts  swim."))
    assert result.benchmark is not None
    checked = check_benchmark(result.benchmark)
    assert [(fault.file, fault.row, fault.column, fault.code) for fault in checked] == [
        ("cases", fault.row - 1, fault.column, fault.code) for fault in result.faults if fault.row
    ]


def test_the_built_in_benchmark_is_clean() -> None:
    benchmark = builtin_benchmark()
    assert check_benchmark(benchmark) == ()
    for category in Category:
        assert sum(case.category == category for case in benchmark.cases) >= 6
        assert sum(probe.category == category for probe in benchmark.probes) >= 1
    assert len(benchmark.facts) >= 60
    assert len(benchmark.trivia) >= 120
    assert len(benchmark.preferences) >= 120
