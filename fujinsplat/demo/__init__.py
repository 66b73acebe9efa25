"""Make the embedded demo world from a seed."""
