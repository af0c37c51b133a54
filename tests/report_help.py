"""Looking over a whole report: every null needs a reason, no figure may be NaN or lie outside 0-1."""

import json
import math
from collections.abc import Iterator
from typing import Any

SHARES = ("pass_rate", "published_pass_rate", "unclear_rate", "coverage")


def nulls(report: Any, path: str = "") -> Iterator[str]:
    """The paths of all nulls, without the reasons themselves."""
    if report is None:
        yield path
    elif isinstance(report, dict):
        for name, value in report.items():
            if name != "undefined":
                yield from nulls(value, f"{path}.{name}" if path else str(name))
    elif isinstance(report, list | tuple):
        for index, value in enumerate(report):
            yield from nulls(value, f"{path}.{index}")


def unexplained(report: dict[str, Any]) -> list[str]:
    """Nulls for which `undefined` gives no reason, neither at their path nor at one that encloses it."""
    reasons = report["undefined"]
    assert all(reason and isinstance(reason, str) for reason in reasons.values())
    return [path for path in nulls(report) if not any(part in reasons for part in _enclosing(path))]


def _enclosing(path: str) -> Iterator[str]:
    steps = path.split(".")
    return (".".join(steps[:end]) for end in range(1, len(steps) + 1))


def reasons_for_nothing(report: dict[str, Any]) -> list[str]:
    """Reasons at paths where there is a value after all."""
    missing = set(nulls(report))
    return [
        path
        for path in report["undefined"]
        if path not in missing and not any(one.startswith(f"{path}.") for one in missing)
    ]


def rates_in(report: Any) -> Iterator[dict[str, Any]]:
    """Every RATE of a report."""
    if isinstance(report, dict):
        if "pass_rate" in report:
            yield report
        for value in report.values():
            yield from rates_in(value)


def check_report(report: dict[str, Any]) -> None:
    """What holds of every report, whatever was observed."""
    json.dumps(report, allow_nan=False)
    assert unexplained(report) == []
    assert reasons_for_nothing(report) == []
    for rate in rates_in(report):
        check_rate(rate)


def check_rate(rate: dict[str, Any]) -> None:
    assert rate["pass"] + rate["unclear"] + rate["fail"] + rate["no_answer"] == rate["answered"]
    assert rate["answered"] <= rate["planned"]
    for name in SHARES:
        assert rate[name] is None or 0 <= rate[name] <= 1
    if rate["bounds"] is not None:
        low, high = rate["bounds"]
        assert 0 <= low <= high <= 1
        if rate["pass_rate"] is not None:
            assert low - 1e-12 <= rate["pass_rate"] <= high + 1e-12
    if rate["pass_rate_ci"] is not None:
        low, high = rate["pass_rate_ci"]
        assert 0 <= low <= rate["pass_rate"] + 1e-12
        assert rate["pass_rate"] - 1e-12 <= high <= 1
        assert high - low > 1e-6, "an interval without width claims to know everything"
        assert not math.isnan(low + high)
