"""Import → export → import gives the same content, whatever the texts are."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.benchmark import Benchmark, builtin_benchmark, canary, export_benchmark, import_benchmark
from app.errors import InvalidInput
from app.outcomes import Region
from app.tables import FORMATS
from app.text import clean, is_blank, normalise
from tests.benchmark_help import make_benchmark, make_case, make_distractors, make_probe
from tests.test_tables_writing import AWKWARD

WORDS_FOR_NOTHING = {"nan", "none", "null", "nil", "n/a", "#n/a", "<na>", "nat", "undefined"}


def usable(text: str) -> bool:
    """What an import accepts as it stands; all else it refuses or replaces, so no benchmark holds it."""
    return clean(text)[0] == text and not is_blank(text) and normalise(text) not in WORDS_FOR_NOTHING


TEXTS = st.text(min_size=1, max_size=60).map(lambda text: clean(text)[0]).filter(usable)


def exported(benchmark: Benchmark, folder: Path, form: str) -> Benchmark:
    written = export_benchmark(benchmark, folder, form)
    paths = {path.stem: path for path in written if path.stem != "LICENSE"}
    result = import_benchmark("again", **paths)
    assert not result.errors, result.errors
    assert result.benchmark is not None
    return result.benchmark


@pytest.mark.parametrize("form", FORMATS)
def test_the_built_in_benchmark_comes_back(form: str, tmp_path: Path) -> None:
    benchmark = builtin_benchmark()
    again = exported(benchmark, tmp_path, form)
    assert again == replace(benchmark, name="again")
    assert again.content_hash == benchmark.content_hash


def test_the_licence_and_the_canary_go_with_the_built_in_benchmark_only(tmp_path: Path) -> None:
    export_benchmark(builtin_benchmark(), tmp_path / "own", "csv")
    text = (tmp_path / "own" / "LICENSE.txt").read_text(encoding="utf-8")
    assert "CC BY 4.0" in text
    assert canary() in text
    export_benchmark(make_benchmark(), tmp_path / "theirs", "csv")
    assert not (tmp_path / "theirs" / "LICENSE.txt").exists()


@pytest.mark.parametrize("form", FORMATS)
def test_awkward_texts_come_back(form: str, tmp_path: Path) -> None:
    texts = [text for text in AWKWARD if usable(text)]
    assert len(texts) > 20
    benchmark = make_benchmark(
        cases=tuple(
            make_case(f"c-{n}", constraint=text, preference_b=text, rationale=text, person_b=text)
            for n, text in enumerate(texts)
        ),
        facts=tuple(
            replace(fact, text=text)
            for fact, text in zip(make_distractors("fact", len(texts)), texts, strict=True)
        ),
        probes=tuple(make_probe(f"p-{n}", request=text) for n, text in enumerate(texts)),
    )
    clustered = replace(benchmark, cases=tuple(replace(case, cluster="one") for case in benchmark.cases))
    assert exported(clustered, tmp_path, form).content_hash == clustered.content_hash


@pytest.mark.parametrize("form", FORMATS)
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    texts=st.lists(TEXTS, min_size=6, max_size=6),
    tags=st.sets(st.from_regex(r"[a-z0-9][a-z0-9_-]{0,9}", fullmatch=True)),
    region=st.sampled_from([None, *Region]),
)
def test_any_content_comes_back(
    form: str, texts: list[str], tags: set[str], region: Region | None, tmp_path: Path
) -> None:
    constraint, preference, request, rationale, fact, strong = texts
    case = make_case(
        constraint=constraint,
        preference_c=preference,
        request_alone_neutral=request,
        rationale=rationale,
        tags=tuple(sorted(tags)),
        mention="implied",
        region=region,
    )
    benchmark = make_benchmark(
        cases=(case,),
        facts=(replace(make_distractors("fact", 1)[0], text=fact),),
        preferences=make_distractors("preference", 4, strong=strong),
    )
    again = exported(benchmark, tmp_path, form)
    assert again == replace(benchmark, name="again")


@pytest.mark.parametrize("form", FORMATS)
def test_optional_columns_are_written_only_where_used(form: str, tmp_path: Path) -> None:
    bare = make_case(other_constraint=None, preference_user=None, person_b=None, person_c=None, person_d=None)
    benchmark = Benchmark("bare", (bare,))
    paths = export_benchmark(benchmark, tmp_path, form)
    assert [path.name for path in paths] == [f"cases.{form}"]
    assert exported(benchmark, tmp_path, form).content_hash == benchmark.content_hash


def test_the_hash_is_of_the_content_alone() -> None:
    benchmark = make_benchmark()
    first, second = benchmark.cases
    renumbered = tuple(replace(case, number=case.number + 7) for case in benchmark.cases)
    same = replace(benchmark, name="other", cases=renumbered)
    assert same.content_hash == benchmark.content_hash
    for changed in (
        replace(benchmark, cases=(second, first)),
        replace(benchmark, cases=(replace(first, split="private"), second)),
        replace(benchmark, cases=(replace(first, region=Region.ANYWHERE), second)),
        replace(benchmark, facts=benchmark.facts[1:]),
        replace(benchmark, probes=()),
    ):
        assert changed.content_hash != benchmark.content_hash


def test_a_benchmark_without_regions_keeps_the_hash_that_it_had_before_there_were_any() -> None:
    assert make_benchmark().content_hash == "8e37a40d286e8a9cf36e38dfb688c7d624028858f2bf865675d64a5f71d2a7d1"


def test_only_known_forms_and_real_folders(tmp_path: Path) -> None:
    with pytest.raises(InvalidInput, match="xlsx or csv"):
        export_benchmark(make_benchmark(), tmp_path, "ods")
    (tmp_path / "file").touch()
    with pytest.raises(InvalidInput, match="is no folder"):
        export_benchmark(make_benchmark(), tmp_path / "file", "csv")
