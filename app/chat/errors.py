"""The classes of failure and the flags of an exchange: a sentence each, with the remedy."""

ERRORS: dict[str, str] = {
    "address_refused": (
        "The address is not one that this site may call. Use a public https address, "
        "or ask the site's administrator to list the host as a private target."
    ),
    "dns": (
        "The host name could not be looked up. Check its spelling, and that the name is public; "
        "a name server that is slow or down passes by itself."
    ),
    "network": (
        "The connection failed or broke off. Check that the server is running, "
        "that the port is right, and that nothing in between closes long requests."
    ),
    "tls": (
        "The secure connection could not be made. Renew or correct the server's certificate "
        "(name, date, chain), or correct the address."
    ),
    "total_timeout": (
        "The whole answer had not arrived when the time for it was over. Give the model more "
        "resources, lower the concurrency, or raise the deadline."
    ),
    "endpoint_redirect": (
        "The endpoint sends callers to another address, which is not followed. "
        "Enter the final address as the base URL."
    ),
    "encoded_body": (
        "The answer was compressed although plain bytes were asked for. "
        "Switch compression off for this path on the server."
    ),
    "response_too_large": (
        "The answer was larger than 1 MiB. Check that the address is a chat endpoint, "
        "and limit what it returns."
    ),
    "bad_http": (
        "The answer broke the rules of HTTP (malformed or oversized header, impossible status). "
        "Check what stands at this address and port."
    ),
    "bad_json": (
        "The answer was not the JSON object that the provider documents. "
        "Check the base URL: a web page or another service may answer there."
    ),
    "empty_body": "The answer had no body. Look into the server's log; the model may have crashed.",
    "no_choices": (
        "The answer held no reply to read. A model that is still loading answers so; "
        "otherwise check that the provider is the right one."
    ),
    "content_too_long": (
        "The reply was longer than 32,000 characters. Lower the limit of tokens, "
        "or find out why the model does not stop."
    ),
    "rate_limited": (
        "The endpoint kept answering that there were too many requests. "
        "Lower the concurrency, raise the account's limit, or resume the run later."
    ),
    "quota_exhausted": (
        "The account behind the key has no credit or quota left. Top it up, then resume the run."
    ),
    "auth": (
        "The endpoint refused the key or its rights. Check the key, the account's access to the model, "
        "and whether a key is needed at all."
    ),
    "not_found": (
        "Nothing answers at this path, or the model is unknown there. Check the base URL "
        "(for OpenAI-compatible servers it normally ends in /v1) and the spelling of the model."
    ),
    "bad_request": (
        "The endpoint refused the request as it was. Its own message tells why; "
        "correct the endpoint's parameters or the protocol."
    ),
    "server_error": (
        "The endpoint failed or was not ready (status 5xx, 408, 409, 425, or an error inside an answer "
        "with status 200). Look into the server's log, then retry the errors."
    ),
    "client_fault": (
        "This program could not handle the answer. Please report it with the stored answer; "
        "the conversation can be retried."
    ),
}

# Worth another try after a pause; everything else would only fail again.
RETRIABLE = frozenset(
    {"dns", "network", "total_timeout", "rate_limited", "server_error", "empty_body", "no_choices"}
)

FLAGS: dict[str, str] = {
    "truncated": "The reply ended at the limit of tokens.",
    "refusal_field": "The endpoint gave a refusal in a field of its own; its words are the reply.",
    "think_stripped": "Reasoning between think tags was removed from the reply.",
    "reasoning_only": "The endpoint returned reasoning and no reply; reasoning is never rated.",
    "parts_joined": "The reply came as a list of parts; the text parts were joined.",
    "parts_ignored": "The reply held parts that are not text; they were left out.",
    "tool_calls": "The model asked for a tool although none was offered.",
    "several_choices": "The endpoint returned more than one reply; the first was taken.",
    "stop_applied": "The reply ran on into an invented next turn and was cut there.",
    "nul_replaced": "NUL characters in the reply were replaced by U+FFFD.",
    "surrogates_replaced": "Broken Unicode (lone surrogates) in the reply was replaced by U+FFFD.",
    "key_removed": "The reply repeated the API key, which was removed.",
    "response_capped": "The stored copy of the raw answer is cut.",
    "unstructured": "Structured output was asked for but could not be requested of this endpoint.",
}
