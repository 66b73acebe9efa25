"""The kinds of torture that `benchmarks.torture` knows."""
