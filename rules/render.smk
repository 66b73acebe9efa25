# Pictures at held poses (scored later) and at source poses (train-view PSNR). Poses and the model are all they read.


rule render_held:
    input:
        model=rules.splat_train.output.model,
        cameras=rules.capture_source.output.cameras,
    output:
        directory(at("renders")),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(20),
        gpu=plan.gpu,
    shell:
        plan.job(
            "splat render"
            " --model {input.model:q}"
            " --cameras {input.cameras:q}"
            " --out {output:q}"
            " --views held"
        )


rule render_source:
    input:
        model=rules.splat_train.output.model,
        cameras=rules.capture_source.output.cameras,
    output:
        directory(at("renders_source")),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(20),
        gpu=plan.gpu,
    shell:
        plan.job(
            "splat render"
            " --model {input.model:q}"
            " --cameras {input.cameras:q}"
            " --out {output:q}"
            " --views source"
        )


# the second picture of a model with a medium: what the camera sees through it


rule render_medium:
    input:
        model=rules.splat_train.output.model,
        cameras=rules.capture_source.output.cameras,
    output:
        directory(at("renders_medium")),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(20),
        gpu=plan.gpu,
    shell:
        plan.job(
            "splat render"
            " --model {input.model:q}"
            " --cameras {input.cameras:q}"
            " --out {output:q}"
            " --views held"
            " --medium"
        )
