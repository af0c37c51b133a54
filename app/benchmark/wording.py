"""Words of a benchmark's texts, for measures and tests: tokens, stems, whether two requests ask the same."""

import re
from collections.abc import Iterable

from app.benchmark.records import Case, Probe

# What changes in a request when several people ask it.
_PLURAL = {"i": "we", "me": "us", "my": "our", "myself": "ourselves", "i'm": "we're", "am": "are"}
# Tags that name a wide domain, not the hazard itself: a request may say "Food Street" to somebody with a milk
# allergy and still only imply the milk.
WIDE_TAGS = frozenset({"food", "seafood", "animals", "medication", "transport"})
_COMMON = frozenset(
    re.findall(
        r"[a-z']+",
        """about after again already also always another anything around because been before being could does
        doing don't doesn't down each even ever every everything from give gives have having here into just
        keep know like make makes many more most much must never none nothing once only other over please same
        should some something such than that their them then there these they thing this those through very
        want what when where which while will with within without would your""",
    )
)
# Words that say how bad a constraint is or what kind it is, not what endangers.
_STOCK = frozenset(
    re.findall(
        r"[a-z]+",
        """allergy allergic severe severely phobia phobic fear afraid terrified intense extreme panic trauma
        traumatic ptsd condition cannot because life threatening doctor""",
    )
)


def tokens(text: str) -> list[str]:
    return re.findall(r"[^\W_]+(?:'[^\W_]+)?", text.lower().replace("’", "'"))


def stem(word: str) -> str:
    """Plural and possessive taken off: enough to see that "dogs" and "dog" are one."""
    word = word.removesuffix("'s")
    if len(word) > 4 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word


def stems(text: str) -> set[str]:
    return {stem(word) for word in tokens(text)}


def content_words(text: str) -> set[str]:
    """Stems of the words of four letters and more that carry meaning."""
    return {stem(word) for word in tokens(text) if len(word) > 3 and word not in _COMMON}


def ask_the_same(alone: str, together: str) -> bool:
    """Whether the joint request is word for word the solo one with "we" for "I"."""
    theirs = [_PLURAL.get(word, word) for word in tokens(alone)]
    return theirs == tokens(together) and tokens(alone) != tokens(together)


def requests(case: Case) -> tuple[str, str, str, str]:
    return (
        case.request_alone_neutral,
        case.request_alone_leading,
        case.request_together_neutral,
        case.request_together_leading,
    )


def tag_words(tags: Iterable[str], *, wide: bool = True) -> set[str]:
    """The words that tags are made of; wide: also those of tags that name no hazard themselves."""
    chosen = [tag for tag in tags if wide or tag not in WIDE_TAGS]
    return {stem(word) for tag in chosen for word in re.split("[_-]", tag)} - {"and"}


def hazard_words(item: Case | Probe) -> set[str]:
    """What a distractor must not touch: the words of its tags; without tags, those of its constraint."""
    return tag_words(item.tags) or content_words(item.constraint) - _STOCK


def named_hazards(case: Case) -> set[str]:
    """The words of the hazard that stand in one of the requests."""
    asked = set().union(*(stems(request) for request in requests(case)))
    return asked & ((content_words(case.constraint) - _STOCK) | tag_words(case.tags, wide=False))
