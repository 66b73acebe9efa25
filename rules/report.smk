# Figures, an interactive 3D view of each scene, and the report that holds everything in one file.


rule report_figure:
    input:
        plan.evaluate.figure_inputs,
    output:
        png=report(
            at("figure", format="png"),
            category="Figures",
            labels={"figure": "{figure}"},
            caption="captions/figure.rst",
        ),
        pdf=at("figure", format="pdf"),
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    params:
        results=RESULTS,
        outline=plan.evaluate.table_outline,
    shell:
        plan.job("report figures" " {params.results:q}" " --figure {wildcards.figure}" " --outline {params.outline:q}")


rule report_view:
    input:
        ply=plan.evaluate.view_model,
        cameras=rules.capture_source.output.cameras,
    output:
        report(
            at("view"),
            category="3D views",
            labels={"scene": "{scene}"},
            caption="captions/view.rst",
        ),
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    shell:
        plan.job(
            "report view"
            " {input.ply:q}"
            " --cameras {input.cameras:q}"
            " --title {wildcards.scene:q}"
            " --out {output:q}"
        )


rule report_view_of:
    input:
        ply=rules.splat_train.output.ply,
        cameras=rules.capture_source.output.cameras,
    output:
        at("view_of"),
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    params:
        title=plan.evaluate.view_title,
    shell:
        plan.job(
            "report view"
            " {input.ply:q}"
            " --cameras {input.cameras:q}"
            " --title {params.title:q}"
            " --out {output:q}"
        )


rule report_page:
    input:
        plan.evaluate.report_inputs,
    output:
        report(
            at("report"),
            category="Report",
            caption="captions/report.rst",
        ),
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    params:
        results=RESULTS,
        outline=plan.evaluate.table_outline,
    shell:
        plan.job("report page" " {params.results:q}" " --outline {params.outline:q}" " --out {output:q}")
