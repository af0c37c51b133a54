"""How a simulated model is known: it says so itself, with every completion.

Both marks, so that one is left behind a gateway that passes on only headers or only bodies.
"""

FINGERPRINT = "curate-simulator"  # the completion's system_fingerprint
HEADER = "X-Curate-Simulator"
