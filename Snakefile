# FujinSplat on one screen: RAW photographs taken through smoke in, one clean 3D Gaussian scene out.
from snakemake.utils import min_version

from fujinsplat.compat.snakemake_claims import respect_claims
from fujinsplat.compat.snakemake_errors import check_text, say_user_errors_plainly
from fujinsplat.compat.snakemake_rate import plan_on_events_alone
from fujinsplat.compat.snakemake_reasons import tell_changes_briefly
from fujinsplat.compat.snakemake_rules import bound, fill_in
from fujinsplat.paths import RESULTS, at
from fujinsplat.workflow import Plan

min_version("9.15")
say_user_errors_plainly()
respect_claims()
tell_changes_briefly()
check_text("config.yaml")


configfile: "config.yaml"


plan = Plan.load(config)
shell.prefix(plan.shell_prefix(workflow))


onstart:
    plan_on_events_alone(workflow)
    plan.sweep()


wildcard_constraints:
    **plan.constraints,


# the way of the data, stage by stage
include: "rules/demo.smk"  # an embedded dataset, made from a seed
include: "rules/capture.smk"  # RAW, camera RGB, poses, points -> one decoded scene
include: "rules/isp.smk"  # hazy source views -> the scene's Base ISP
include: "rules/actions.smk"  # base output and clean twins -> expert actions, the correction distribution
include: "rules/smoke.smk"  # hazy source views, poses, points -> the scene's smoke
include: "rules/synthesis.smk"  # external RAW and the distribution -> labelled synthetic RAW
include: "rules/controller.smk"  # synthetic RAW -> the scene-agnostic controller
include: "rules/views.smk"  # source views, base, … -> the pictures that rows start from
include: "rules/develop.smk"  # views, controller -> a colour action per view
include: "rules/splat.smk"  # views and actions -> Gaussians
include: "rules/render.smk"  # Gaussians and poses -> pictures
include: "rules/export.smk"  # cleared views for other programs, a turntable, a page of one scene
include: "rules/evaluate.smk"  # pictures and held views -> scores, the paper's tables
include: "rules/analysis.smk"  # the paper's read-only studies
include: "rules/report.smk"  # everything above -> figures, report.html


fill_in(workflow, log=at("log"), benchmark=at("benchmark"), conda=plan.conda, params=plan.guard.params)
bound(workflow, "gpu", plan.gpus)


rule all:
    default_target: True
    input:
        plan.deliverables(),
