# Labelled synthetic RAW: captures are decoded once, in independent shards; each recipe draws and makes its observations.


rule synthesis_network:
    output:
        folder=directory(at("network")),
    resources:
        mem_mb=plan.grows(1000),
        runtime=plan.grows(30),
    params:
        settings=plan.synthesis.some("depth_model", "depth_revision"),
    shell:
        plan.job("synthesis network" " --out {output.folder:q}" " --settings {params.settings:q}")


rule synthesis_base:
    input:
        sheet=plan.synthesis.sheet,
    output:
        matrix=at("external_base"),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(20),
    params:
        folder=plan.synthesis.folder,
        settings=plan.synthesis.some("calibration_captures"),
    shell:
        plan.job("synthesis base" " {params.folder:q}" " --out {output.matrix:q}" " --settings {params.settings:q}")


rule synthesis_sample:
    input:
        files=plan.synthesis.members,
        network=plan.synthesis.network,
    output:
        captures=at("captures"),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
        gpu=plan.synthesis.sample_gpu,
    params:
        folder=plan.synthesis.folder,
        network=plan.synthesis.network_option,
        settings=plan.synthesis.sample_settings,
    shell:
        plan.job(
            "synthesis sample"
            " {params.folder:q}"
            " --shard {wildcards.shard:q}"
            " {params.network:q}"
            " --out {output.captures:q}"
            " --settings {params.settings:q}"
        )


rule synthesis_draw:
    input:
        captures=plan.synthesis.captures,
        base=rules.synthesis_base.output.matrix,
        population=plan.synthesis.population,
        experts=plan.synthesis.experts,
        isps=plan.synthesis.isps,
    output:
        draws=at("draws"),
    priority: 1
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(20),
    params:
        recipe=plan.synthesis.recipe_option,
        experts=plan.synthesis.experts_option,
        isps=plan.synthesis.isps_option,
        settings=plan.synthesis.draw_settings,
    shell:
        plan.job(
            "synthesis draw"
            " {input.captures:q}"
            " --base {input.base:q}"
            " --population {input.population:q}"
            " {params.experts:q}"
            " {params.isps:q}"
            " --recipe {params.recipe:q}"
            " --out {output.draws:q}"
            " --settings {params.settings:q}"
        )


rule synthesis_observe:
    input:
        captures=rules.synthesis_sample.output.captures,
        draws=rules.synthesis_draw.output.draws,
    output:
        observations=at("observations"),
    priority: 1
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    shell:
        plan.job("synthesis observe" " {input.captures:q}" " --draws {input.draws:q}" " --out {output.observations:q}")


rule synthesis_gallery:
    input:
        sheet=plan.synthesis.sheet,
        captures=plan.synthesis.captures,
        draws=rules.synthesis_draw.output.draws,
        population=plan.synthesis.population,
        source=plan.synthesis.shown("source"),
        clean=plan.synthesis.shown("clean"),
    output:
        figure=report(
            at("gallery"),
            category="Synthetic smoke",
            labels={"recipe": "{recipe}"},
            caption="captions/gallery.rst",
        ),
        print=at("gallery_print"),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(10),
    params:
        folder=plan.synthesis.folder,
        captures=plan.synthesis.captures_option,
        views=plan.synthesis.shown_option,
    shell:
        plan.job(
            "synthesis gallery"
            " {params.folder:q}"
            " {params.captures:q}"
            " --draws {input.draws:q}"
            " --population {input.population:q}"
            " {params.views:q}"
            " --out {output.figure:q}"
        )
