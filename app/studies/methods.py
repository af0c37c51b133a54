"""The words of a replication bundle: a methods paragraph with the numbers filled in, and a codebook."""

from typing import Any

from app.agreement import EVALUATOR, FEW_ITEMS
from app.models import StudyDesign


def methods_paragraph(report: dict[str, Any], study: dict[str, Any]) -> str:
    """To be put into a paper as it is; what the study does not tell is said to be unknown."""
    judges = [name for name in report["raters"] if name != EVALUATOR]
    return " ".join(
        sentence
        for sentence in (
            _drawn(report, study),
            _judged(report, study, judges),
            _among_humans(report, judges),
            _against_evaluator(report),
            _ethics(study),
        )
        if sentence
    )


def _drawn(report: dict[str, Any], study: dict[str, Any]) -> str:
    models = _counted(len(study["models"]), "model")
    items = _counted(report["items"], "reduced conversation")
    if study["design"] == StudyDesign.IMPORTED:
        return f"The ratings of {items} of {models} were taken from a finished sheet."
    design = (
        "balanced over model, scenario, category and evaluator verdict"
        if study["design"] == StudyDesign.AGREEMENT
        else "simple random within model and evaluator verdict"
    )
    limit = f", at most {study['per_case']} of each case" if study["per_case"] else ""
    frozen = f"; items and instructions were frozen under the hash {study['hash']}" if study["hash"] else ""
    return f"We drew {items} of {models} ({design}{limit}, seed {study['seed']}){frozen}."


def _judged(report: dict[str, Any], study: dict[str, Any], judges: list[str]) -> str:
    ratings = _counted(study["ratings"]["counted"], "rating")
    who = _counted(len(judges), "judge")
    if study["design"] == StudyDesign.IMPORTED:
        return f"The sheet holds {ratings} by {who}, each item fail (0), unclear (1) or pass (2)."
    wanted = _counted(study["judges_per_item"], "judge")
    return (
        f"{who.capitalize()} gave {ratings}, {wanted} an item, blind to model, scenario, category, the "
        "evaluator's verdict and each other's ratings; each item was rated fail (0), unclear (1) or pass "
        "(2). Training, gold and repeated items are left out of all figures."
    )


def _among_humans(report: dict[str, Any], judges: list[str]) -> str:
    figures = report["all"]["humans"]["three_level"]
    if len(judges) < 2 or not figures["n"]:
        return ""
    alpha = _coefficient(figures, "krippendorff_alpha_ordinal")
    return (
        f"Judges agreed in {_percent(figures['mean_pairwise_percent'])} of the pairs of ratings of an item "
        f"(n = {figures['n']} items; ordinal Krippendorff's alpha {alpha}; Gwet's AC1 "
        f"{_coefficient(figures, 'gwet_ac1')})."
    )


def _against_evaluator(report: dict[str, Any]) -> str:
    if EVALUATOR not in report["raters"]:
        return ""
    figures, against = report["evaluator_vs_consensus"], "the judges' consensus"
    if figures is None:
        pairs = [pair for pair in report["pairs"] if pair["a"] == EVALUATOR]
        if not pairs:
            return ""
        figures, against = pairs[0]["three_level"], "the judge"
    if not figures["n"]:
        return ""
    few = f", fewer than {FEW_ITEMS}: to be read with care" if figures["n"] < FEW_ITEMS else ""
    low, high = figures["percent_ci"]
    return (
        f"The evaluator agreed with {against} in {_percent(figures['percent'])} of {figures['n']} items"
        f"{few} (95 % Wilson interval {_percent(low)} to {_percent(high)}; Cohen's kappa "
        f"{_coefficient(figures, 'cohen_kappa')}; Gwet's AC1 {_coefficient(figures, 'gwet_ac1')})."
        f"{_as_stand_in(report)}"
    )


def _as_stand_in(report: dict[str, Any]) -> str:
    if report["alternative_annotator"] is None:
        return ""
    found = report["alternative_annotator"]["three_level"]
    if found["winning_rate"] is None:
        return ""
    return (
        f" In the alternative annotator test (Calderon et al., 2025) its winning rate was "
        f"{found['winning_rate']['0.15']:.2f} at epsilon = 0.15 (average advantage probability "
        f"{found['advantage']:.2f}); left-out judges agreed with the others in "
        f"{_percent(found['human_agreement'])} of the comparisons, the evaluator in "
        f"{_percent(found['evaluator_agreement'])}."
    )


def _ethics(study: dict[str, Any]) -> str:
    statement = study["ethics"]["statement"].strip()
    if not statement:
        return ""
    what = "Ethics approval" if study["ethics"]["kind"] == "approval" else "Exemption from ethics approval"
    return f"{what}: {statement}"


def _counted(n: int, what: str) -> str:
    return f"{n} {what}" if n == 1 else f"{n} {what}s"


def _percent(value: float) -> str:
    return f"{100 * value:.1f} %"


def _coefficient(figures: dict[str, Any], name: str) -> str:
    value, interval = figures[name], figures[f"{name}_ci"]
    if value is None:
        return "undefined"
    return f"{value:.3f}" + (f" [{interval[0]:.3f}, {interval[1]:.3f}]" if interval else "")


def codebook(report: dict[str, Any], *, with_comments: bool) -> str:
    """What each file of the bundle holds, field by field."""
    comments = (
        "`comment` is what the judge wrote, read before by the study's owner."
        if with_comments
        else "What judges wrote is left out."
    )
    raters = ", ".join(f"`{name}`" for name in report["raters"]) or "none"
    return _CODEBOOK.format(raters=raters, comments=comments, name=report["study"]["name"])


_CODEBOOK = """# Codebook of the study {name}

Raters: {raters}. Judges have numbers only. Ratings: 0 fail, 1 unclear, 2 pass; a missing rating is absent.

| file | what |
| --- | --- |
| items.jsonl | one item a line, byte for byte as judged; `curate study import` reads it, or the whole zip |
| sheet.csv, sheet.xlsx | the same as a table, one column a judge; what a spreadsheet would compute is text |
| ratings.csv | one rating a row, repeats and surplus ones too, with the ratings that it took the place of |
| report.json, report.csv | the agreement figures, and in `undefined` why one is missing |
| study.json | design, draw, seed, hash, ethics |
| instructions.md | what judges were told |
| methods.md | a paragraph for a paper |
| SHA256SUMS | checksums of all of these |

## items.jsonl
| field | what |
| --- | --- |
| item, position | the item's id and its place in the study |
| model, scenario, variant, category | where the conversation comes from; judges did not see it |
| case, conversation_number | the benchmark's case and its row |
| constraint, request, response | all that judges saw; names of models may be masked |
| stratum, inclusion_probability | from which part the item was drawn, and with what probability |
| evaluator_rating, evaluator_explanation | the evaluator's verdict |
| ratings | for each judge `rating` and `history`, the earlier ones (null: undone). {comments} |
| final_rating, final_reason | of the adjudication after the close, where there was one |
| final_history | the labels before it, oldest first |

## ratings.csv
| column | what |
| --- | --- |
| Item, Judge | which item, who |
| Repeat | true: shown a second time for self-consistency, never part of agreement |
| Counted | true: one of the ratings that the item needed; only these enter agreement |
| Rating, Earlier Ratings | the last one, and those before it, oldest first |
| Active Seconds | time on the item by the server's clock, hidden and idle time left out; blank: unknown |
"""
