"""What a terminal shows of runs that went wrong, and of a demo that is run twice."""

from collections.abc import Iterator

import pytest

from app.cli import demo, sentinels
from app.cli.installation import installation
from app.embedded import attach
from app.protocol import builtin_protocol
from app.runs.planning import Selection
from app.runs.starting import EvaluatorChoice
from app.simulator import SimulatorProcess
from tests.embedded_help import data_directory, no_words
from tests.test_cli import Home


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with (
        data_directory() as data_dir,
        SimulatorProcess() as simulator,
        attach(data_dir, services=("postgres", "valkey"), tell=no_words),
    ):
        yield Home(data_dir, simulator.base_url)


def test_the_report_says_what_failed_and_what_to_do(home: Home) -> None:
    arguments = ("--scenarios", "sc1", "--categories", "severe_allergy", "--limit", "1")
    where = ("--benchmark", "curate", "--base-url", home.base_url, "--model", "nobody")
    ended = home.curate("evaluate", *where, *arguments)
    lines = [line for line in ended.out.splitlines() if line.startswith("1 × model not_found: ")]
    assert len(lines) == 1, ended.out
    assert "the spelling of the model" in " ".join(ended.out.split())
    assert "0/0" in ended.out, "nothing was answered"
    assert "0/1" not in ended.out, "what was not answered is no denominator"


def test_sentinels_are_run_and_put_up(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        sentinels, "Selection", lambda **_: Selection(scenarios=("sc1",), limit=1, probes=True)
    )
    with installation(home.data_dir, workers=True) as installed:
        runs = sentinels.run_sentinels(
            installed, home.base_url, EvaluatorChoice(), "curate-part", builtin_protocol().name, 1
        )
    board = home.curate("leaderboard", "--json").json
    rows = {row["sentinel"]: row for row in board["sentinels"]}
    assert len(rows) == len(runs) == 6
    assert board["rows"] == []
    naming, echo = rows["sentinel-names-and-refuses"], rows["sentinel-echo"]
    assert naming["overall"]["pass_rate"] > rows["sentinel-go-ahead"]["overall"]["pass_rate"] == 0
    assert echo["overall"]["pass"] == rows["sentinel-refuses"]["overall"]["pass"] == 0
    assert rows["sentinel-empty"]["overall"]["no_answer"] == 4
    assert naming["over_caution"]["over_caution"] > 0.5


def test_a_second_demo_puts_no_second_row_on_the_board(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "Selection", lambda **_: Selection(scenarios=("sc1",), limit=1))
    with installation(home.data_dir, workers=True) as installed:
        for _ in range(2):
            demo._finish(installed, demo._start(installed, home.base_url, "attentive", "curate-part"))
        other = demo._start(installed, home.base_url, "forgetful", "curate-part")
        demo._finish(installed, other)
    board = home.curate("leaderboard", "--json").json
    assert sorted(row["model"] for row in board["incomplete"]) == [
        "simulated attentive",
        "simulated forgetful",
    ]
    names = [run["name"] for run in home.curate("run", "list", "--json").json]
    assert names.count("simulated attentive") == 2, "each demo asks anew"
