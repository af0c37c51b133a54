"""Where each input of the reference list of hostile inputs is tried, and what becomes of it.

kind -> (the threat as SECURITY.md words it, what happens, {ids: module and test that tries them}). Inputs
of our own of the same kinds stand in those tests too.
"""

from typing import NamedTuple


class Tried(NamedTuple):
    """`where`: ids, separated by spaces ("*": all others) -> `module:test`, several separated by spaces."""

    threat: str
    result: str
    where: dict[str, str]


INDEX: dict[str, Tried] = {
    "ssrf_urls": Tried(
        "addresses typed into a form",
        "refused with the class of reason before a socket is opened; a look-alike is shown as xn--",
        {"*": "test_guard:test_reference_addresses"},
    ),
    "ssrf_dns_answers": Tried(
        "names that lead inside, now or later",
        "every connection is vetted anew and goes to the vetted address; a slow name server is given up",
        {
            "d01": "test_guard_connections:test_the_vetted_address_is_the_one_connected",
            "d03 d05": "test_guard_connections:test_names_that_lead_inside_are_refused_with_the_class_only",
            "d07": "test_guard_connections:test_every_new_connection_is_vetted_anew",
            "d09": "test_guard_connections:"
            "test_a_name_server_that_hangs_is_given_up_and_holds_one_lookup_a_host",
        },
    ),
    "endpoint_responses": Tried(
        "endpoints that misbehave",
        "each ends in its class of failure or flag within deadline and cap; no verdict, no dead worker",
        {"*": "test_chat_hostile:test_each_kind_ends_as_the_table_says"},
    ),
    "judge_injections": Tried(
        "answers that talk to the evaluator",
        "flagged and queued for a person; the verdict is the evaluator's own field",
        {
            "*": "test_rating:test_planted_verdicts_never_become_the_stored_one "
            "test_evaluation_screen:test_all_reference_injections_are_flagged"
        },
    ),
    "judge_output_parsing": Tried(
        "evaluator replies that are no verdict",
        "unparsed with the reason, never a default",
        {"*": "test_rating:test_hostile_replies_over_http_become_what_the_table_says"},
    ),
    "xss_strings": Tried(
        "markup in names, answers, files",
        "shown as text on every page; no element, attribute or request comes of it",
        {"*": "test_web_security:test_what_people_type_is_only_text"},
    ),
    "formula_cells": Tried(
        "formulas in exports",
        "disarmed by a stated rule; string cells; read back exactly",
        {"*": "test_tables_writing:test_the_listed_formulas_read_back_exactly"},
    ),
    "path_names": Tried(
        "names that are paths",
        "not found; what is taken away has a name that the site makes",
        {"*": "test_hostile_inputs:test_a_name_is_never_a_path"},
    ),
    "unicode_oddities": Tried(
        "text that breaks storage, sorting or display",
        "replaced and flagged, or refused where a name would hide something; logs stay one line",
        {
            "c07 c09": "test_hostile_inputs:test_names_that_look_like_another_are_the_same_to_a_reader",
            "c17": "test_web_browser:test_names_are_only_text",
            "*": "test_hostile_inputs:test_odd_text_is_shown_kept_and_logged_as_text",
        },
    ),
    "search_and_filter_strings": Tried(
        "searches and filters",
        "plain text; what there is not is 404 with what there is; too long is 414 or 422",
        {"*": "test_hostile_inputs:test_odd_searches_and_filters_are_answered_everywhere"},
    ),
    "uploads": Tried(
        "uploads that explode or mislead",
        "refused in one line before anything is unpacked or parsed",
        {
            "z01": "test_tables_reading:test_half_a_gigabyte_of_spaces_is_refused_without_unpacking_it",
            "z03 z05 z11 z17 z19": "test_tables_reading:test_a_hostile_workbook_ends_in_one_clear_line",
            "z07": "test_tables_reading:test_a_claimed_range_is_not_believed",
            "z09": "test_tables_reading:test_external_links_are_not_followed",
            "z13 z15": "test_tables_reading:test_a_hostile_csv_ends_in_one_clear_line",
            "z21": "test_web_security:test_odd_bodies_are_no_fault_of_the_site",
        },
    ),
    "oversized": Tried(
        "fields beyond their limit",
        "refused with the limit named, never cut; a key is not shown again",
        {
            "o01 o03 o05": "test_hostile_inputs:"
            "test_what_is_too_long_is_refused_with_its_limit_and_never_cut",
            "o07": "test_tables_writing:test_a_text_too_long_for_a_cell_reads_back_whole",
            "o09": "test_web_board:test_a_board_of_500_models_comes_in_pages",
        },
    ),
    "csrf_and_session": Tried(
        "forged and repeated requests, old sessions, other people's things",
        "403, 404, 405 or nothing changed; twice is once; cookies are __Host-",
        {
            "q01 q03 q05": "test_web_security:test_a_foreign_form_is_refused",
            "q07": "test_web_security:test_what_changes_something_is_no_get",
            "q09": "test_web_people:test_after_signing_out_the_old_cookie_opens_nothing",
            "q11": "test_web_security:test_cookies_over_https",
            "q13": "test_web_judging:test_what_is_not_the_judges_own_is_refused_with_what_was_typed",
            "q15": "test_web_isolation:test_nobody_else_s_browser_reads_or_changes_what_is_mine",
            "q17": "test_web_runs:test_a_form_that_is_sent_twice_makes_one_run "
            "test_web_judging:test_sent_twice_it_is_stored_once",
            "q19": "test_web_security:test_each_answer_carries_the_headers",
            "q21": "test_web_links:test_a_reset_works_once "
            "test_web_links:test_a_reset_is_good_for_thirty_minutes",
        },
    ),
    "rate_limit_and_proxy": Tried(
        "claimed addresses, bursts",
        "the socket's peer counts, an IPv6 line by its /64; 429 with Retry-After",
        {
            "l01 l03": "test_web_security:test_a_claimed_address_changes_nothing",
            "l05": "test_hostile_inputs:test_who_claims_another_host_changes_no_link",
            "l07": "test_hostile_inputs:test_thirty_submissions_in_a_minute_are_too_many",
            "l09": "test_web_security:test_an_ipv6_line_is_one_bucket",
        },
    ),
    "secrets_canaries": Tried(
        "keys that leak",
        "found nowhere: pages, logs, errors, tasks, exports, dump outside the sealed column",
        {
            "k01 k09": "test_hostile_inputs:test_what_is_too_long_is_refused_with_its_limit_and_never_cut",
            "k03": "test_secrets_at_rest:test_no_key_stands_anywhere",
            "k05": "test_chat_secrets:test_an_endpoint_that_repeats_the_key_gets_it_into_nothing",
            "k07": "test_limits:test_a_key_is_deleted_when_the_run_is_over_and_nobody_needs_it",
            "k11": "test_web_runs:test_a_sealed_key_opens_for_its_person_and_address_only",
        },
    ),
    "leaderboard_gaming": Tried(
        "a board that is gamed",
        "runs are counted and shown; no answer is not passed; look-alikes wait; spot checks repeat a sample",
        {
            "g01": "test_leaderboard:test_the_first_complete_run_stands_and_all_that_were_started_are_told",
            "g03 g05 g13": "test_spot_checks:test_a_listed_model_is_asked_again_and_the_difference_shown",
            "g07": "test_leaderboard:test_no_answer_is_covered_and_not_passed",
            "g09": "test_publication_requests:test_a_name_that_looks_like_another_waits_for_review",
            "g11": "test_web_judging:test_who_owns_a_run_cannot_judge_it",
            "g15": "test_hostile_inputs:test_what_shapes_an_answer_is_not_the_submitter_s_to_change",
        },
    ),
}
