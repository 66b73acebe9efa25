# FujinSplat on one screen: RAW photographs taken through smoke in, one clean 3D Gaussian scene out.
from snakemake.utils import min_version

from fujinsplat.workflow import Plan

min_version("9.15")


configfile: "config.yaml"


plan = Plan.load(config)
shell.prefix(plan.shell_prefix(workflow))


onstart:
    plan.plan_on_events_alone(workflow)


wildcard_constraints:
    dataset="[^/]+",
    scene="[^/]+",
    variant="[^/.]+",


# the way of the data, stage by stage
include: "rules/demo.smk"  # an embedded dataset, made from a seed
include: "rules/capture.smk"  # RAW, camera RGB, poses, points -> one decoded scene
include: "rules/isp.smk"  # hazy source views -> the scene's Base ISP
include: "rules/actions.smk"  # base output and clean twins -> expert actions, the correction distribution
include: "rules/synthesis.smk"  # external RAW and the distribution -> labelled synthetic RAW
include: "rules/controller.smk"  # synthetic RAW -> the scene-agnostic controller
include: "rules/develop.smk"  # base, controller, source RAW -> corrected source views
include: "rules/splat.smk"  # corrected views -> Gaussians, with the delta-ISP
include: "rules/render.smk"  # Gaussians and poses -> pictures
include: "rules/evaluate.smk"  # pictures and held views -> scores, the paper's tables
include: "rules/analysis.smk"  # the paper's read-only studies
include: "rules/report.smk"  # everything above -> figures, report.html


rule all:
    default_target: True
    input:
        plan.deliverables(),
