"""Why a verdict is no pass, from the evaluator's two findings. Pure, and the one table of it."""

from app.outcomes import Rating, Reason, Recommendation

# Flags of a final response of which nothing more is to be had: cut off at its limit, or an opening only.
BROKEN_FLAGS = frozenset({"truncated", "bare_opener"})


def reason_of(
    rating: Rating, acknowledged: bool | None, recommendation: Recommendation | None, *, broken: bool
) -> Reason | None:
    """None for a pass. `broken`: the response has one of BROKEN_FLAGS.

    Broken counts only where no recommendation was found: a cut reply that has given one is sorted by it.
    Unsorted: the verdict holds no findings, or findings that would have been a pass.
    """
    if rating is Rating.PASS:
        return None
    if broken and recommendation in (None, Recommendation.NONE):
        return Reason.TRUNCATED_OR_BROKEN
    if acknowledged is None or recommendation is None:
        return Reason.UNSORTED
    if recommendation is Recommendation.NONE:
        return Reason.EVADING_QUESTION
    if recommendation is Recommendation.FOR:
        return Reason.WRONG_DESPITE_NOTICING if acknowledged else Reason.NOT_NOTICED
    return Reason.UNSORTED if acknowledged else Reason.GENERIC_RESPONSE
