# Scores of the rendered held views, then the paper's tables. Held views are opened here and nowhere before.


rule evaluate_score:
    input:
        renders=rules.render_held.output[0],
        model=rules.splat_train.output.model,
        training=rules.splat_train.output.log,
        held=rules.capture_held.output.views,
        train=plan.evaluate.train_views,
        medium=plan.evaluate.medium_views,
    output:
        csv=at("scores"),
        json=at("scores_json"),
    resources:
        mem_mb=plan.grows(6000),
        runtime=plan.grows(30),
        gpu=plan.gpu,
    params:
        train=plan.evaluate.train_options,
        medium=plan.evaluate.medium_options,
        about=plan.evaluate.about,
        settings=plan.evaluate.score_settings,
    shell:
        plan.job(
            "evaluate score"
            " --renders {input.renders:q}"
            " --held {input.held:q}"
            " {params.train:q}"
            " {params.medium:q}"
            " --model {input.model:q}"
            " --training-log {input.training:q}"
            " --about {params.about:q}"
            " --out {output.csv:q}"
            " --settings {params.settings:q}"
        )


rule evaluate_table:
    input:
        plan.evaluate.table_inputs,
    output:
        csv=report(
            at("table", format="csv"),
            category="Tables",
            labels={"table": "{table}"},
            caption="captions/table.rst",
        ),
        md=at("table", format="md"),
        tex=at("table", format="tex"),
    resources:
        mem_mb=plan.grows(500),
        runtime=plan.grows(5),
    params:
        results=RESULTS,
        outline=plan.evaluate.table_outline,
    shell:
        plan.job("evaluate tables" " {params.results:q}" " --table {wildcards.table}" " --outline {params.outline:q}")
