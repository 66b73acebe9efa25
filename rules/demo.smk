# The embedded demo dataset: scenes and external captures, made from a seed.


rule demo_scene:
    output:
        folder=directory("data/{dataset}/{scene}"),
    log:
        "results/{dataset}/logs/demo/{scene}.log",
    benchmark:
        "results/{dataset}/benchmarks/demo/{scene}.tsv"
    wildcard_constraints:
        dataset=plan.demo_datasets,
        scene=plan.demo_scenes,
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(1500),
        runtime=plan.grows(10),
    params:
        root="data/{dataset}",
        settings=plan.settings("demo"),
    shell:
        "fujinsplat demo scene"
        " {params.root:q}"
        " {wildcards.scene:q}"
        " --settings {params.settings:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule demo_external:
    output:
        folder=directory("data/{dataset}/external"),
    log:
        "results/{dataset}/logs/demo/external.log",
    benchmark:
        "results/{dataset}/benchmarks/demo/external.tsv"
    wildcard_constraints:
        dataset=plan.demo_datasets,
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(1500),
        runtime=plan.grows(10),
    params:
        settings=plan.settings("demo"),
    shell:
        "fujinsplat demo external"
        " {output.folder:q}"
        " --settings {params.settings:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"
