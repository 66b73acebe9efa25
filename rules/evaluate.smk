# Scores of the rendered held views, then the paper's tables. Held views are opened here and nowhere before.
from fujinsplat.evaluate.plan import EvaluationPlan

evaluation = EvaluationPlan(plan)


rule evaluate_score:
    input:
        renders="results/{dataset}/renders/{scene}/{variant}",
        model="results/{dataset}/gaussians/{scene}/{variant}.ply",
        training="results/{dataset}/gaussians/{scene}/{variant}.log.jsonl",
        held="results/{dataset}/capture/{scene}/held",
        train=evaluation.train_views,
    output:
        csv="results/{dataset}/metrics/{scene}/{variant}.csv",
        json="results/{dataset}/metrics/{scene}/{variant}.json",
    log:
        "results/{dataset}/logs/evaluate/{scene}.{variant}.log",
    benchmark:
        "results/{dataset}/benchmarks/evaluate/{scene}.{variant}.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(6000),
        runtime=plan.grows(30),
        gpu=plan.gpu,
    params:
        train=evaluation.train_options,
        about=evaluation.about,
        settings=evaluation.score_settings,
        device=plan.device,
    shell:
        "fujinsplat evaluate score"
        " --renders {input.renders:q}"
        " --held {input.held:q}"
        " {params.train:q}"
        " --model {input.model:q}"
        " --training-log {input.training:q}"
        " --about {params.about:q}"
        " --out {output.csv:q}"
        " --settings {params.settings:q}"
        " --device {params.device}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule evaluate_table:
    input:
        evaluation.table_inputs,
    output:
        csv=report(
            "results/{dataset}/tables/{table}.csv",
            category="Tables",
            labels={"table": "{table}"},
            caption="captions/table.rst",
        ),
        md="results/{dataset}/tables/{table}.md",
        tex="results/{dataset}/tables/{table}.tex",
    log:
        "results/{dataset}/logs/evaluate/table.{table}.log",
    benchmark:
        "results/{dataset}/benchmarks/evaluate/table.{table}.tsv"
    wildcard_constraints:
        table="[a-z_]+",
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(500),
        runtime=plan.grows(5),
    params:
        results=lambda wildcards: f"results/{wildcards.dataset}",
        outline=evaluation.table_outline,
    shell:
        "fujinsplat evaluate tables"
        " {params.results:q}"
        " --table {wildcards.table}"
        " --outline {params.outline:q}"
        " > {log:q} 2>&1"
