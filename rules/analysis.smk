# The paper's read-only studies. They open clean twins for analysis only; nothing downstream reads what they write.


rule analysis_rank_one:
    input:
        source=plan.analysis.every("source"),
        clean=plan.analysis.every("clean"),
        base=plan.analysis.every("base"),
    output:
        multiext(at("study", study="rank_one", file=""), "table.csv", "result.json", "result.txt", "figure.pdf"),
        report(
            at("study", study="rank_one", file="figure.png"),
            category="Studies",
            labels={"study": "rank_one"},
            caption="captions/study.rst",
        ),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    params:
        options=plan.analysis.options("source", "clean", "base"),
        folder=subpath(output[0], parent=True),
    shell:
        plan.job("analysis rank-one" " {params.options:q}" " --out {params.folder:q}")


rule analysis_base_fidelity:
    input:
        source=plan.analysis.every("source"),
        clean=plan.analysis.every("clean"),
        base=plan.analysis.every("base"),
    output:
        multiext(at("study", study="base_fidelity", file=""), "table.csv", "result.json", "result.txt", "figure.pdf"),
        report(
            at("study", study="base_fidelity", file="figure.png"),
            category="Studies",
            labels={"study": "base_fidelity"},
            caption="captions/study.rst",
        ),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    params:
        options=plan.analysis.options("source", "clean", "base"),
        folder=subpath(output[0], parent=True),
    shell:
        plan.job("analysis base-fidelity" " {params.options:q}" " --out {params.folder:q}")


rule analysis_observability:
    input:
        source=plan.analysis.every("source"),
        clean=plan.analysis.every("clean"),
        base=plan.analysis.every("base"),
        actions=plan.analysis.every("actions"),
    output:
        multiext(at("study", study="observability", file=""), "table.csv", "result.json", "result.txt", "figure.pdf"),
        report(
            at("study", study="observability", file="figure.png"),
            category="Studies",
            labels={"study": "observability"},
            caption="captions/study.rst",
        ),
    resources:
        mem_mb=plan.grows(6000),
        runtime=plan.grows(60),
    params:
        options=plan.analysis.options("source", "clean", "base", "actions"),
        folder=subpath(output[0], parent=True),
        settings=plan.settings("analysis"),
        fit_settings=plan.settings("actions"),
    shell:
        plan.job(
            "analysis observability"
            " {params.options:q}"
            " --out {params.folder:q}"
            " --settings {params.settings:q}"
            " --fit-settings {params.fit_settings:q}"
        )


rule analysis_family:
    input:
        source=plan.analysis.every("source"),
        actions=plan.analysis.every("actions"),
    output:
        multiext(at("study", study="family", file=""), "table.csv", "result.json", "result.txt", "figure.pdf"),
        report(
            at("study", study="family", file="figure.png"),
            category="Studies",
            labels={"study": "family"},
            caption="captions/study.rst",
        ),
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    params:
        options=plan.analysis.options("source", "actions"),
        folder=subpath(output[0], parent=True),
        settings=plan.settings("analysis"),
    shell:
        plan.job("analysis family" " {params.options:q}" " --out {params.folder:q}" " --settings {params.settings:q}")


rule analysis_inverse:
    input:
        captures=plan.synthesis.captures,
        draws=plan.evaluate.recipe_draws,
    output:
        multiext(at("study", study="inverse", file=""), "table.csv", "result.json", "result.txt", "figure.pdf"),
        report(
            at("study", study="inverse", file="figure.png"),
            category="Studies",
            labels={"study": "inverse"},
            caption="captions/study.rst",
        ),
    resources:
        mem_mb=plan.grows(2000),
        runtime=plan.grows(10),
    params:
        folder=subpath(output[0], parent=True),
    shell:
        plan.job("analysis inverse" " {input.captures:q}" " --draws {input.draws:q}" " --out {params.folder:q}")
