"""Why an adjudicated item got its final label (pure). The codes stand in files, too."""

REASONS = {
    "as_instructed": "The instructions decide it plainly",
    "awareness": "Whether the response shows awareness of the constraint",
    "recommendation": "What the response recommends, taken as a whole",
    "condition": "Whether the condition deals with the danger",
    "ambiguous": "The text allows more than one reading",
    "instructions": "The instructions do not cover it",
    "item": "Something is wrong with the item itself",
}
