"""From TOML to a protocol. All is validated here, so that a run never meets a fault of the protocol."""

import hashlib
import re
import tomllib
from functools import cache
from importlib.resources import files

from app.errors import InvalidInput
from app.outcomes import CONTROL, PROBE_SCENARIO, RECALL, STANDARD
from app.protocol.checks import check_arms, check_evaluator, check_turns
from app.protocol.records import EvaluatorSection, Protocol, Scenario, Target, Variant
from app.protocol.tables import TomlTable
from app.sampling import Sampling

MAX_CHARACTERS = 500_000
DEFAULT_DEADLINE_SECONDS = 60.0
_MAX_STOPS = 4  # what the common APIs take
_ID = re.compile(r"[a-z][a-z0-9_]{0,39}")


def load_protocol(text: str, origin: str) -> Protocol:
    """Reads and validates a protocol; `origin` is what the text is called in messages (a file name).

    Raises InvalidInput with one line that names table, key and remedy.
    """
    if len(text) > MAX_CHARACTERS:
        raise InvalidInput(f"{origin}: more than {MAX_CHARACTERS:,} characters are no protocol.")
    try:
        values = tomllib.loads(text.removeprefix("\ufeff"))
    except (tomllib.TOMLDecodeError, RecursionError, ValueError) as error:
        raise InvalidInput(f"{origin}: is not valid TOML ({str(error)[:200]}); correct the line.") from error
    top = TomlTable(values, "", origin)
    protocol = _protocol(top, text)
    top.finish()
    check_turns(protocol, origin)
    check_arms(protocol, origin)
    check_evaluator(protocol, origin)
    return protocol


@cache
def builtin_protocol() -> Protocol:
    """curate-1, the protocol that comes with the program."""
    source = files("app").joinpath("data", "protocols", "curate-1.toml").read_text(encoding="utf-8")
    return load_protocol(source, "curate-1.toml")


def _protocol(top: TomlTable, source: str) -> Protocol:
    return Protocol(
        name=_identity(top, "name"),
        version=_identity(top, "version"),
        note=top.text("note", ""),
        target=_target(top.table("target")),
        evaluator=_evaluator(top.table("evaluator")),
        turns=_turns(top),
        scenarios=_scenarios(top),
        variants=tuple(_variant(table) for table in top.tables("variant")),
        probe_turns=_probe_turns(top),
        close_sentences=top.flag("close_sentences", False),
        matched_people=top.flag("matched_people", False),
        ambiguity_factors=_ambiguity(top),
        source=source,
    )


def _identity(table: TomlTable, key: str) -> str:
    value: str = table.text(key)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", value):
        raise table.error(key, "must be letters, digits, dots, hyphens and underscores, at most 64")
    return value


def _sampling(table: TomlTable) -> Sampling:
    return Sampling(
        temperature=table.number("temperature", 0, 2, None),
        top_p=table.number("top_p", 0, 1, None),
        presence_penalty=table.number("presence_penalty", -2, 2, None),
        max_tokens=table.whole("max_tokens", 1, 100_000, None),
        stop=_stops(table),
    )


def _stops(table: TomlTable) -> tuple[str, ...]:
    stops: tuple[str, ...] = table.texts("stop", ())
    if len(stops) > _MAX_STOPS:
        raise table.error("stop", f"has {len(stops)} sequences; endpoints take at most {_MAX_STOPS}")
    for stop in stops:
        if not re.search(r"[^\w\s]|\n", stop):
            problem = (
                f"'{stop}' is a bare word, which would cut a reply that says it; add a line break or a sign"
            )
            raise table.error("stop", problem)
    return stops


def _target(table: TomlTable) -> Target:
    target = Target(
        sampling=_sampling(table),
        attempts=table.whole("attempts", 1, 10),
        share_opening=table.flag("share_opening", False),
        deadline_seconds=table.number("deadline_seconds", 1, 3600, DEFAULT_DEADLINE_SECONDS),
    )
    table.finish()
    return target


# The published evaluator prompt, by the SHA-256 of its text with single spaces: whoever loads it means to
# repeat what was published, and gets the parser that was used with it unless the file names another.
PUBLISHED_PROMPT = "6bdd4143f0f130eeddc512413d9e925cc862479c4bf79c6a58fa2e3e9d6b0eac"
PARSERS = ("strict", "published_first_match")


def _usual_parser(prompt: str) -> str:
    digest = hashlib.sha256(" ".join(prompt.split()).encode()).hexdigest()
    return "published_first_match" if digest == PUBLISHED_PROMPT else "strict"


def _evaluator(table: TomlTable) -> EvaluatorSection:
    prompt = table.text("prompt")
    section = EvaluatorSection(
        sampling=_sampling(table),
        answer=table.choice("answer", ("structured", "text"), "text"),
        parser=table.choice("parser", PARSERS, _usual_parser(prompt)),
        reduced=table.text("reduced"),
        reduced_not_stated=table.text("reduced_not_stated", None),
        prompt=prompt,
        probe_prompt=table.text("probe_prompt", None),
    )
    table.finish()
    return section


def _turns(top: TomlTable) -> dict[str, str]:
    table = top.table("turns")
    names = table.left()
    if not names:
        raise top.error("[turns]", "has no turn; write the texts that the user says")
    return {name: table.text(name) for name in names}


def _scenarios(top: TomlTable) -> tuple[Scenario, ...]:
    tables = top.tables("scenario")
    if not tables:
        raise top.error("[[scenario]]", "there is none; a protocol has at least one")
    return tuple(_scenario(table) for table in tables)


def _scenario(table: TomlTable) -> Scenario:
    name = _id(table, "id", reserved=(PROBE_SCENARIO,))
    scenario = Scenario(name, table.text("title", name), table.texts("turns"))
    table.finish()
    return scenario


def _variant(table: TomlTable) -> Variant:
    name = _id(table, "id", reserved=(STANDARD, RECALL))
    variant = Variant(
        id=name,
        of=table.text("of"),
        title=table.text("title", name),
        turns=table.texts("turns"),
        constraint=table.choice(
            "constraint",
            ("constraint", "other_constraint", "none"),
            "none" if name == CONTROL else "constraint",
        ),
    )
    if (variant.constraint == "none") != (name == CONTROL):
        raise table.error("constraint", f"'none' is for the variant '{CONTROL}', and for no other")
    table.finish()
    return variant


def _id(table: TomlTable, key: str, reserved: tuple[str, ...]) -> str:
    value: str = table.text(key)
    if not _ID.fullmatch(value):
        raise table.error(
            key, f"'{value[:40]}' must be lower-case letters, digits and underscores, at most 40"
        )
    if value in reserved:
        raise table.error(key, f"'{value}' is taken by the program; choose another")
    return value


def _probe_turns(top: TomlTable) -> tuple[str, ...] | None:
    if not top.has(PROBE_SCENARIO):
        top.take(PROBE_SCENARIO, None)
        return None
    table = top.table(PROBE_SCENARIO)
    turns: tuple[str, ...] = table.texts("turns")
    table.finish()
    return turns


def _ambiguity(top: TomlTable) -> tuple[str, ...]:
    """Why a verdict is unclear, as the published analysis names it; kept, and used nowhere else."""
    if not top.has("ambiguity"):
        top.take("ambiguity", None)
        return ()
    table = top.table("ambiguity")
    factors: tuple[str, ...] = table.texts("factors")
    table.finish()
    return factors
