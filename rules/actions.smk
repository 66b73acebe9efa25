# Expert actions (one per source pair) and the correction distribution: where clean twins enter the method.


rule actions_fit:
    input:
        base=plan.versioned("base", of="actions"),
        source=rules.capture_source.output.views,
        clean=rules.capture_clean.output.views,
    output:
        actions=at("actions"),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(30),
        gpu=plan.gpu,
    params:
        settings=plan.settings("actions", of="actions"),
        flow=plan.settings("flow", of="actions"),
    shell:
        plan.job(
            "actions fit"
            " --base {input.base:q}"
            " --source {input.source:q}"
            " --clean {input.clean:q}"
            " --scene {wildcards.scene:q}"
            " --out {output.actions:q}"
            " --settings {params.settings:q}"
            " --flow {params.flow:q}"
        )


rule actions_veil:
    input:
        base=plan.versioned("base", of="veil"),
        source=rules.capture_source.output.views,
        clean=rules.capture_clean.output.views,
    output:
        veil=at("veil"),
    priority: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(30),
    params:
        settings=plan.settings("actions", of="veil"),
    shell:
        plan.job(
            "actions veil"
            " --base {input.base:q}"
            " --source {input.source:q}"
            " --clean {input.clean:q}"
            " --scene {wildcards.scene:q}"
            " --out {output.veil:q}"
            " --settings {params.settings:q}"
        )


rule actions_population:
    input:
        files=plan.actions.veils,
    output:
        population=at("population"),
    priority: 1
    resources:
        mem_mb=plan.grows(1000),
        runtime=plan.grows(10),
    shell:
        plan.job("actions population" " {input.files:q}" " --out {output.population:q}")
