# What leaves the house: a row's cleared views as a dataset for other programs, its scene upright, a turntable, a page.


rule export_dataset:
    input:
        views=plan.export.views,
        developed=rules.develop_scene.output.developed,
        cameras=rules.capture_source.output.cameras,
        points=rules.capture_source.output.points,
        light=plan.export.light,
    output:
        directory(at("cleared")),
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(15),
    params:
        light=plan.export.light_options,
    shell:
        plan.job(
            "export dataset"
            " --views {input.views:q}"
            " --developed {input.developed:q}"
            " --cameras {input.cameras:q}"
            " --points {input.points:q}"
            " --out {output:q}"
            " {params.light:q}"
        )


rule export_scene:
    input:
        gaussians=rules.splat_train.output.ply,
        cameras=rules.capture_source.output.cameras,
    output:
        at("scene"),
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    shell:
        plan.job("export scene" " {input.gaussians:q}" " --cameras {input.cameras:q}" " --out {output:q}")


rule export_turntable:
    input:
        model=rules.splat_train.output.model,
        cameras=rules.capture_source.output.cameras,
    output:
        at("turntable"),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(20),
        gpu=plan.gpu,
    shell:
        plan.job("export turntable" " --model {input.model:q}" " --cameras {input.cameras:q}" " --out {output:q}")


rule export_page:
    input:
        unpack(plan.export.page_inputs),
    output:
        at("scene_page"),
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    params:
        options=plan.export.page_options,
    shell:
        plan.job("export page" " {wildcards.scene:q}" " {params.options:q}" " --out {output:q}")
