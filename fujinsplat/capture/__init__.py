"""Decode a scene once: linear RAW views, camera RGB, cameras, points."""
