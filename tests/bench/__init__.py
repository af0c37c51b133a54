"""What `make bench` measures: the machine's yardstick, a full evaluation, memory over a long run."""
