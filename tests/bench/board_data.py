"""A board of many models, made by a seed: the first run is planned as any, the others are copies in SQL."""

from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, Engine, text

from app import models
from app.db import open_session
from app.leaderboard.boards import recompute
from app.leaderboard.entries import entry_report, own_key
from app.runs.control import find_run
from tests.factories import Shop

CLONE_ENDPOINTS = text("""
INSERT INTO endpoint (account_id, name, provider, base_url, model, private_allowed)
SELECT e.account_id, s.name, e.provider, e.base_url, s.name, e.private_allowed
FROM endpoint e, (SELECT 'model-' || to_char(n, 'FM000') AS name FROM generate_series(1, :more) n) s
WHERE e.id = :endpoint
""")
CLONE_RUNS = text("""
INSERT INTO run (account_id, name, benchmark_id, protocol_id, endpoint_id, evaluator_id, status, provenance,
                 selection, seeds, concurrency, started_at, finished_at)
SELECT r.account_id, e.name, r.benchmark_id, r.protocol_id, e.id, r.evaluator_id, 'finished', r.provenance,
       r.selection, r.seeds, r.concurrency, now(), now()
FROM run r, endpoint e WHERE r.id = :run AND e.name LIKE 'model-%' AND e.id <> r.endpoint_id ORDER BY e.id
""")
CLONE_EVALUATORS = text("""
INSERT INTO run_evaluator (run_id, evaluator_id)
SELECT r.id, e.evaluator_id FROM run r, run_evaluator e WHERE e.run_id = :run AND r.id > :run
""")
CLONE_GROUPS = text("""
INSERT INTO run_group (run_id, case_id, seed, position, done)
SELECT r.id, g.case_id, g.seed, g.position, true
FROM run r, run_group g WHERE g.run_id = :run AND r.id > :run
""")
CLONE_CONVERSATIONS = text("""
INSERT INTO conversation (run_id, group_id, case_id, scenario, variant, category, seed, state, turns_planned,
                          turns_done, "constraint", request, response, finished_at)
SELECT r.id, g.id, c.case_id, c.scenario, c.variant, c.category, c.seed, c.state, c.turns_planned,
       c.turns_done, c."constraint", c.request, c.response, now()
FROM run r
JOIN run_group g ON g.run_id = r.id
JOIN conversation c ON c.run_id = :run AND c.case_id = g.case_id AND c.seed = g.seed
WHERE r.id > :run
""")
ANSWER = text("""
UPDATE conversation SET state = 'answered', turns_done = turns_planned, "constraint" = 'I must not.',
    request = 'Should I?', response = 'You told me that you must not, so I would not.', finished_at = now()
WHERE run_id = :run
""")
# Passes fall from model to model and from scenario to scenario; who passes what hangs on the seed alone.
RATE = text("""
INSERT INTO verdict (conversation_id, evaluator_id, state, rating, acknowledged, explanation, mode, calls,
                     retries)
SELECT s.id, :evaluator, 'rated',
    CASE WHEN s.u < s.passes THEN 2 WHEN s.u < s.passes + 60 THEN 1 ELSE 0 END, s.u < s.passes + 60,
    'By the seed.', 'rules', 0, 0
FROM (
    SELECT c.id, 950 - 3 * (r.id - :first) - 25 * right(c.scenario, 1)::int AS passes,
        abs(hashtextextended((r.id - :first) || k.key || c.scenario || c.seed, :seed) % 1000) AS u
    FROM conversation c JOIN run r ON r.id = c.run_id JOIN "case" k ON k.id = c.case_id WHERE r.id >= :first
) s
""")
FINISH = text("""
UPDATE run SET status = 'finished', started_at = now(), finished_at = now() WHERE id = :run
""")
COUNT = text("SELECT count(*) FROM verdict")
TABLES = ("conversation", "verdict", "run_group", "run", "endpoint")


@dataclass(frozen=True)
class Filled:
    """The first of the runs, and how many verdicts there are."""

    first: models.Run
    verdicts: int


def fill(shop: Shop, models_: int, seeds: int, seed: int, tell: Callable[[str], None]) -> Filled:
    """Runs of so many models over every case, scenario and seed, all rated and on the board."""
    run = shop.submit("https://models.example.com/v1", model="model-000", seeds=tuple(range(1, seeds + 1)))
    with shop.engine.begin() as connection:
        connection.execute(text("SET LOCAL synchronous_commit = off"))
        connection.execute(ANSWER, {"run": run.id})
        connection.execute(FINISH, {"run": run.id})
        connection.execute(CLONE_ENDPOINTS, {"endpoint": run.endpoint_id, "more": models_ - 1})
        for statement in (CLONE_RUNS, CLONE_EVALUATORS, CLONE_GROUPS, CLONE_CONVERSATIONS):
            connection.execute(statement, {"run": run.id})
        tell("conversations are stored")
        values = {"evaluator": run.evaluator_id, "first": run.id, "seed": seed}
        connection.execute(RATE, values)
        verdicts = connection.execute(COUNT).scalar_one()
    tell(f"{verdicts:,} verdicts are stored")
    _analyse(shop.engine)
    _put_up(shop.engine, run.id)
    tell("the board is computed")
    return Filled(run, verdicts)


def _analyse(engine: Engine) -> None:
    with engine.begin() as connection:
        for table in TABLES:
            connection.execute(text(f'ANALYZE "{table}"'))  # what autovacuum does in time


def _put_up(engine: Engine, first: int) -> None:
    """Entries as publishing makes them, the board computed once at the end."""
    with open_session(engine) as session:
        numbers = session.execute(text("SELECT id FROM run WHERE id >= :first ORDER BY id"), {"first": first})
        run = None
        for number in numbers.scalars().all():
            run = find_run(session, str(number))
            session.add(
                models.BoardEntry(
                    run_id=run.id,
                    evaluator_id=run.evaluator_id,
                    benchmark_id=run.benchmark_id,
                    report=entry_report(session, run, run.benchmark_id),
                )
            )
            session.commit()
        assert run is not None
        recompute(session, own_key(run))
        session.commit()


def more_conversations(connection: Connection, run: models.Run) -> list[int]:
    """Those of a run that was only planned, answered and waiting for their verdict."""
    connection.execute(ANSWER, {"run": run.id})
    found = connection.execute(
        text("SELECT id FROM conversation WHERE run_id = :run ORDER BY id"), {"run": run.id}
    )
    return list(found.scalars())
