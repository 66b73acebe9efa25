# One scene's Base ISP, from its hazy source views alone; or an imported one, scored on them.


rule isp_calibrate:
    input:
        views=rules.capture_source.output.views,
        checkpoint=plan.capture.base_checkpoint,
    output:
        base=at("base"),
        fidelity=at("fidelity"),
    priority: 1
    resources:
        mem_mb=plan.grows(3000),
        runtime=plan.grows(30),
    params:
        settings=plan.settings("isp", of="base"),
    shell:
        plan.job(
            "isp calibrate"
            " --source {input.views:q}"
            " --out {output.base:q}"
            " --fidelity {output.fidelity:q}"
            " --scene {wildcards.scene:q}"
            " --settings {params.settings:q}"
        )
