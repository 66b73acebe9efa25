# A scene developed for one variant. Clean twins are an input of oracle variants alone.
from fujinsplat.develop.plan import DevelopPlan

development = DevelopPlan(plan)


rule develop_scene:
    input:
        source=development.part("source"),
        base=development.part("base"),
        controller=development.part("controller"),
        actions=development.part("actions"),
        clean=development.part("clean"),
    output:
        developed="results/{dataset}/developed/{scene}/{variant}.safetensors",
        summary="results/{dataset}/developed/{scene}/{variant}.json",
        sheet=report(
            "results/{dataset}/developed/{scene}/{variant}.png",
            category="Developed views",
            subcategory="{scene}",
            labels={"variant": "{variant}"},
            caption="captions/developed.rst",
        ),
    log:
        "results/{dataset}/logs/develop/{scene}.{variant}.log",
    benchmark:
        "results/{dataset}/benchmarks/develop/{scene}.{variant}.tsv"
    priority: 1
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(3000),
        runtime=plan.grows(15),
    params:
        options=development.options,
    shell:
        "fujinsplat develop scene"
        " {params.options:q}"
        " --out {output.developed:q}"
        " --summary {output.summary:q}"
        " --sheet {output.sheet:q}"
        " --device cpu"
        " --threads {threads}"
        " > {log:q} 2>&1"
