"""Gaussians behind a medium: the image formation, losses and schedules of SeaSplat and WaterSplatting, written anew.

Names say so in every table: "(our implementation)".
"""
