"""Scores of rendered held views, and the paper's tables.

`score(prediction, reference)` compares two 8-bit display-encoded RGB pictures; `Scorer` keeps the LPIPS network between
pictures. This is the only stage that opens the held views, and it opens them after every prediction exists.
"""

from fujinsplat.core.lazy import exports

__getattr__ = exports(__name__, {"score": "protocol", "Scorer": "protocol", "read_metrics": "collect"})
