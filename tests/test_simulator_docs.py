"""docs/simulated.md names every model, fault and option, and nothing that is not there."""

import re
import subprocess
import sys
from pathlib import Path

from app.local_model import CONTEXT, MODEL
from app.simulator import FAULTS, MODELS

TEXT = (Path(__file__).resolve().parents[1] / "docs" / "simulated.md").read_text(encoding="utf-8")


def test_every_model_and_fault_is_named() -> None:
    for name in (*MODELS, *FAULTS, MODEL):
        assert f"`{name}`" in TEXT, name
    kinds = re.search(r"^Kinds: (.*?);", TEXT, re.S | re.M)
    assert kinds is not None
    assert re.findall(r"`(\w+)`", kinds[1]) == list(FAULTS)
    assert f"{CONTEXT} tokens" in TEXT


def test_every_option_is_named_and_exists() -> None:
    shown = subprocess.run(
        [sys.executable, "-m", "app.simulator", "--help"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    exist = set(re.findall(r"(--[a-z][a-z-]+)", shown.stdout)) - {"--help", "--host"}
    simulator_part = TEXT.split("## A small real model")[0]
    named = set(re.findall(r"(--[a-z][a-z-]+)", simulator_part))
    of_curate = {"--benchmark", "--base-url", "--model", "--evaluator-base-url", "--evaluator-model"}
    assert named - of_curate - {"--help"} == exist
