"""Score renders and write tables."""
