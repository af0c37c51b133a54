"""Who may import what, and other rules that hold for every file."""

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from app.settings import PROJECT_ROOT
from app.wake import DRIFT_TASK, DRIVE_TASK

LONGEST_FILE = 400

# What can be a function of its arguments is one: no database, no network, no clock of its own.
PURE = (
    "app.outcomes", "app.errors", "app.prices", "app.sampling", "app.text", "app.observations",
    "app.reason_shares", "app.rates", "app.recall_rates", "app.statistics", "app.human_rates",
    "app.protocol", "app.evaluation", "app.runs.planning", "app.benchmark.records", "app.benchmark.drawing",
    "app.studies.drawing", "app.studies.topics",
    "app.agreement",
)  # fmt: skip
# A benchmark's records are taken by the package's front door, its headers where they are listed.
FRONT_DOORS = ("app.benchmark", "app.benchmark.columns")
WEB = ("app.web", "app.main", "app.serving")
DOMAIN = (
    "app.runs",
    "app.studies",
    "app.leaderboard",
    "app.library",
    "app.endpoints",
    "app.models",
    "app.db",
)
WORLD = ("sqlalchemy", "psycopg", "aiohttp", "celery", "kombu", "redis", "asyncio", "socket", "subprocess")


@cache
def sources() -> dict[str, Path]:
    """Module name -> file, for all of ours that is shipped."""
    return {
        module_of(path): path
        for top in ("app", "workers")
        for path in sorted((PROJECT_ROOT / top).rglob("*.py"))
    }


def module_of(path: Path) -> str:
    parts = path.relative_to(PROJECT_ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@cache
def tree(module: str) -> ast.Module:
    return ast.parse(sources()[module].read_text())


@cache
def imports(module: str) -> frozenset[str]:
    """Everything that a module imports, inside functions too; a name that is a module counts as itself."""
    found: set[str] = set()
    for node in ast.walk(tree(module)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: relative imports hide who is meant"
            origin = node.module or ""
            found |= {
                name if (name := f"{origin}.{alias.name}") in sources() else origin for alias in node.names
            }
    return frozenset(found)


def within(module: str, *packages: str) -> bool:
    return any(module == package or module.startswith(f"{package}.") for package in packages)


def offenders(*importers: str, imported: tuple[str, ...], but: tuple[str, ...] = ()) -> list[str]:
    """`module imports module` for all of the importers (all of ours without any) outside `but`."""
    return [
        f"{module} imports {name}"
        for module in sources()
        if (not importers or within(module, *importers)) and not within(module, *but)
        for name in sorted(imports(module))
        if within(name, *imported)
    ]


def test_the_search_sees_imports() -> None:
    """The helper that the rules below stand on."""
    assert "app.runs.driving" in imports("workers.driver")
    assert "workers.tasks" in imports("workers.celery_app"), "imports inside functions count"
    assert offenders("workers.driver", imported=("uvloop",)) == ["workers.driver imports uvloop"]
    assert len(sources()) > 100


def test_words_and_errors_import_nothing_of_ours() -> None:
    assert offenders("app.outcomes", "app.errors", imported=("app", "workers")) == []


def test_settings_import_errors_only() -> None:
    assert {name for name in imports("app.settings") if within(name, "app")} == {"app.errors"}


def test_pure_modules_import_pure_modules_only() -> None:
    ours = [
        f"{module} imports {name}"
        for module in sources()
        if within(module, *PURE)
        for name in imports(module)
        if within(name, "app", "workers") and not within(name, *PURE) and name not in FRONT_DOORS
    ]
    assert ours == []
    assert offenders(*PURE, imported=WORLD) == []


def test_pure_modules_load_without_database_and_network() -> None:
    """Seen from outside: what they import in turn opens no door either."""
    modules = [module for module in sources() if within(module, *PURE) and not within(module, "app.runs")]
    code = f"import sys\nfor name in {modules!r}: __import__(name)\nprint(sorted(sys.modules))"
    loaded = ast.literal_eval(python(code))
    assert {"app.rates", "app.evaluation", "app.protocol"} <= set(loaded)
    assert [name for name in loaded if within(name, "sqlalchemy", "aiohttp", "celery", "psycopg")] == []


def test_the_application_never_imports_its_workers() -> None:
    assert offenders("app", imported=("workers",)) == []


def test_workers_import_neither_pages_nor_commands() -> None:
    assert offenders("workers", imported=(*WEB, "app.cli")) == []


def test_only_commands_import_commands() -> None:
    assert offenders(imported=("app.cli", "typer", "rich"), but=("app.cli",)) == []


def test_domain_modules_import_neither_broker_nor_pages() -> None:
    assert (
        offenders(*DOMAIN, imported=("app.wake", "app.web", "app.main", "app.embedded", "app.simulator"))
        == []
    )


def test_runs_do_not_know_the_board() -> None:
    assert offenders("app.runs", imported=("app.leaderboard", "app.studies")) == []


def test_celery_stands_in_two_places() -> None:
    assert offenders(imported=("celery", "kombu"), but=("app.wake", "workers")) == []


def test_fastapi_stands_in_the_web_part() -> None:
    assert offenders(imported=("fastapi", "starlette", "jinja2"), but=WEB) == []


def test_pages_hold_no_sql() -> None:
    assert offenders(*WEB, imported=("sqlalchemy",)) == []


def test_one_http_client() -> None:
    allowed = ("app.chat", "app.simulator", "app.local_model")
    assert offenders(imported=("aiohttp", "httpx", "requests", "openai"), but=allowed) == []


@pytest.mark.parametrize(
    "module", ["app.runs", "app.leaderboard", "app.library", "app.endpoints", "app.studies"]
)
def test_domain_functions_leave_the_commit_to_their_caller(module: str) -> None:
    found = [
        f"{name}:{node.lineno}"
        for name in sources()
        if within(name, module)
        for node in ast.walk(tree(name))
        if isinstance(node, ast.Attribute) and node.attr in ("commit", "rollback")
    ]
    assert found == []


def test_files_stay_readable() -> None:
    lengths = {module: len(path.read_text().splitlines()) for module, path in sources().items()}
    assert {module: lines for module, lines in lengths.items() if lines > LONGEST_FILE} == {}


def test_tasks_check_act_and_record_in_ten_lines() -> None:
    tasks = [node for node in tree("workers.tasks").body if isinstance(node, ast.FunctionDef)]
    assert tasks
    assert [node.name for node in tasks if (node.end_lineno or 0) - node.lineno >= 10] == []


def test_nothing_prints_but_programs() -> None:
    programs = ("app.cli", "app.simulator.__main__", "app.embedded", "app.local_model")
    found = [
        f"{module}:{node.lineno}"
        for module in sources()
        if not within(module, *programs)
        for node in ast.walk(tree(module))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"
    ]
    assert found == []


# --- no verdict by default ---

VERDICT_WORDS = frozenset({"rating", "verdict", "outcome", "acknowledged", "recommendation"})


def defaults(code: ast.Module) -> Iterator[tuple[str, ast.expr]]:
    """Defaults of parameters, fields and look-ups, by name."""
    for node in ast.walk(code):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from _parameter_defaults(node.args)
        elif isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name) and field.value:
                    yield field.target.id, field.value
        elif isinstance(node, ast.Call):
            yield from _looked_up(node)


def _parameter_defaults(arguments: ast.arguments) -> Iterator[tuple[str, ast.expr]]:
    positional = [*arguments.posonlyargs, *arguments.args]
    given = arguments.defaults
    yield from (
        (one.arg, value) for one, value in zip(positional[-len(given) :], given, strict=False) if given
    )
    for one, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        if value is not None:
            yield one.arg, value


def _looked_up(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """`x.get("rating", 0)` and `getattr(x, "rating", 0)`."""
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    place = {"get": 0, "pop": 0, "setdefault": 0, "getattr": 1}.get(name)
    if place is not None and len(call.args) == place + 2:
        key, default = call.args[place:]
        if isinstance(key, ast.Constant):
            yield str(key.value), default


def is_value(node: ast.expr) -> bool:
    """Anything but None, and but the columns of the tables (which have no default of their own)."""
    if isinstance(node, ast.Constant):
        return node.value is not None
    if isinstance(node, ast.Call):
        return any(keyword.arg in ("default", "server_default") for keyword in node.keywords)
    return True


def test_no_verdict_by_default() -> None:
    """Where a verdict is missing, it is missing: no parameter, field or look-up puts one in its place."""
    found = [
        f"{module}: {name} = {ast.unparse(value)}"
        for module in sources()
        if not within(module, "app.simulator")
        for name, value in defaults(tree(module))
        if name in VERDICT_WORDS and is_value(value)
    ]
    assert found == []


def test_the_search_for_default_verdicts_finds_them() -> None:
    code = "def f(a, rating=0, *, outcome='pass'): return a.get('verdict', 2)\nclass C:\n    rating: int = 1"
    assert [name for name, value in defaults(ast.parse(code)) if is_value(value)] == [
        "rating", "outcome", "rating", "verdict",
    ]  # fmt: skip
    harmless = "def f(a, rating=None): return a.get('verdict'), getattr(a, 'rating', None)"
    assert not any(is_value(value) for _, value in defaults(ast.parse(harmless)))


# --- the task that a wake-up names ---


def python(code: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, cwd=PROJECT_ROOT, env=os.environ | environment, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_task_that_a_wake_up_names_exists() -> None:
    code = (
        "import workers.tasks\n"
        "from workers.celery_app import celery_app, RECONCILE_TASK\n"
        "print([name for name in celery_app.tasks if not name.startswith('celery.')], [RECONCILE_TASK])\n"
        "print(celery_app.conf.task_routes, celery_app.conf.beat_schedule)"
    )
    names, settings = python(code, CURATE_REDIS_URL="redis://127.0.0.1:1/0").splitlines()
    assert f"'{DRIVE_TASK}'" in names
    assert f"'{DRIFT_TASK}'" in names
    assert settings.count("workers.reconcile") == 2
    assert f"'{DRIVE_TASK}'" in settings
    assert f"'{DRIFT_TASK}'" in settings
