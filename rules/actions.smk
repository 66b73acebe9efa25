# Expert actions (one per source pair) and the correction distribution: where clean twins enter the method.
from fujinsplat.actions.plan import ActionsPlan

experts = ActionsPlan(plan)


rule actions_fit:
    input:
        base=rules.isp_calibrate.output.base,
        source=rules.capture_source.output.views,
        clean=rules.capture_clean.output.views,
    output:
        actions="results/{dataset}/actions/{scene}.safetensors",
    log:
        "results/{dataset}/logs/actions/{scene}.fit.log",
    benchmark:
        "results/{dataset}/benchmarks/actions/{scene}.fit.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(30),
        gpu=plan.gpu,
    params:
        settings=plan.settings("actions"),
        device=plan.device,
    shell:
        "fujinsplat actions fit"
        " --base {input.base:q}"
        " --source {input.source:q}"
        " --clean {input.clean:q}"
        " --scene {wildcards.scene:q}"
        " --out {output.actions:q}"
        " --settings {params.settings:q}"
        " --device {params.device}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule actions_veil:
    input:
        base=rules.isp_calibrate.output.base,
        source=rules.capture_source.output.views,
        clean=rules.capture_clean.output.views,
    output:
        veil="results/{dataset}/actions/{scene}.veil.json",
    log:
        "results/{dataset}/logs/actions/{scene}.veil.log",
    benchmark:
        "results/{dataset}/benchmarks/actions/{scene}.veil.tsv"
    priority: 1
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(30),
    params:
        settings=plan.settings("actions"),
    shell:
        "fujinsplat actions veil"
        " --base {input.base:q}"
        " --source {input.source:q}"
        " --clean {input.clean:q}"
        " --scene {wildcards.scene:q}"
        " --out {output.veil:q}"
        " --settings {params.settings:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule actions_population:
    input:
        files=experts.population_inputs,
    output:
        population="results/{dataset}/population.json",
    log:
        "results/{dataset}/logs/actions/population.log",
    benchmark:
        "results/{dataset}/benchmarks/actions/population.tsv"
    priority: 1
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(1000),
        runtime=plan.grows(10),
    params:
        use=experts.population_option,
    shell:
        "fujinsplat actions population"
        " {params.use}"
        " {input.files:q}"
        " --out {output.population:q}"
        " > {log:q} 2>&1"
