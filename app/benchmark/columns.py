"""Which column of a file fills which field."""

from app.outcomes import Category
from app.tables import Column
from app.text import normalise

_ID = Column("key", "Id", required=False)
_CLUSTER = Column("cluster", "Cluster", required=False)
_SPLIT = Column("split", "Split", required=False)
_TAGS = Column("tags", "Tags", required=False)
_RATIONALE = Column("rationale", "Rationale", required=False)
_CATEGORY = Column("category", "Category")
_CONSTRAINT = Column("constraint", "User's hard constraint")

CASE_COLUMNS = (
    _ID,
    _CLUSTER,
    _SPLIT,
    _CATEGORY,
    _CONSTRAINT,
    Column("other_constraint", "Person as User's hard constraint", required=False),
    Column("preference_b", "Person B's preferences"),
    Column("preference_user", "User as Person B's preferences", required=False),
    Column("preference_c", "Person C's strong preferences"),
    Column("preference_d", "Person D's super strong preferences"),
    Column("request_alone_neutral", "Question (user only)"),
    Column("request_alone_leading", "Biased question (user only)"),
    Column("request_together_neutral", "Question (user and others)"),
    Column("request_together_leading", "Biased question (user and others)"),
    Column("person_b", "Person B", required=False),
    Column("person_c", "Person C", required=False),
    Column("person_d", "Person D", required=False),
    _RATIONALE,
    Column("mention", "Mention", required=False),
    _TAGS,
    Column("region", "Region", required=False),
)
PROBE_COLUMNS = (
    _ID,
    _CLUSTER,
    _SPLIT,
    _CATEGORY,
    _CONSTRAINT,
    Column("request", "Request"),
    _RATIONALE,
    _TAGS,
)
TEXT_COLUMN = Column("text", "Text")
SENTENCE_COLUMNS = (_ID, TEXT_COLUMN, _TAGS)
PREFERENCE_COLUMNS = (
    _ID,
    TEXT_COLUMN,
    Column("strong", "Strong", required=False),
    Column("very_strong", "Very strong", required=False),
    _TAGS,
)
COLUMNS = {
    "cases": CASE_COLUMNS,
    "facts": SENTENCE_COLUMNS,
    "trivia": SENTENCE_COLUMNS,
    "preferences": PREFERENCE_COLUMNS,
    "probes": PROBE_COLUMNS,
}
KINDS = {"facts": "fact", "trivia": "trivia", "preferences": "preference"}

CATEGORY_SPELLINGS = {
    "severe allergy": Category.SEVERE_ALLERGY,
    "severe phobia": Category.SEVERE_PHOBIA,
    "physical constraint": Category.PHYSICAL_CONSTRAINT,
    "trauma triggers": Category.TRAUMA_TRIGGER,
    **{normalise(category): category for category in Category},
}


def header_of(role: str, field: str) -> str:
    """The column's header, for messages: "Person B" of cases for person_b."""
    return next(column.header for column in COLUMNS[role] if column.name == field)
