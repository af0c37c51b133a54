"""`python -m tests.audit`: are there advisories against what the lock files pin? Asks the OSV database once.

Exit 0 where there are none, and where the database cannot be reached, which is said; 1 where there are some.
"""

import json
import os
import re
import sys
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from app.settings import PROJECT_ROOT

OSV = "https://api.osv.dev/v1/querybatch"
LOCKS = (
    "requirements.lock",
    "requirements-dev.lock",
    "requirements-build.lock",
    "requirements-local-model.lock",
)
# Advisories that somebody looked at and that do not concern us: id -> why.
ACCEPTED: dict[str, str] = {}
SECONDS = 20
_PIN = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)

Pin = tuple[str, str]


def pins(paths: Iterable[Path]) -> list[Pin]:
    """(name, version) of everything that is pinned, each once."""
    return sorted({(name, version) for path in paths for name, version in _PIN.findall(path.read_text())})


def advisories(pinned: list[Pin], url: str) -> dict[Pin, list[str]]:
    """pin -> ids of advisories, of those that have any. OSError and ValueError when there is no answer."""
    queries = [
        {"package": {"name": name, "ecosystem": "PyPI"}, "version": version} for name, version in pinned
    ]
    request = urllib.request.Request(
        url, json.dumps({"queries": queries}).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=SECONDS) as answer:
        results: Any = json.load(answer)["results"]
    if len(results) != len(pinned):
        raise ValueError(f"{len(pinned)} packages were asked for, {len(results)} answers came")
    found = {
        pin: [one["id"] for one in result.get("vulns", []) if one["id"] not in ACCEPTED]
        for pin, result in zip(pinned, results, strict=True)
    }
    return {pin: ids for pin, ids in found.items() if ids}


def main(url: str) -> int:
    pinned = pins(PROJECT_ROOT / name for name in LOCKS)
    try:
        found = advisories(pinned, url)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"audit: NOT DONE, the advisory database does not answer ({type(error).__name__}: {error})")
        return 0
    for (name, version), ids in found.items():
        print(f"audit: {name} {version}: {', '.join(ids)} (https://osv.dev/vulnerability/{ids[0]})")
    told = f"{len(found)} with advisories" if found else "no advisories"
    print(f"audit: {len(pinned)} pinned packages, {told}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(os.environ.get("CURATE_TEST_ADVISORIES", OSV)))
