"""From what pages show to charts of it. Pure: of the rows that a page has, so no picture says otherwise."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from app.leaderboard import VersionGroup
from app.outcomes import SCENARIOS, STANDARD, Category
from app.pictures import Chart, Scheme, confusion, differences, grouped_bars, heat_map, profile
from app.web import words
from app.web.board_view import FEW, Board, View
from app.web.formats import percent

MOST_MODELS = 12
MOST_PARTS = 5
IN_TABLE = "The figures stand in the table beside it."


@dataclass(frozen=True)
class Shown:
    """A chart on a page: `name` and `query` make its addresses."""

    chart: Chart
    name: str
    query: Mapping[str, Any]

    def at(self, form: str, scheme: Scheme = "light") -> str:
        given = {name: value for name, value in self.query.items() if value not in (None, "")}
        given |= {"scheme": scheme} if scheme != "light" else {}
        return f"/charts/{self.name}.{form}" + (f"?{urlencode(given)}" if given else "")


def _source(group: VersionGroup) -> str:
    return f"{group.title} · computed {group.computed_at:%Y-%m-%d}"


def board_chart(group: VersionGroup, table: Board, view: View) -> Chart | None:
    """The first models of the table as it is sorted; None where there is nothing to show."""
    pinned = [line.row["run"] for line in table.pinned]
    lines = [*table.pinned, *(line for line in table.lines if line.row["run"] not in pinned)][:MOST_MODELS]
    # With every scenario × category there is no room for bars: the scenarios alone.
    both = view.view == "both" and not (view.scenario or view.category)
    places = [] if both else list(range(1, len(table.columns)))[:MOST_PARTS]
    groups = []
    for line in lines:
        bars = [
            (table.columns[at].label, cell.value, cell.unclear, cell.interval)
            for at in places
            for cell in [line.cells[at]]
        ]
        groups.append((str(line.row["model"]), bars or _by_scenario(line.row)))
    if not groups:
        return None
    part = "category" if view.view == "category" and not view.scenario else "scenario"
    published = view.rate == "published"
    title = f"{'Published pass rate' if published else 'Pass rate'} by {part}"
    said = (
        f"Bars of the pass rates of {_counted(len(groups), table.matching)} by {part}, the share that was "
        f"unclear on top, with 95 % intervals. {IN_TABLE}"
    )
    return grouped_bars(title, said, _source(group), groups)


def _counted(shown: int, of: int) -> str:
    return f"{shown} models" if shown == of else f"the first {shown} of {of} models"


def _by_scenario(row: Mapping[str, Any]) -> list[tuple[str, float | None, float | None, Any]]:
    return [
        (words.short_scenario(name), rate["pass_rate"], rate["unclear_rate"], rate["pass_rate_ci"])
        for name in SCENARIOS
        if (rate := row["by_scenario"].get(name))
    ]


def profile_chart(group: VersionGroup, row: Mapping[str, Any]) -> Chart:
    points = [
        (words.short_scenario(name), rate["pass_rate"], rate["pass_rate_ci"], _percent(rate["pass_rate"]))
        for name in SCENARIOS
        if (rate := row["by_scenario"].get(name))
    ]
    told = ", ".join(f"{name} {label}" for name, share, _, label in points if share is not None)
    said = f"Pass rates with 95 % intervals, from the user alone to three others: {told}."
    return profile(
        f"{row['model']}: from alone to three others", said, _source(group), points[:4], points[4:]
    )


def _percent(share: float | None) -> str:
    return f"{percent(share)} %"


def heat_chart(group: VersionGroup, row: Mapping[str, Any]) -> Chart:
    cells = []
    for category in Category:
        name = words.short_category(category)
        for scenario in SCENARIOS:
            rate = row["by_scenario_category"].get(scenario, {}).get(category)
            cells.append((name, words.short_scenario(scenario), *_cell(rate)))
        cells.append((name, "all", *_cell(row["by_category"].get(category))))
    for scenario in SCENARIOS:
        cells.append(("all", words.short_scenario(scenario), *_cell(row["by_scenario"].get(scenario))))
    cells.append(("all", "all", *_cell(row["overall"])))
    said = (
        "A map of the pass rates, categories down and scenarios across, the darker the more passed. "
        f"† Fewer than {FEW} conversations. {IN_TABLE}"
    )
    return heat_map(f"{row['model']}: pass rate in per cent", said, _source(group), cells)


def _cell(rate: Mapping[str, Any] | None) -> tuple[float | None, str]:
    if rate is None or rate["pass_rate"] is None:
        return None, ""
    return rate["pass_rate"], percent(rate["pass_rate"]) + ("†" if rate["answered"] < FEW else "")


def variants_chart(group: VersionGroup, row: Mapping[str, Any], report: Mapping[str, Any]) -> Chart | None:
    """Each variant beside its standard arm on the same cases; None where none can be compared."""
    groups = []
    for scenario, variants in report["by_variant"].items():
        for variant, found in variants.items():
            pairs, rate = found["difference"], found["rate"]
            if not pairs:
                continue
            n = pairs["n"]
            standard = (pairs["both_pass"] + pairs["only_standard_passes"]) / n
            changed = (pairs["both_pass"] + pairs["only_variant_passes"]) / n
            bars = [
                (STANDARD, standard, None, None),
                (
                    "variant",
                    changed,
                    rate["unclear_rate"],
                    rate["pass_rate_ci"] if n == rate["answered"] else None,
                ),
            ]
            groups.append((f"{words.short_scenario(scenario)}, {variant.replace('_', ' ')}", bars))
    if not groups:
        return None
    said = f"Bars in pairs: the standard arm and the variant on the same cases. {IN_TABLE}"
    return grouped_bars(f"{row['model']}: variants beside the standard", said, _source(group), groups)


def compare_chart(group: VersionGroup, found: Mapping[str, Any]) -> Chart:
    parts = [("all", found["overall"])]
    parts += [(words.short_scenario(name), one) for name, one in found["by_scenario"].items()]
    parts += [(words.short_category(name), one) for name, one in found["by_category"].items()]
    title = f"{found['a']['model']} less {found['b']['model']}"
    said = f"Differences in pass rate with 95 % intervals, overall, by scenario and by category. {IN_TABLE}"
    told = [(name, one["difference"], one["ci"]) for name, one in parts if one]
    return differences(title, said, _source(group), told)


def published_chart(figures: Mapping[str, Any], rows: Sequence[Mapping[str, Any]]) -> Chart:
    groups = [
        (
            str(row["name"]),
            [
                (words.short_scenario(name), rate["published_pass_rate"], rate["unclear_rate"], None)
                for name, rate in row["by_scenario"].items()
            ],
        )
        for row in rows
    ]
    said = (
        "Bars of the published pass rates of each model in the five scenarios, the unclear share on top. "
        "The figures stand in the table above."
    )
    return grouped_bars("Published pass rates by scenario", said, f"arXiv {figures['arxiv']}", groups)


def confusion_chart(study: str, pair: Mapping[str, Any], ratings: Sequence[str]) -> Chart:
    said = f"Counts of ratings: rows {pair['a']}, columns {pair['b']}. {IN_TABLE}"
    return confusion(f"{pair['a']} (rows) and {pair['b']} (columns)", said, study, pair["confusion"], ratings)
