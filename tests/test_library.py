"""Benchmarks and protocols as stored: versions, hashes, and found again by name."""

from dataclasses import replace

import pytest
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app import models
from app.benchmark import builtin_benchmark
from app.errors import Conflict, InvalidInput, NotFound
from app.library import (
    find_benchmark,
    find_protocol,
    load_benchmark,
    load_stored_protocol,
    split_reference,
    store_benchmark,
    store_protocol,
)
from app.outcomes import Region
from app.protocol import builtin_protocol, load_protocol
from tests.factories import benchmark


def test_a_stored_benchmark_is_the_one_that_was_given(session: Session) -> None:
    given = builtin_benchmark()
    row, new = store_benchmark(session, given, ["a warning"])
    assert new
    assert (row.name, row.version, row.content_hash) == (given.name, 1, given.content_hash)
    assert row.warnings == ["a warning"]
    session.expire_all()
    loaded = load_benchmark(session, row)
    assert loaded == given
    assert loaded.content_hash == row.content_hash


@pytest.mark.parametrize("words", ['it\'s "x"', "{person} {} {{", "\\u0041 \\", "花生 🥜 \u2028", "=1+1"])
def test_any_text_of_a_case_comes_back(session: Session, words: str) -> None:
    of = benchmark()
    given = replace(of, cases=(replace(of.cases[0], constraint=words, tags=(words, "b")), *of.cases[1:]))
    row, _ = store_benchmark(session, given, [])
    session.expire_all()
    assert load_benchmark(session, row).cases[0] == given.cases[0]


def test_regions_are_stored_beside_the_content(session: Session) -> None:
    of = benchmark(1)
    given = replace(of, cases=(replace(of.cases[0], region=Region.OCEANIA), *of.cases[1:]))
    row, _ = store_benchmark(session, given, [])
    session.expire_all()
    stored = select(models.Case.region).filter_by(benchmark_id=row.id).order_by(models.Case.id)
    assert session.scalars(stored).all() == ["oceania", None, None, None]
    assert load_benchmark(session, row) == given


def test_the_same_content_is_the_same_version(session: Session) -> None:
    first, new = store_benchmark(session, benchmark(), [])
    again, anew = store_benchmark(session, benchmark(), [])
    assert (first.id, new, anew) == (again.id, True, False)
    cases = select(func.count()).select_from(models.Case).filter_by(benchmark_id=first.id)
    assert session.scalar(cases) == 8


def test_other_content_is_the_next_version(session: Session) -> None:
    store_benchmark(session, benchmark(2), [])
    row, _ = store_benchmark(session, benchmark(3), [])
    assert row.version == 2
    back, _ = store_benchmark(session, benchmark(2), [])
    assert back.version == 1, "content that was there before has its version still"
    assert find_benchmark(session, "small").version == 2
    assert find_benchmark(session, "small@1").id == back.id
    assert len(load_benchmark(session, find_benchmark(session, "small@2")).cases) == 12


@pytest.mark.parametrize("reference", ["", "@1", "small@", "@"])
def test_half_a_reference_is_refused(reference: str) -> None:
    with pytest.raises(InvalidInput, match="NAME or NAME@VERSION"):
        split_reference(reference)


@pytest.mark.parametrize("reference", ["nothing", "small@9", "small@999999999"])
def test_what_is_not_there_is_said_with_what_is(session: Session, reference: str) -> None:
    store_benchmark(session, benchmark(), [])
    with pytest.raises(NotFound, match=r"small@1.*curate benchmark import"):
        find_benchmark(session, reference)


@pytest.mark.parametrize("version", ["1.0", "v1", "-1", "²", " 1", str(10**30)])
def test_versions_of_benchmarks_are_whole_numbers(session: Session, version: str) -> None:
    store_benchmark(session, benchmark(), [])
    with pytest.raises(InvalidInput, match="whole numbers"):
        find_benchmark(session, f"small@{version}")


def test_a_stored_protocol_is_the_one_that_was_given(session: Session) -> None:
    row, new = store_protocol(session, builtin_protocol())
    assert new
    assert load_stored_protocol(row) == builtin_protocol()
    assert row.content_hash == load_stored_protocol(row).content_hash
    again, anew = store_protocol(session, builtin_protocol())
    assert (again.id, anew) == (row.id, False)


def changed_protocol(version: str) -> str:
    source = builtin_protocol().source.replace("temperature = 0.7", "temperature = 0.8")
    return source.replace('version = "1"', f'version = "{version}"', 1)


def test_a_changed_protocol_needs_a_version_of_its_own(session: Session) -> None:
    store_protocol(session, builtin_protocol())
    with pytest.raises(Conflict, match="a version of its own"):
        store_protocol(session, load_protocol(changed_protocol("1"), "changed.toml"))
    row, new = store_protocol(session, load_protocol(changed_protocol("2"), "changed.toml"))
    assert new
    assert find_protocol(session, "curate-1").id == row.id
    assert find_protocol(session, "curate-1@1").id != row.id


def test_an_unknown_protocol_is_said_with_the_known(session: Session) -> None:
    store_protocol(session, builtin_protocol())
    for reference in ("nothing", "curate-1@9"):
        with pytest.raises(NotFound, match=r"Known: curate-1.*curate protocol import"):
            find_protocol(session, reference)
