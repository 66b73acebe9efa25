# Figures, an interactive 3D view of each scene, and the report that holds everything in one file.


rule report_figure:
    input:
        evaluation.figure_inputs,
    output:
        png=report(
            "results/{dataset}/figures/{figure}.png",
            category="Figures",
            labels={"figure": "{figure}"},
            caption="captions/figure.rst",
        ),
        pdf="results/{dataset}/figures/{figure}.pdf",
    log:
        "results/{dataset}/logs/report/{figure}.log",
    benchmark:
        "results/{dataset}/benchmarks/report/{figure}.tsv"
    wildcard_constraints:
        figure="[a-z_]+",
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    params:
        results=lambda wildcards: f"results/{wildcards.dataset}",
        outline=evaluation.table_outline,
    shell:
        "fujinsplat report figures"
        " {params.results:q}"
        " --figure {wildcards.figure}"
        " --outline {params.outline:q}"
        " > {log:q} 2>&1"


rule report_view:
    input:
        ply=evaluation.view_model,
        cameras="results/{dataset}/capture/{scene}/cameras.json",
    output:
        report(
            "results/{dataset}/viewer/{scene}.html",
            category="3D views",
            labels={"scene": "{scene}"},
            caption="captions/view.rst",
        ),
    log:
        "results/{dataset}/logs/report/view.{scene}.log",
    benchmark:
        "results/{dataset}/benchmarks/report/view.{scene}.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    shell:
        "fujinsplat report view"
        " {input.ply:q}"
        " --cameras {input.cameras:q}"
        " --title {wildcards.scene:q}"
        " --out {output:q}"
        " > {log:q} 2>&1"


rule report_page:
    input:
        evaluation.report_inputs,
    output:
        report(
            "results/{dataset}/report.html",
            category="Report",
            caption="captions/report.rst",
        ),
    log:
        "results/{dataset}/logs/report/page.log",
    benchmark:
        "results/{dataset}/benchmarks/report/page.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    params:
        results=lambda wildcards: f"results/{wildcards.dataset}",
        outline=evaluation.table_outline,
    shell:
        "fujinsplat report page"
        " {params.results:q}"
        " --outline {params.outline:q}"
        " --out {output:q}"
        " > {log:q} 2>&1"
