# The embedded demo dataset: scenes and external captures, made from a seed.


rule demo_scene:
    output:
        folder=directory("data/{dataset}/{scene}"),
    wildcard_constraints:
        dataset=plan.demo.datasets,
        scene=plan.demo.scenes,
    resources:
        mem_mb=plan.grows(1500),
        runtime=plan.grows(10),
    params:
        root="data/{dataset}",
        settings=plan.settings("demo"),
    shell:
        plan.job("demo scene" " {params.root:q}" " {wildcards.scene:q}" " --settings {params.settings:q}")


rule demo_external:
    output:
        folder=directory("data/{dataset}/external"),
    wildcard_constraints:
        dataset=plan.demo.datasets,
    resources:
        mem_mb=plan.grows(1500),
        runtime=plan.grows(10),
    params:
        settings=plan.settings("demo"),
    shell:
        plan.job("demo external" " {output.folder:q}" " --settings {params.settings:q}")
