"""Snakemake's limit of job starts per second, lifted. Tested with snakemake 9.15 to 9.27.

To keep that limit, the scheduler plans again a second after each planning, for as long as the run lasts, and every job
that ends starts one more such chain: after 400 jobs that alone takes more than half a core. Cores, or `jobs` on a
cluster, bound what starts anyway.
"""

VERSIONS = "snakemake >=9.15,<9.28"


def plan_on_events_alone(workflow) -> None:
    """For `onstart:`: no limit of job starts per second, where there is one."""
    scheduler = getattr(workflow, "scheduler", None)
    if scheduler is not None and getattr(scheduler, "job_rate_limiter", None) is not None:
        scheduler.job_rate_limiter = None
