"""What the rule files ask: one plan, with one part per stage, all derived from config.yaml. Pure Python.

Rule files hold no logic; they name functions of the plan. Functions that take `wildcards` are ready for Snakemake's
`input:` and `params:`.
"""

from fujinsplat.workflow.plan import Plan

__all__ = ["Plan"]
