"""Fit expert actions and the correction distribution."""
