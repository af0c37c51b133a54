"""A study from the command line: created, frozen, opened, judged, closed; wrong use in one line."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import demo
from app.cli.installation import installation
from app.embedded import attach
from app.runs.planning import Selection
from app.simulator import SimulatorProcess
from tests.embedded_help import data_directory, no_words
from tests.study_help import StudyRoom, check_study
from tests.test_cli import Home

EXEMPT = ("--ethics-exemption", "Simulated replies; nobody is studied.")


@pytest.fixture(scope="module")
def home() -> Iterator[Home]:
    with (
        data_directory() as data_dir,
        SimulatorProcess() as simulator,
        attach(data_dir, services=("postgres", "valkey"), tell=no_words),
    ):
        home = Home(data_dir, simulator.base_url)
        where = ("--benchmark", "curate-part", "--base-url", home.base_url, "--model", "forgetful")
        home.curate("evaluate", *where, "--scenarios", "sc1,sc2", "--limit", "2")
        yield home


def test_a_study_from_the_draw_to_the_close(home: Home) -> None:
    command = ("study", "create", "--name", "first", "--run", "1", "-n", "6", "--seed", "5")
    preview = home.curate(*command, "--preview", "--json").json
    assert (preview["asked"], preview["drawn"]) == (6, 6)
    assert home.curate("study", "list", "--json").json == []
    made = home.curate(*command, "--judges-per-item", "1", *EXEMPT, "--json").json
    assert (made["state"], made["items"], made["seed"]) == ("draft", 6, 5)
    assert home.curate("study", "leaks", "first", "--json").json["items"] == 6
    for step in ("freeze", "open"):
        assert home.curate("study", step, "first").code == 0
    link = home.curate("study", "invite", "first", "--uses", "2").out.strip()
    assert "/judge/join/" in link
    with installation(home.data_dir) as installed:
        room = StudyRoom(installed.engine, "first")
        room.rate_all(room.join())
        check_study(room)
    shown = home.curate("study", "show", "first", "--json").json
    assert (shown["complete"], shown["ratings"], shown["quality"][0]["rated"]) == (6, 6, 6)
    home.curate("study", "judges", "first", "2")
    home.curate("study", "pause", "first")
    home.curate("study", "close", "first")
    home.curate("study", "clone", "first", "second", "-n", "2")
    listed = {one["name"]: one["state"] for one in home.curate("study", "list", "--json").json}
    assert listed == {"first": "closed", "second": "draft"}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("create", "--name", "x", "--run", "99"), "99"),
        (("create", "--name", "a/b", "--run", "1"), "slash"),
        (("create", "--name", "x", "--run", "1", *EXEMPT, "--ethics-approval", "b"), "not both"),
        (("freeze", "nowhere"), "no study 'nowhere'"),
        (("invite", "nowhere"), "no study 'nowhere'"),
    ],
)
def test_wrong_use_is_one_line(home: Home, arguments: tuple[str, ...], message: str) -> None:
    ended = home.curate("study", *arguments)
    assert ended.code == 2
    assert message in ended.err
    assert "Traceback" not in ended.err


def test_gold_that_cannot_be_read_is_named_by_its_line(home: Home, tmp_path: Path) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(json.dumps({"constraint": "a", "request": "b", "response": "c", "rating": 7}))
    ended = home.curate("study", "create", "--name", "x", "--run", "1", "--gold", str(path))
    assert ended.code == 2
    assert "gold.jsonl, line 1" in ended.err


def test_each_demo_makes_a_study_of_its_own(home: Home, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "Selection", lambda: Selection(scenarios=("sc1",), limit=1))
    monkeypatch.setattr(demo, "STUDY_ITEMS", 3)
    with installation(home.data_dir, workers=True) as installed:
        run = demo._start(installed, home.base_url, "attentive", "curate-part")
        demo._finish(installed, run)
        assert [demo._study(installed, [run]) for _ in range(2)] == ["demo-1", "demo-2"]
    listed = {one["name"]: one for one in home.curate("study", "list", "--json").json}
    assert (listed["demo-1"]["state"], listed["demo-1"]["judges_per_item"]) == ("open", 2)
