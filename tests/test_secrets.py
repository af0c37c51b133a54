"""Keys at rest: they open for their owner, endpoint and address, and for nothing else."""

import pytest

from app.errors import Conflict
from app.secrets import seal, unseal

SECRET = b"a site's secret of at least thirty-two bytes"
KEY = "sk-canary-λ-0123456789"
BOUND = ("owner", "endpoint", "https://host/v1")


def test_what_was_sealed_opens_again() -> None:
    assert unseal(SECRET, seal(SECRET, KEY, *BOUND), *BOUND) == KEY


def test_the_sealed_form_shows_nothing_and_never_repeats() -> None:
    one, other = seal(SECRET, KEY, *BOUND), seal(SECRET, KEY, *BOUND)
    assert one != other
    assert b"canary" not in one
    assert KEY.encode() not in one


@pytest.mark.parametrize(
    "bound",
    [
        ("another owner", "endpoint", "https://host/v1"),
        ("owner", "another endpoint", "https://host/v1"),
        ("owner", "endpoint", "https://elsewhere/v1"),
        ("owner", "endpoint"),
        ("ownere", "ndpoint", "https://host/v1"),
        (),
    ],
)
def test_it_opens_for_nothing_else(bound: tuple[str, ...]) -> None:
    with pytest.raises(Conflict, match="Give the key again"):
        unseal(SECRET, seal(SECRET, KEY, *BOUND), *bound)


def test_another_site_cannot_open_it() -> None:
    with pytest.raises(Conflict, match="cannot be opened"):
        unseal(SECRET + b"!", seal(SECRET, KEY, *BOUND), *BOUND)


def test_every_flipped_bit_is_noticed() -> None:
    sealed = seal(SECRET, KEY, *BOUND)
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        with pytest.raises(Conflict):
            unseal(SECRET, bytes(changed), *BOUND)


def test_what_is_cut_off_is_no_key() -> None:
    sealed = seal(SECRET, KEY, *BOUND)
    for length in range(len(sealed)):
        with pytest.raises(Conflict):
            unseal(SECRET, sealed[:length], *BOUND)
