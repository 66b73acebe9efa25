"""Figures and report.html."""
