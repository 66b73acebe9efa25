# One scene-agnostic controller per training setting; `raw` is the method's.


rule controller_train:
    input:
        observations=plan.controller.shards,
    output:
        controller=at("controller"),
        losses=at("controller_losses"),
        figure=report(
            at("controller_figure"),
            category="Controllers",
            labels={"controller": "{controller}"},
            caption="captions/controller.rst",
        ),
    priority: 1
    resources:
        mem_mb=plan.grows(3000),
        runtime=plan.grows(30),
        gpu=plan.gpu,
    params:
        settings=plan.controller.settings,
    shell:
        plan.job(
            "controller train"
            " {input.observations:q}"
            " --out {output.controller:q}"
            " --losses {output.losses:q}"
            " --figure {output.figure:q}"
            " --settings {params.settings:q}"
        )
