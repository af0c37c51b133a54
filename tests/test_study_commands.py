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
    exported = home.curate("run", "export", "1")
    assert "in a study until it is closed: keep them to yourself" in exported.err
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
    monkeypatch.setattr(demo, "Selection", lambda **_: Selection(scenarios=("sc1",), limit=1))
    monkeypatch.setattr(demo, "STUDY_ITEMS", 3)
    with installation(home.data_dir, workers=True) as installed:
        run = demo._start(installed, home.base_url, "attentive", "curate-part")
        demo._finish(installed, run)
        assert [demo._study(installed, [run]) for _ in range(2)] == ["demo-1", "demo-2"]
    listed = {one["name"]: one for one in home.curate("study", "list", "--json").json}
    assert (listed["demo-1"]["state"], listed["demo-1"]["judges_per_item"]) == ("open", 2)


def test_what_an_owner_does_beside(home: Home, tmp_path: Path) -> None:
    home.curate(
        "study",
        "create",
        "--name",
        "beside",
        "--run",
        "1",
        "-n",
        "3",
        "--categories",
        "severe_phobia",
        *EXEMPT,
    )
    gold = tmp_path / "gold.jsonl"
    one = {"constraint": "No [nuts].", "request": "Nut cake?", "response": "No: nuts.", "rating": 2}
    gold.write_text(json.dumps(one | {"category": "severe_allergy"}))
    told = home.curate("study", "known", "beside", "--gold", str(gold), "--json").json
    assert [one["kind"] for one in told] == ["training"] * 6 + ["gold"]
    assert (told[-1]["rating"], told[-1]["category"], told[-1]["rated"]) == (2, "severe_allergy", 0)
    assert "Nut cake?" in home.curate("study", "known", "beside").out
    home.curate("study", "leaks", "beside", "--also", "your", "--mask")
    assert home.curate("study", "leaks", "beside", "--unmask", "--json").json["leaks"] == []
    for step in ("freeze", "open"):
        home.curate("study", step, "beside")
    with installation(home.data_dir) as installed:
        room = StudyRoom(installed.engine, "beside")
        judge = room.join(external_id="P-1")
        item = room.next(judge).item
        assert item is not None
        room.submit(judge, item.key, 2, comment="[bold]mine")
    assert home.curate("study", "message", "beside", "Thank you.", "--judge", "1").code == 0
    assert "no judge number 7" in home.curate("study", "message", "beside", "x", "--judge", "7").err
    assert home.curate("study", "payments", "beside", "--json").json[0]["participant"] == "P-1"
    assert home.curate("study", "payments", "beside", "--to", str(tmp_path / "p.csv")).code == 0
    assert "P-1" in (tmp_path / "p.csv").read_text(encoding="utf-8-sig")
    assert "[bold]mine" in home.curate("study", "comments", "beside").out
    home.curate("study", "comments", "beside", "--release")
    written = home.curate("study", "export", "beside", "--comments").out
    assert json.loads(written.splitlines()[0]).keys() >= {"item", "ratings"}
    assert "[bold]mine" in written
    assert "only a draft" in home.curate("study", "drop", "beside").err
    home.curate("study", "clone", "beside", "gone", "--same-cases")
    assert home.curate("study", "drop", "gone").code == 0
    assert "gone" not in [one["name"] for one in home.curate("study", "list", "--json").json]
