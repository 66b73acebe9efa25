# The smoke of one scene from its own views: no clean twin, no held view, no external capture.


rule smoke_points:
    input:
        source=rules.capture_source.output.views,
        cameras=rules.capture_source.output.cameras,
    output:
        points=at("view_points"),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    shell:
        plan.job("smoke points" " --source {input.source:q}" " --cameras {input.cameras:q}" " --out {output.points:q}")


rule smoke_estimate:
    input:
        source=rules.capture_source.output.views,
        cameras=rules.capture_source.output.cameras,
        points=plan.smoke.points,
    output:
        smoke=at("smoke"),
        numbers=at("smoke_json"),
    priority: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(30),
    params:
        settings=plan.settings("smoke", of="smoke"),
    shell:
        plan.job(
            "smoke estimate"
            " --source {input.source:q}"
            " --cameras {input.cameras:q}"
            " --points {input.points:q}"
            " --out {output.smoke:q}"
            " --numbers {output.numbers:q}"
            " --settings {params.settings:q}"
        )


rule smoke_show:
    input:
        smoke=rules.smoke_estimate.output.smoke,
        source=rules.capture_source.output.views,
        cameras=rules.capture_source.output.cameras,
        base=plan.versioned("base", of="smoke"),
    output:
        figure=report(
            at("smoke_figure"),
            category="Smoke",
            labels={"scene": "{scene}"},
            caption="captions/smoke.rst",
        ),
        airlight=at("smoke_airlight"),
        prints=[at("smoke_print"), at("smoke_airlight_print")],
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    shell:
        plan.job(
            "smoke show"
            " {input.smoke:q}"
            " --source {input.source:q}"
            " --cameras {input.cameras:q}"
            " --base {input.base:q}"
            " --out {output.figure:q}"
        )
