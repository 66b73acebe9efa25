# A row's views and actions, poses and points to Gaussians: the linear model, and a PLY that looks right in any viewer.
# The checkpoints are no output, so a job that was killed continues where it stood.


rule splat_train:
    input:
        unpack(plan.splat.inputs),
    output:
        ply=at("gaussians"),
        model=at("model"),
        log=at("training"),
        reconciled=at("reconciled"),
    resources:
        mem_mb=plan.grows(8000),
        runtime=plan.grows(240),
        gpu=plan.gpu,
    params:
        checkpoints=at("checkpoints"),
        options=plan.splat.options,
        settings=plan.splat.settings,
    shell:
        plan.job(
            "splat train"
            " {params.options:q}"
            " --out {output.ply:q}"
            " --model {output.model:q}"
            " --log {output.log:q}"
            " --reconciled {output.reconciled:q}"
            " --checkpoints {params.checkpoints:q}"
            " --settings {params.settings:q}"
        )
