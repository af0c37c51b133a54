"""`curate endpoint check`: would a base URL be accepted, and does what answers there do for a run?"""

from typing import Annotated, Any

import typer

from app.chat import Allowlist, Checked, Endpoint, check_url
from app.cli import endpoint_store
from app.cli.installation import out, say
from app.cli.options import (
    CompletionPrice,
    Json,
    PromptPrice,
    key_from_environment,
    price,
)
from app.cli.output import print_json
from app.errors import InvalidInput
from app.prices import Price, about_dollars
from app.runs.planning import Plan, Selection, make_plan
from app.runs.starting import DEFAULT_CONCURRENCY
from app.settings import Settings, load_settings
from app.text import counted

app = typer.Typer(no_args_is_help=True, help="Endpoints: where models answer.")
SIGNS = {"ok": "ok", "note": "note", "problem": "PROBLEM", "skipped": "–"}


@app.callback()
def endpoints() -> None:
    """Endpoints: where models answer."""


endpoint_store.add_to(app)


@app.command()
def check(
    url: Annotated[str, typer.Argument(help="A base URL as a researcher would submit it.")],
    model: Annotated[
        str | None, typer.Option(help="Ask this model a dozen short questions, to see what it bears.")
    ] = None,
    provider: Annotated[str, typer.Option(help="openai, anthropic, gemini or completion.")] = "openai",
    api_key_env: Annotated[str | None, typer.Option(help="Environment variable with the key.")] = None,
    concurrency: Annotated[int, typer.Option(help="Calls in flight in the run.")] = DEFAULT_CONCURRENCY,
    price_prompt: PromptPrice = None,
    price_completion: CompletionPrice = None,
    json: Json = False,
) -> None:
    """Judge a base URL without opening a connection; with --model ask there, and tell what a run takes."""
    settings = load_settings()
    checked = check_url(url, Allowlist.parse(settings.endpoint_allowlist), settings.own_hosts)
    if model is None:
        if api_key_env is not None:
            raise InvalidInput("--api-key-env needs --model: without one, nothing is asked.")
        _print_judgement(checked, as_json=json)
        return
    cost = price(price_prompt, price_completion) or Price()
    key = key_from_environment(api_key_env)
    _preflight(settings, checked, (url, provider, model, key), concurrency, cost, as_json=json)


def _described(checked: Checked) -> dict[str, Any]:
    return {
        "allowed": checked.allowed,
        "reason": checked.reason,
        "url": checked.url,
        "warning": checked.warning,
    }


def _print_judgement(checked: Checked, *, as_json: bool) -> None:
    if as_json:
        print_json(_described(checked))
        return
    verdict = f"allowed: {checked.url}" if checked.allowed else f"refused: {checked.reason}"
    out.print(verdict, markup=False)
    if checked.warning:
        out.print(f"warning: {checked.warning}", markup=False)


def _preflight(
    settings: Settings,
    checked: Checked,
    asked: tuple[str, str, str, str | None],
    concurrency: int,
    cost: Price,
    *,
    as_json: bool,
) -> None:
    """Whoever runs the command owns the machine, so an address that a site refuses is asked all the same."""
    from app.benchmark import builtin_benchmark
    from app.preflight import duration_of, preflight
    from app.protocol import builtin_protocol

    url, provider, model, key = asked
    own = check_url(url, Allowlist.parse(settings.endpoint_allowlist), private_allowed=True)
    if own.url is None:
        raise InvalidInput(f"The base URL cannot be used: {own.reason}.")
    if concurrency < 1:
        raise InvalidInput("Concurrency is a whole number from 1.")
    endpoint = Endpoint(provider, own.url, model, key, private_allowed=True)  # type: ignore[arg-type]
    protocol, benchmark = builtin_protocol(), builtin_benchmark()
    if not as_json:
        say(f"asking {model} at {own.url}; a minute and a half at most")
    found = preflight(endpoint, protocol.target.sampling, at_once=concurrency)
    plan = make_plan(protocol, benchmark, Selection(), (1,), evaluator_is_model=False)
    lasts = None
    if found.seconds is not None and found.borne is not None:
        lasts = duration_of(plan.model_calls, min(concurrency, found.borne), found.seconds)
    if as_json:
        planned = _planned(plan, cost, lasts)
        print_json(_described(checked) | found.as_report() | {"plan": planned})
    else:
        for one in found.checks:
            remedy = f" {one.remedy}" if one.remedy else ""
            out.print(f"{SIGNS[one.state]:<8}{one.title}: {one.found}{remedy}", markup=False)
        _print_plan(plan, cost, lasts)
        if not checked.allowed:
            say(f"note: a site that others reach would refuse this address: {checked.reason}")
    if not found.ok:
        raise typer.Exit(1)


def _planned(plan: Plan, cost: Price, lasts: float | None) -> dict[str, Any]:
    """The usual run: the built-in benchmark, whole, rated by the rules."""
    amount = plan.cost(cost, Price())
    return {
        "conversations": plan.conversations,
        "model_calls": plan.model_calls,
        "prompt_tokens": plan.prompt_tokens,
        "completion_tokens": plan.completion_tokens,
        "cost_usd": None if amount is None else float(amount),
        "seconds": lasts,
    }


def _print_plan(plan: Plan, cost: Price, lasts: float | None) -> None:
    amount = plan.cost(cost, Price())
    out.print(
        f"The whole benchmark, once: {counted(plan.model_calls, 'call')}, at most about "
        f"{plan.prompt_tokens} tokens in and {plan.completion_tokens} out"
        + ("" if amount is None else f", about {about_dollars(amount)} at most")
        + ("" if lasts is None else f", about {counted(max(1, round(lasts / 60)), 'minute')}"),
        markup=False,
        soft_wrap=True,
    )
