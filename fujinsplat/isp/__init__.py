"""Calibrate, import and score the per-scene Base ISP."""
