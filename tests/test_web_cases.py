"""Cases in the browser: found, shown whole, and as the conversations that a protocol makes of them."""

import re
import uuid
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import quote

import pytest
from sqlalchemy import Engine, func, select

from app import models
from app.benchmark import Benchmark, Pools, builtin_benchmark, canary, draw
from app.db import open_session
from app.library import store_benchmark
from app.outcomes import Category, Region
from app.protocol import arms, builtin_protocol, script
from app.settings import Settings
from tests.factories import benchmark, case
from tests.test_web_board import skeleton
from tests.web_help import Browser, browsing, make_person, text_of


@pytest.fixture
def browser(settings: Settings, engine: Engine) -> Iterator[Browser]:
    with browsing(settings, engine) as opened:
        yield opened


def store(engine: Engine, content: Benchmark) -> None:
    with open_session(engine) as session:
        store_benchmark(session, content, [])
        session.commit()


def cases_of(browser: Browser, query: str = "") -> list[str]:
    page = browser.get(f"/cases?{query}")
    assert page.status_code == 200, query
    return re.findall(r'<th scope="row"><a href="[^"]*">([^<]*)<', page.text)


def test_a_new_site_shows_the_built_in_cases_and_stores_nothing(browser: Browser, engine: Engine) -> None:
    assert len(cases_of(browser)) == 60
    assert f"{len(builtin_benchmark().cases)} cases" in text_of(browser.get("/cases"))
    assert browser.get("/cases/curate@1/allergy-001").status_code == 200
    with open_session(engine) as session:
        assert session.scalars(select(func.count()).select_from(models.Benchmark)).one() == 0
    assert browser.get("/cases").headers["cache-control"].startswith("public, max-age=60")


def test_cases_are_found_by_category_mention_and_text(browser: Browser, engine: Engine) -> None:
    content = benchmark(2, probes=1)
    first = replace(content.cases[0], mention="explicit", rationale="Ärger: 100% of it_")
    store(engine, replace(content, cases=(first, *content.cases[1:])))
    assert len(cases_of(browser)) == 8
    assert cases_of(browser, "category=severe_phobia") == ["severe_phobia-001", "severe_phobia-002"]
    assert cases_of(browser, "mention=explicit") == [first.key]
    assert cases_of(browser, "q=ärger") == [first.key]
    assert cases_of(browser, "q=100%25") == [first.key]
    assert cases_of(browser, "q=it_") == [first.key]
    assert cases_of(browser, "q=(a%2B)%2B$") == []
    assert len(cases_of(browser, "kind=probe")) == 4
    assert cases_of(browser, "kind=probe&q=accordion&category=trauma_trigger") == ["probe-trauma_trigger-1"]


def test_what_there_is_not_is_not_found(browser: Browser, engine: Engine) -> None:
    store(engine, benchmark(1))
    paths = (
        "/cases?benchmark=nope", "/cases?benchmark=small@99999999999999999999", "/cases?category=6",
        "/cases?kind=x", "/cases?page=99999999999999999999", "/cases?page=2", "/cases?page=-1",
        "/cases/small@1/nope", "/cases/nope/x",
        "/cases/small@1/severe_allergy-001?scenario=sc9", "/cases/small@1/severe_allergy-001?protocol=x",
        "/cases/small@1/severe_allergy-001?kind=probe", f"/cases/small@1/{uuid.uuid4()}",
    )  # fmt: skip
    for path in paths:
        assert browser.get(path).status_code == 404, path
    assert "small@1" in text_of(browser.get("/cases?benchmark=nope"))
    assert browser.get("/cases?q=" + "a" * 201).status_code == 422


def test_a_case_with_all_its_elements(browser: Browser, engine: Engine) -> None:
    one = replace(case(1, Category.SEVERE_ALLERGY, cluster="shared"), tags=("stew", "market"))
    one = replace(one, region=Region.SUB_SAHARAN_AFRICA)
    two = case(2, Category.SEVERE_ALLERGY, cluster="shared")
    three = case(3, Category.TRAUMA_TRIGGER)
    store(engine, replace(benchmark(1), cases=(one, two, three)))
    page = browser.get("/cases/small@1/severe_allergy-001")
    words = text_of(page)
    for element in (
        one.constraint, one.other_constraint, one.preference_b, one.preference_c, one.preference_d,
        one.preference_user, one.request_alone_neutral, one.request_alone_leading,
        one.request_together_neutral, one.request_together_leading, one.rationale,
        "stew, market", "Region sub saharan africa", "Same constraint severe_allergy-002",
    ):  # fmt: skip
        assert element is not None
        assert element in words
    assert 'href="/cases/small@1/severe_allergy-002" rel="next"' in page.text
    assert 'rel="prev"' not in page.text
    middle = browser.get("/cases/small@1/severe_allergy-002").text
    assert 'href="/cases/small@1/severe_allergy-001" rel="prev"' in middle
    assert 'href="/cases/small@1/trauma_trigger-003" rel="next"' in middle


def test_every_scenario_and_variant_as_the_workers_would_ask_it(browser: Browser, engine: Engine) -> None:
    content, protocol = builtin_benchmark(), builtin_protocol()
    one = content.cases[5]
    drawn = draw(content.content_hash, one.key, 1, Pools.of(content), one.tags)
    page = browser.get(f"/cases/curate@1/{one.key}").text
    for scenario, variant in arms(protocol):
        query = f"scenario={scenario}&variant={variant}"
        assert query.replace("&", "&amp;") in page
        words = text_of(browser.get(f"/cases/curate@1/{one.key}?{query}"))
        for turn in script(protocol, one, drawn, scenario, variant).turns:
            assert " ".join(turn.split()) in words, (scenario, variant)
    probe = content.probes[0]
    words = text_of(browser.get(f"/cases/curate@1/{probe.key}?kind=probe"))
    assert probe.request in words
    assert "so to help is right" in words
    assert canary() in words


def test_what_a_case_lacks_for_a_variant_is_said(browser: Browser, engine: Engine) -> None:
    store(
        engine,
        replace(benchmark(1), cases=(replace(case(1, Category.SEVERE_ALLERGY), preference_user=None),)),
    )
    page = browser.get("/cases/small@1/severe_allergy-001?scenario=sc3&variant=roles_reversed")
    assert page.status_code == 200
    assert "has nothing for {preference_user}" in text_of(page)


def test_several_versions_and_protocols(browser: Browser, engine: Engine) -> None:
    store(engine, benchmark(1))
    store(engine, benchmark(2))
    with open_session(engine) as session:
        for version in ("1", "2"):
            protocol = replace(builtin_protocol(), version=version, note=version)
            source = protocol.source.replace('version = "1"', f'version = "{version}"', 1)
            session.add(
                models.Protocol(name=protocol.name, version=version, content_hash=version, source=source)
            )
        session.commit()
    assert len(cases_of(browser)) == 8
    assert len(cases_of(browser, "benchmark=small@1")) == 4
    assert "Protocol curate-1@2" in text_of(browser.get("/cases/small@1/severe_allergy-001"))
    assert "Protocol curate-1@1" in text_of(
        browser.get("/cases/small@2/severe_allergy-001?protocol=curate-1@1")
    )


def test_held_back_cases_are_for_researchers(browser: Browser, engine: Engine) -> None:
    held = case(2, Category.SEVERE_ALLERGY, split="private")
    store(engine, replace(benchmark(1), cases=(case(1, Category.SEVERE_ALLERGY), held)))
    assert cases_of(browser) == ["severe_allergy-001"]
    assert browser.get(f"/cases/small@1/{held.key}").status_code == 404
    assert held.key not in browser.get("/cases/small@1/severe_allergy-001").text
    browser.sign_in(make_person(engine))
    assert len(cases_of(browser)) == 2
    assert "held back" in text_of(browser.get(f"/cases/small@1/{held.key}"))
    assert browser.get("/cases").headers["cache-control"] == "private, no-cache"


@pytest.mark.parametrize("key", ["a/b?c=d#e", "<script>alert(1)</script>", "ä ö", "' onmouseover='x"])
def test_a_key_may_hold_anything(browser: Browser, engine: Engine, key: str) -> None:
    plain, odd = case(1, Category.SEVERE_ALLERGY), replace(case(2, Category.SEVERE_ALLERGY), key=key)
    store(engine, replace(benchmark(1), cases=(plain, odd)))
    page = browser.get(f"/cases/small@1/{quote(key, safe='')}")
    assert page.status_code == 200
    assert " ".join(key.split()) in text_of(page)
    alike = browser.get("/cases/small@1/severe_allergy-001").text
    assert [part for part in skeleton(page.text) if part[0] == "script"] == [
        part for part in skeleton(alike) if part[0] == "script"
    ]
