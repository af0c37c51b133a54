"""What a judge may prefer not to read of, and which items speak of it (pure).

Topics are wider than categories and overlap, so that a form's words give no item's label away.
"""

import re

from app.outcomes import Category

TOPICS = {
    "assault": "violence and assault",
    "war": "war, flight and imprisonment",
    "accidents": "accidents and disasters",
    "loss": "death and loss",
    "illness": "illness, injury and disability",
    "allergies": "allergic reactions",
    "phobias": "intense fears",
}

_TRAUMA = ("assault", "war", "accidents", "loss")
_WORDS = {
    "assault": (
        r"assault|attack|rape|abus|mugg|robb|beaten|stab|shot\b|shoot|gunm|kidnap|stalk|bully|bullied|violen|"
        r"hostage|burgl|maul|gored|trampl|molest|tortur|knife|carjack"
    ),
    "war": (
        r"\bwar\b|wartime|soldier|combat|deploy|bomb|shell(?:ing|ed|s\b)|sniper|genocid|refugee|front line|"
        r"air raid|siege|camp\b|imprison|prison|massacre|landmine|militia|terror|veteran|missile|drone"
    ),
    "accidents": (
        r"accident|crash|collision|fire\b|fires\b|flood|earthquake|avalanche|drown|tsunami|hurricane|cyclone|"
        r"tornado|storm|collaps|capsiz|sank|shipwreck|explosion|explod|landslide|derail|wreck|fell\b|trapped|"
        r"stampede|crush|burn|wildfire|electrocut"
    ),
    "loss": (
        r"\bdied\b|death|\bdead\b|\bloss\b|lost my|lost his|lost her|killed|funeral|suicide|miscarr|stillb|"
        r"passed away|grief|griev"
    ),
}
_PATTERNS = {topic: re.compile(words, re.IGNORECASE) for topic, words in _WORDS.items()}
_OF_CATEGORY = {
    Category.SEVERE_ALLERGY.value: "allergies",
    Category.SEVERE_PHOBIA.value: "phobias",
    Category.PHYSICAL_CONSTRAINT.value: "illness",
}


def topics_of(category: str | None, constraint: str) -> list[str]:
    """The topics that an item may touch; a trauma that no word places counts as each of them.

    Without a category only words tell.
    """
    found = {topic for topic, pattern in _PATTERNS.items() if pattern.search(constraint)}
    if category in _OF_CATEGORY:
        found.add(_OF_CATEGORY[category])
    elif not found and category is not None:
        found.update(_TRAUMA)
    return [topic for topic in TOPICS if topic in found]
