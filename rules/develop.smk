# A colour action for every view of a row, from what its correction opens.


rule develop_scene:
    input:
        unpack(plan.develop.inputs),
    output:
        developed=at("developed"),
        summary=at("developed_summary"),
        sheet=report(
            at("developed_sheet"),
            category="Developed views",
            subcategory="{scene}",
            labels={"variant": "{variant}"},
            caption="captions/developed.rst",
        ),
    priority: 1
    resources:
        mem_mb=plan.grows(3000),
        runtime=plan.grows(15),
    params:
        options=plan.develop.options,
        settings=plan.develop.settings,
    shell:
        plan.job(
            "develop scene"
            " {params.options:q}"
            " --out {output.developed:q}"
            " --summary {output.summary:q}"
            " --sheet {output.sheet:q}"
            " --settings {params.settings:q}"
        )
