"""Several endpoints from one file: what it may hold, every fault at its line, no key in it nor shown."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine, select

from app import models
from app.db import open_session
from app.declared import Declared
from app.endpoint_files import EndpointLine, read_endpoints
from app.endpoints import opened_key
from app.errors import InvalidInput
from app.prices import Price
from app.runs.starting import Addresses
from app.settings import Settings
from tests.web_help import browsing, make_person, text_of

KEY = "sk-canary-77cc88dd"
GOOD = """
[[endpoint]]
base_url = "HTTPS://One.example.com/v1/"
model = "m-1"

# The second is a vendor's.
[[endpoint]]
name = "Second"
base_url = "https://two.example.com"
model = "m-2"
provider = "anthropic"
api_key_env = "TWO_KEY"
price_prompt = 0.15
price_completion = "0.60"
weights = "open"
model_version = "v7"
system_prompt_text = '''
Be kind.
[[endpoint]]'''
"""
CSV = """name,base_url,model,api_key_env,price_prompt,system_prompt
First,https://one.example.com/v1,m-1,,0.15,none
Second,https://two.example.com/v1,7,TWO_KEY,,
"""


def read(tmp_path: Path, text: str, kind: str = "toml") -> list[EndpointLine]:
    path = tmp_path / f"models.{kind}"
    path.write_text(text)
    return read_endpoints(path, Addresses())


def test_toml(tmp_path: Path) -> None:
    first, second = read(tmp_path, GOOD.replace("\n[[endpoint]]'''", "'''"))
    assert (first.line, first.target.base_url, first.target.name) == (2, "https://one.example.com/v1", "m-1")
    assert (first.key_variable, first.target.price) == (None, None)
    assert (second.line, second.key_variable, second.target.provider) == (7, "TWO_KEY", "anthropic")
    assert second.target.price == Price(Decimal("0.15"), Decimal("0.6"))
    assert second.target.declared == Declared("open", "v7", None, "Be kind.")
    # A text that looks like a header is no header; lines are then given by the file alone.
    assert [one.target.model for one in read(tmp_path, GOOD)] == ["m-1", "m-2"]


def test_csv(tmp_path: Path) -> None:
    first, second = read(tmp_path, CSV, "csv")
    assert (first.line, first.target.name, first.target.declared.system_prompt) == (2, "First", "none")
    assert (second.line, second.target.model, second.key_variable) == (3, "7", "TWO_KEY")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (("weights =", "weihgts ="), "line 15: 'weihgts' is unknown"),
        (('"open"', '"ajar"'), "line 15: The weights may be"),
        (("0.15", "-1"), "line 13: '-1' is no price"),
        (("0.15", "nan"), "line 13: 'nan' is no price"),
        (("0.15", "[1]"), "line 13: price_prompt must be a number"),
        (('"anthropic"', '"cohere"'), "line 11: there is no provider 'cohere'"),
        (('"TWO_KEY"', f'"{KEY}"'), "line 12: api_key_env is the name"),
        (("api_key_env", "api_key"), "line 12: 'api_key' would hold a key"),
        (("https://two.example.com", "http://10.0.0.1"), "line 9: The base URL is refused"),
        (('model = "m-2"', ""), "line 7: model is missing"),
        (('model = "m-2"', "model = true"), "line 10: model must be a text"),
        (('model = "m-2"', 'model = ""'), "line 10: model is empty"),
        (('"Second"', '"Sec\u200bond"'), "line 8: The name holds characters that cannot be seen"),
        (("[[endpoint]]\nname", "[[endpoints]]\nname"), "line 1: 'endpoints' is unknown"),
        (('"m-2"', f'"{KEY}'), "is no valid TOML: look at line 10"),
    ],
)  # fmt: skip
def test_faults_of_toml(tmp_path: Path, change: tuple[str, str], says: str) -> None:
    good = GOOD.replace("\n[[endpoint]]'''", "'''")
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, good.replace(*change))
    said = "\n".join([refused.value.message, *refused.value.details])
    assert says in said
    assert KEY not in said


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("base_url,model,api_key\nhttps://a.example.com,m,x\n", "'api_key' would hold a key"),
        ("base_url\nhttps://a.example.com\n", "'model' is missing"),
        ("base_url,model\nhttps://a.example.com,m,7\n", "row 2"),
        ("base_url,model\nhttps://a.example.com,m\nhttps://a.example.com,m\n", "row 3: the same endpoint"),
        ("base_url,model\nhttps://a.example.com,\nftp://b,m\n", "2 faults"),
        ("base_url,model\n", "no row below the header"),
    ],
)  # fmt: skip
def test_faults_of_csv(tmp_path: Path, text: str, says: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        read(tmp_path, text, "csv")
    assert says in "\n".join([refused.value.message, *refused.value.details])


@pytest.mark.parametrize(
    ("raw", "kind", "says"),
    [
        (b"", "toml", "no endpoint in it"),
        (b"\xff\xfe", "toml", "not UTF-8"),
        (b"endpoint = 7", "toml", "a table of its own"),
        (b"a = " + b"[" * 100_000, "toml", "no valid TOML"),
        (b"x" * 1_000_001, "toml", "more than 1 MB"),
        (b"[[endpoint]]\nbase_url='https://a.example.com'\nmodel='m'\n", "json", "read from .toml or .csv"),
        (
            b"".join(b"[[endpoint]]\nbase_url='https://a.example.com'\nmodel='%d'\n" % n for n in range(201)),
            "toml",
            "may hold 200",
        ),
    ],
    ids=["empty", "no UTF-8", "number", "deep", "large", "json", "many"],
)
def test_files_that_are_none(tmp_path: Path, raw: bytes, kind: str, says: str) -> None:
    path = tmp_path / f"models.{kind}"
    path.write_bytes(raw)
    with pytest.raises(InvalidInput, match=says):
        read_endpoints(path, Addresses())


def test_in_the_browser_keys_are_typed_and_no_variable_is_looked_up(
    settings: Settings, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TWO_KEY", "sk-of-the-server-itself")
    content = GOOD.replace("\n[[endpoint]]'''", "'''")
    own = {"origin": settings.base_url, "sec-fetch-site": "same-origin"}
    with browsing(settings, engine) as browser:
        browser.sign_in(make_person(engine))

        def look(name: str, raw: bytes) -> Any:
            return browser.client.post("/endpoints/import", files={"file": (name, raw)}, headers=own)

        assert "line 11: there is no provider" in text_of(
            look("m.toml", content.replace('"anthropic"', '"cohere"').encode())
        )
        assert "is not UTF-8" in text_of(look("m.toml", b"\xff"))
        assert "choose one of toml, csv" in text_of(look("m.exe", b"a"))
        page = look("m.toml", content.encode())
        assert "2 endpoints in the file" in text_of(page)
        assert "Sent to two.example.com alone" in text_of(page)
        form = {"content": content, "kind": "toml", "form_key": "1b1e9f0e-0000-4000-8000-000000000002"}
        bad = browser.post("/endpoints/import/store", form | {"key_TWO_KEY": "two words"})
        assert bad.status_code == 422
        assert "two words" not in bad.text
        for _ in range(2):
            stored = browser.post("/endpoints/import/store", form | {"key_TWO_KEY": KEY})
            assert stored.headers["location"] == "/endpoints"
        words = text_of(browser.get("/endpoints"))
        assert "Second" in words
        assert "m-1" in words
    with open_session(engine) as session:
        rows = {row.name: row for row in session.scalars(select(models.Endpoint))}
        account = session.get_one(models.Account, rows["Second"].account_id)
        keys = {name: opened_key(account, row, settings.secret) for name, row in rows.items()}
        assert keys == {"m-1": None, "Second": KEY}
        assert rows["Second"].declared.prompt_text == "Be kind."
        assert KEY not in json.dumps([one.details for one in session.scalars(select(models.AuditEvent))])
