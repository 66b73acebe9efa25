"""Numba code and its compilation, shared by more than one stage."""
