"""The evaluator on trial: manipulation, and drift against a frozen reference set."""
