"""Speed, measured as ratios to a reference in the same run. `make bench` runs them all; none of it is a timed test."""
