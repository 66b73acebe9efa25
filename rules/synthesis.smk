# Labelled synthetic RAW: captures are decoded once, in independent shards; each recipe draws and makes its observations.
from fujinsplat.synthesis.plan import SynthesisPlan

synthesis = SynthesisPlan(plan)


rule synthesis_network:
    output:
        folder=directory("results/{dataset}/synthetic/network"),
    log:
        "results/{dataset}/logs/synthesis/network.log",
    benchmark:
        "results/{dataset}/benchmarks/synthesis/network.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(1000),
        runtime=plan.grows(30),
    params:
        settings=synthesis.network_settings,
    shell:
        "fujinsplat synthesis network" " --out {output.folder:q}" " --settings {params.settings:q}" " > {log:q} 2>&1"


rule synthesis_base:
    input:
        sheet=synthesis.sheet,
    output:
        matrix="results/{dataset}/synthetic/base.json",
    log:
        "results/{dataset}/logs/synthesis/base.log",
    benchmark:
        "results/{dataset}/benchmarks/synthesis/base.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(20),
    params:
        folder=synthesis.folder,
        settings=synthesis.base_settings,
    shell:
        "fujinsplat synthesis base"
        " {params.folder:q}"
        " --out {output.matrix:q}"
        " --settings {params.settings:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule synthesis_sample:
    input:
        files=synthesis.members,
        network=synthesis.network,
    output:
        captures="results/{dataset}/synthetic/captures/{shard}.safetensors",
    log:
        "results/{dataset}/logs/synthesis/sample.{shard}.log",
    benchmark:
        "results/{dataset}/benchmarks/synthesis/sample.{shard}.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
        gpu=synthesis.sample_gpu,
    params:
        folder=synthesis.folder,
        network=synthesis.network_option,
        settings=synthesis.sample_settings,
        device=synthesis.sample_device,
    shell:
        "fujinsplat synthesis sample"
        " {params.folder:q}"
        " --shard {wildcards.shard}"
        " {params.network:q}"
        " --out {output.captures:q}"
        " --settings {params.settings:q}"
        " --device {params.device}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule synthesis_draw:
    input:
        captures=synthesis.captures,
        base=rules.synthesis_base.output.matrix,
        population=synthesis.population,
        experts=synthesis.experts,
        isps=synthesis.isps,
    output:
        draws="results/{dataset}/synthetic/{recipe}/draws.safetensors",
    log:
        "results/{dataset}/logs/synthesis/{recipe}/draw.log",
    benchmark:
        "results/{dataset}/benchmarks/synthesis/{recipe}/draw.tsv"
    priority: 1
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(20),
    params:
        recipe=synthesis.recipe_option,
        experts=synthesis.experts_option,
        isps=synthesis.isps_option,
        settings=synthesis.draw_settings,
    shell:
        "fujinsplat synthesis draw"
        " {input.captures:q}"
        " --base {input.base:q}"
        " --population {input.population:q}"
        " {params.experts:q}"
        " {params.isps:q}"
        " --recipe {params.recipe:q}"
        " --out {output.draws:q}"
        " --settings {params.settings:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule synthesis_observe:
    input:
        captures=rules.synthesis_sample.output.captures,
        draws=rules.synthesis_draw.output.draws,
    output:
        observations="results/{dataset}/synthetic/{recipe}/{shard}.safetensors",
    log:
        "results/{dataset}/logs/synthesis/{recipe}/observe.{shard}.log",
    benchmark:
        "results/{dataset}/benchmarks/synthesis/{recipe}/observe.{shard}.tsv"
    wildcard_constraints:
        shard=r"\d{4}",
    priority: 1
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    shell:
        "fujinsplat synthesis observe"
        " {input.captures:q}"
        " --draws {input.draws:q}"
        " --out {output.observations:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule synthesis_report:
    input:
        observations=synthesis.recipe_observations,
        draws=rules.synthesis_draw.output.draws,
    output:
        report="results/{dataset}/synthetic/{recipe}/report.json",
    log:
        "results/{dataset}/logs/synthesis/{recipe}/report.log",
    benchmark:
        "results/{dataset}/benchmarks/synthesis/{recipe}/report.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(1000),
        runtime=plan.grows(5),
    shell:
        "fujinsplat synthesis report"
        " {input.observations:q}"
        " --draws {input.draws:q}"
        " --out {output.report:q}"
        " > {log:q} 2>&1"


rule synthesis_gallery:
    input:
        sheet=synthesis.sheet,
        captures=synthesis.captures,
        draws=rules.synthesis_draw.output.draws,
        population=synthesis.population,
        source=synthesis.shown("source"),
        clean=synthesis.shown("clean"),
    output:
        figure=report(
            "results/{dataset}/synthetic/{recipe}/gallery.png",
            category="Synthetic smoke",
            labels={"recipe": "{recipe}"},
            caption="captions/gallery.rst",
        ),
        print="results/{dataset}/synthetic/{recipe}/gallery.pdf",
    log:
        "results/{dataset}/logs/synthesis/{recipe}/gallery.log",
    benchmark:
        "results/{dataset}/benchmarks/synthesis/{recipe}/gallery.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(10),
    params:
        folder=synthesis.folder,
        captures=synthesis.captures_option,
        views=synthesis.shown_option,
    shell:
        "fujinsplat synthesis gallery"
        " {params.folder:q}"
        " {params.captures:q}"
        " --draws {input.draws:q}"
        " --population {input.population:q}"
        " {params.views:q}"
        " --out {output.figure:q}"
        " > {log:q} 2>&1"
