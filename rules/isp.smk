# One scene's Base ISP, from its hazy source views alone; or an imported one, scored on them.


rule isp_calibrate:
    input:
        views=rules.capture_source.output.views,
        checkpoint=plan.base_checkpoint,
    output:
        base="results/{dataset}/base/{scene}.safetensors",
        fidelity="results/{dataset}/base/{scene}.json",
    log:
        "results/{dataset}/logs/isp/{scene}.log",
    benchmark:
        "results/{dataset}/benchmarks/isp/{scene}.tsv"
    priority: 1
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(3000),
        runtime=plan.grows(30),
    params:
        settings=plan.settings("isp"),
    shell:
        "fujinsplat isp calibrate"
        " --source {input.views:q}"
        " --out {output.base:q}"
        " --fidelity {output.fidelity:q}"
        " --scene {wildcards.scene:q}"
        " --settings {params.settings:q}"
        " --threads {threads}"
        " --device cpu"
        " > {log:q} 2>&1"
