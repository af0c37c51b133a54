"""Charts: that they are drawn, say what the figures say, and that the process that draws them may die."""

import json
import struct
import threading
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator

import pytest
from defusedxml.ElementTree import fromstring

from app.errors import AppError
from app.pictures import SCHEMES, Artist, Chart, confusion, differences, grouped_bars, heat_map, profile
from app.pictures.drawing import MOST_WAITING, Busy
from app.pictures.specs import wrapped
from app.pictures.themes import THEMES

HOSTILE = "</text><script>alert(1)</script> & \"'"
NAMES = {"svg": "http://www.w3.org/2000/svg"}


def bars(name: str = "Model A") -> Chart:
    parts = [
        ("alone", 0.9, 0.05, (0.85, 0.94)),
        ("+1 person", 335 / 336, 0.01, None),
        ("+2 people", None, None, None),
    ]
    return grouped_bars("Pass rates", "Bars.", "curate v1", [(name, parts), (name, parts[:1])])


CHARTS: dict[str, Callable[[], Chart]] = {
    "grouped": bars,
    "profile": lambda: profile(
        "Profile", "A line.", "s", [("alone", 0.9, (0.8, 0.95), "90.0 %"), ("+1", None, None, "–")],
        [("apart", 0.7, None, "70.0 %")],
    ),
    "heat": lambda: heat_map(
        "Heat", "A map.", "s", [("a", "x", 0.1, "10.0"), ("a", "y", None, ""), ("b", "x", 1, "100.0")]
    ),
    "differences": lambda: differences(
        "A less B", "Dots.", "s", [("all", 0.1, (0.05, 0.2)), ("one", -0.1, None), ("no", None, None)]
    ),
    "confusion": lambda: confusion(
        "e and j", "Counts.", "s", [[30, 2, 1], [3, 9, 4], [0, 5, 1460]], ["fail", "unclear", "pass"]
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def artist() -> Iterator[Artist]:
    drawing = Artist()
    yield drawing
    drawing.close()


def texts(svg: bytes) -> list[str]:
    return ["".join(one.itertext()) for one in root_of(svg).iter(f"{{{NAMES['svg']}}}text")]


def root_of(svg: bytes) -> ElementTree.Element:
    found = fromstring(svg)
    assert isinstance(found, ElementTree.Element)
    return found


@pytest.mark.parametrize("kind", CHARTS)
def test_each_kind_is_drawn_light_and_dark_and_says_what_it_is(artist: Artist, kind: str) -> None:
    chart = CHARTS[kind]()
    for scheme in SCHEMES:
        svg = artist.draw(chart, "svg", scheme)
        root = root_of(svg)
        assert root.get("role") == "img"
        assert root[0].text == chart.title
        assert root[1].text == chart.words
        assert (float(root.get("width", "")), float(root.get("height", ""))) == pytest.approx(
            chart.size, abs=1
        )
        assert set(chart.title.split()) <= set(" ".join(texts(svg)).split())
        assert THEMES[scheme].paper in svg.decode()
        assert THEMES[scheme].ink in svg.decode()
        assert "NaN" not in svg.decode()
        assert "undefined" not in svg.decode()
    png = artist.draw(chart, "png", "light")
    assert png.startswith(b"\x89PNG")
    assert struct.unpack(">II", png[16:24]) == pytest.approx([2 * one for one in chart.size], abs=2)
    assert json.loads(json.dumps(chart.data, allow_nan=False)) == chart.data


def test_what_has_no_figure_has_no_mark_and_labels_are_ours(artist: Artist) -> None:
    assert len(bars().rows) == 3
    assert [row["name"] for row in bars().data] == ["Model A"] * 3
    shown = texts(artist.draw(CHARTS["heat"](), "svg", "light"))
    assert [one for one in shown if one[0].isdecimal()] == ["10.0", "100.0"]
    assert "90.0 %" in texts(artist.draw(CHARTS["profile"](), "svg", "light"))
    assert "1,460" in texts(artist.draw(CHARTS["confusion"](), "svg", "light"))
    legend = texts(artist.draw(bars(), "svg", "light"))
    assert {"alone", "+1 person"} <= set(legend), "a legend names the bars"


def test_a_hostile_name_is_text(artist: Artist) -> None:
    svg = artist.draw(bars(HOSTILE), "svg", "light")
    assert b"<script" not in svg
    named = grouped_bars(HOSTILE, HOSTILE, HOSTILE, [("m", [("p", 0.5, None, None)])])
    drawn = artist.draw(named, "svg", "dark")
    assert root_of(drawn)[0].text == HOSTILE
    assert b"<script" not in drawn


def test_long_names_are_wrapped() -> None:
    assert wrapped("Llama 3.1 405B Instruct", 10) == ["Llama 3.1", "405B", "Instruct"]
    assert wrapped("x" * 30, 10) == ["xxxxxxxxx…"]
    assert wrapped("one two three four", 5, 2) == ["one", "two…"]


def test_a_picture_is_drawn_once_and_by_a_new_process_if_the_old_one_died() -> None:
    artist = Artist()
    try:
        first = artist.draw(bars("one"), "svg", "light")
        process = artist._process
        assert process is not None
        process.kill()
        process.wait()
        assert artist.draw(bars("one"), "svg", "light") is first, "it is kept"
        assert artist._process is process
        assert artist.draw(bars("two"), "svg", "light") != first
        assert artist._process is not process
    finally:
        artist.close()
    assert artist._process is None


def test_nothing_is_fetched_and_what_cannot_be_drawn_says_so(artist: Artist) -> None:
    chart = bars()
    outside = Chart(
        "t", "w", "s", [], (100, 100), dict(chart.spec) | {"data": {"url": "http://127.0.0.1:9/data.json"}}
    )
    with pytest.raises(AppError, match="cannot be drawn"):
        artist.draw(outside, "svg", "light")
    assert artist.draw(chart, "svg", "light"), "and the next one is drawn"


def test_too_many_at_once_are_told_to_wait(artist: Artist) -> None:
    held = [artist._waiting.acquire(blocking=False) for _ in range(MOST_WAITING)]
    try:
        assert all(held)
        with pytest.raises(Busy, match="try again"):
            artist.draw(bars("never drawn before"), "svg", "light")
    finally:
        for _ in held:
            artist._waiting.release()


def test_many_threads_get_their_own_pictures(artist: Artist) -> None:
    names = [f"Model {number}" for number in range(6)]
    found: dict[str, bytes] = {}

    def draw(name: str) -> None:
        found[name] = artist.draw(profile(name, "w", "s", [("a", 0.5, None, name)], []), "svg", "light")

    threads = [threading.Thread(target=draw, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {name: root_of(svg)[0].text for name, svg in found.items()} == {name: name for name in names}
