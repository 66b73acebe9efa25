# The paper's read-only studies. They open clean twins for analysis only; nothing downstream reads what they write.
from fujinsplat.analysis.plan import AnalysisPlan

studies = AnalysisPlan(plan)


rule analysis_rank_one:
    input:
        source=studies.every("source"),
        clean=studies.every("clean"),
        base=studies.every("base"),
    output:
        multiext("results/{dataset}/analysis/rank_one/", "table.csv", "result.json", "result.txt", "figure.pdf"),
        report(
            "results/{dataset}/analysis/rank_one/figure.png",
            category="Studies",
            labels={"study": "rank_one"},
            caption="captions/study.rst",
        ),
    log:
        "results/{dataset}/logs/analysis/rank_one.log",
    benchmark:
        "results/{dataset}/benchmarks/analysis/rank_one.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    params:
        options=studies.options("source", "clean", "base"),
        folder=subpath(output[0], parent=True),
    shell:
        "fujinsplat analysis rank-one"
        " {params.options:q}"
        " --out {params.folder:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule analysis_base_fidelity:
    input:
        source=studies.every("source"),
        clean=studies.every("clean"),
        base=studies.every("base"),
    output:
        multiext("results/{dataset}/analysis/base_fidelity/", "table.csv", "result.json", "result.txt", "figure.pdf"),
        report(
            "results/{dataset}/analysis/base_fidelity/figure.png",
            category="Studies",
            labels={"study": "base_fidelity"},
            caption="captions/study.rst",
        ),
    log:
        "results/{dataset}/logs/analysis/base_fidelity.log",
    benchmark:
        "results/{dataset}/benchmarks/analysis/base_fidelity.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    params:
        options=studies.options("source", "clean", "base"),
        folder=subpath(output[0], parent=True),
    shell:
        "fujinsplat analysis base-fidelity"
        " {params.options:q}"
        " --out {params.folder:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule analysis_observability:
    input:
        source=studies.every("source"),
        clean=studies.every("clean"),
        base=studies.every("base"),
        actions=studies.every("actions"),
    output:
        multiext("results/{dataset}/analysis/observability/", "table.csv", "result.json", "result.txt", "figure.pdf"),
        report(
            "results/{dataset}/analysis/observability/figure.png",
            category="Studies",
            labels={"study": "observability"},
            caption="captions/study.rst",
        ),
    log:
        "results/{dataset}/logs/analysis/observability.log",
    benchmark:
        "results/{dataset}/benchmarks/analysis/observability.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(6000),
        runtime=plan.grows(60),
    params:
        options=studies.options("source", "clean", "base", "actions"),
        folder=subpath(output[0], parent=True),
        settings=plan.settings("analysis"),
        fit_settings=plan.settings("actions"),
    shell:
        "fujinsplat analysis observability"
        " {params.options:q}"
        " --out {params.folder:q}"
        " --settings {params.settings:q}"
        " --fit-settings {params.fit_settings:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule analysis_family:
    input:
        source=studies.every("source"),
        actions=studies.every("actions"),
    output:
        multiext("results/{dataset}/analysis/family/", "table.csv", "result.json", "result.txt", "figure.pdf"),
        report(
            "results/{dataset}/analysis/family/figure.png",
            category="Studies",
            labels={"study": "family"},
            caption="captions/study.rst",
        ),
    log:
        "results/{dataset}/logs/analysis/family.log",
    benchmark:
        "results/{dataset}/benchmarks/analysis/family.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    params:
        options=studies.options("source", "actions"),
        folder=subpath(output[0], parent=True),
        settings=plan.settings("analysis"),
    shell:
        "fujinsplat analysis family"
        " {params.options:q}"
        " --out {params.folder:q}"
        " --settings {params.settings:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"
