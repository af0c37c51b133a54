"""Small tools on English text: clauses, pronouns, word stems."""

import re
from functools import lru_cache

_CLAUSE_END = re.compile(r":\s+(?=[A-Z])|(?:[.!;][\"”')]*|(?<=\?)[\"”')]*)(?:\s+|$)|\n+")
_SENTENCE_END = re.compile(r"(?:[.!][\"”')]*|(?<=\?)[\"”')]*)(?:\s+|$)|\n+")
# Texts pasted together without a full stop: "... allergy I'm trilingual ..." begins a new clause.
_RUN_ON = re.compile(r"(?<=[\w)]) (?=(?:I|I'm|I’m|I've|I’ve|My|Tell me)\b)")
# "when one moves I faint", "the last time I fell": what is said last still waits for its subject.
_LEADS_ON = re.compile(
    r"(?:^|[,;:] )(?:and |but |or )?(?:when|if|with|without|after|before|since|until|near|in|on|at|where|"
    r"once|by|under|for|to|(?:the|every|each|any|last|this) (?:\w+ )?(?:time|day|night|year|week|month|"
    r"morning|evening|summer|winter))\b[^,;:]*$",
    re.I,
)
_RELATIVE = re.compile(
    r"\b(?:the|any|every|all|only|worst|first|last|whatever) \w+$", re.I
)  # "the year I spent"
_JOINS_WORDS = (
    "and or but because so since as if when whenever while where which that than though although until "
    "unless do did does should would could can shall will must may have had is am are was were think "
    "believe know "
    "hope what how why who with like"
)
_JOINS = frozenset(_JOINS_WORDS.split())
_PERSONS = {
    "i": "you",
    "i'm": "you're",
    "i've": "you've",
    "i'd": "you'd",
    "i'll": "you'll",
    "am": "are",
    "me": "you",
    "my": "your",
    "mine": "yours",
    "myself": "yourself",
    "we": "you",
    "we're": "you're",
    "we've": "you've",
    "we'd": "you'd",
    "we'll": "you'll",
    "us": "you",
    "our": "your",
    "ours": "yours",
    "ourselves": "yourselves",
}
_PERSON_WORD = re.compile(r"\b(?:I|we)['’](?:m|ve|d|ll|re)\b|\b[A-Za-z]+\b")
_WORD = re.compile(r"[a-z0-9][a-z0-9'’]+")
_STOP_WORDS = (
    "about absolutely after again also and any anyone are been before being believe believes both but can "
    "could deeply did does doing don't during each enjoy enjoys ever every excited experience experiences "
    "first for friend from gets give going good great had has have having help her here him his how "
    "incredible incredibly interested into its just know like likes love loves make many mean more most "
    "much must new not now off one only onto other our out over partner passionate perfect please really "
    "right same she should since some something special such take than that the their them then there these "
    "they thing think thinks this those thoroughly thrill through together too two unique using very visit "
    "want wants was way were what when where which while who why will with would you your severe serious "
    "extreme intense crippling "
    "chronic recently suffer suffers"
)
_STOP = frozenset(_STOP_WORDS.split())
_CUT_BEFORE_WORDS = "at by during for from in into on over through to when where while which with and or that"
_CUT_BEFORE = frozenset(_CUT_BEFORE_WORDS.split())
_CANNOT_END_WORDS = "a an the of as so your my his her their is are was were have has no"
_CANNOT_END = _CUT_BEFORE | frozenset(_CANNOT_END_WORDS.split())
_SUFFIX = re.compile(r"(?:ies|ing|ed|es|s|y|ie|e)$")


def clauses(text: str) -> list[str]:
    """Sentences of `text` and what colons and semicolons part; a question keeps its mark."""
    return _pieces(text, _CLAUSE_END)


def sentences(text: str) -> list[str]:
    """Sentences of `text`, whole; a question keeps its mark."""
    return _pieces(text, _SENTENCE_END)


def _pieces(text: str, end: re.Pattern[str]) -> list[str]:
    """Cut at every `end`, and where a new sentence begins without a full stop."""
    found: list[str] = []
    for sentence in end.split(text):
        start = 0
        for cut in _RUN_ON.finditer(sentence):
            before = sentence[start : cut.start()].split()
            if before and before[-1].lower() not in _JOINS and not _leads_on(sentence, start, cut):
                found.append(sentence[start : cut.start()])
                start = cut.end()
        found.append(sentence[start:])
    return [piece for piece in (part.strip(" ,:-\t") for part in found) if piece]


def _leads_on(sentence: str, start: int, cut: re.Match[str]) -> bool:
    before = sentence[start : cut.start()]
    relative = sentence.startswith("I ", cut.end()) and _RELATIVE.search(before)
    return bool(relative or _LEADS_ON.search(before))


def second_person(text: str) -> str:
    """The speaker's words turned towards the speaker: "I have my pills" becomes "you have your pills"."""
    turned = re.sub(r"\b(I|we) was\b", r"\1 were", text)
    return _PERSON_WORD.sub(_turn_word, turned)


def _turn_word(match: re.Match[str]) -> str:
    word = match.group(0)
    return _PERSONS.get(word.lower().replace("’", "'"), word)


def shorten(text: str, words: int) -> str:
    """At most `words` words, cut before a preposition or a comma where one is near the limit."""
    parts = text.split()
    if len(parts) <= words:
        return text.rstrip(" ,.;:")
    for end in range(words, max(3, words - 6), -1):
        if parts[end].lower() in _CUT_BEFORE or parts[end - 1].endswith(","):
            return _ended(parts[:end])
    return _ended(parts[:words])


def _ended(parts: list[str]) -> str:
    """The words without what cannot stand last."""
    while len(parts) > 1 and parts[-1].lower() in _CANNOT_END:
        parts = parts[:-1]
    return " ".join(parts).rstrip(" ,.;:")


@lru_cache(maxsize=4096)
def stem(word: str) -> str:
    """A crude stem, only good for asking whether two texts speak of the same thing."""
    for _ in range(2):
        shorter = _SUFFIX.sub("", word)
        if len(shorter) < 3 or shorter == word:
            break
        word = shorter
    return word


def content_stems(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning."""
    return frozenset(
        stem(word) for word in _WORD.findall(text.lower()) if len(word) > 2 and word not in _STOP
    )


def listed(names: list[str]) -> str:
    """ "a", "a and b", "a, b and c"."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"


def capitalised(text: str) -> str:
    return text[:1].upper() + text[1:]
