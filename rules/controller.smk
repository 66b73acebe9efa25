# One scene-agnostic controller per training setting; `raw` is the method's.
from fujinsplat.controller.plan import ControllerPlan

controllers = ControllerPlan(plan)


rule controller_train:
    input:
        observations=controllers.shards,
    output:
        controller="results/{dataset}/controller/{controller}.safetensors",
        losses="results/{dataset}/controller/{controller}.csv",
        figure=report(
            "results/{dataset}/controller/{controller}.png",
            category="Controllers",
            labels={"controller": "{controller}"},
            caption="captions/controller.rst",
        ),
    log:
        "results/{dataset}/logs/controller/{controller}.log",
    benchmark:
        "results/{dataset}/benchmarks/controller/{controller}.tsv"
    wildcard_constraints:
        controller="[^/.]+",
    priority: 1
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(3000),
        runtime=plan.grows(30),
        gpu=plan.gpu,
    params:
        input=controllers.input,
        objective=controllers.objective,
        settings=plan.settings("controller"),
        device=plan.device,
    shell:
        "fujinsplat controller train"
        " {input.observations:q}"
        " --out {output.controller:q}"
        " --losses {output.losses:q}"
        " --figure {output.figure:q}"
        " --input {params.input}"
        " --objective {params.objective}"
        " --settings {params.settings:q}"
        " --device {params.device}"
        " --threads {threads}"
        " > {log:q} 2>&1"
