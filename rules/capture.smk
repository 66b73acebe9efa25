# RAW, camera RGB, poses and points of one scene, decoded once. Each rule opens one part of the dataset.


rule capture_source:
    input:
        files=plan.scene_files("source", "poses", "points"),
    output:
        views=directory("results/{dataset}/capture/{scene}/source"),
        cameras="results/{dataset}/capture/{scene}/cameras.json",
        points="results/{dataset}/capture/{scene}/points.ply",
        manifest="results/{dataset}/capture/{scene}/manifest.json",
    log:
        "results/{dataset}/logs/capture/{scene}.source.log",
    benchmark:
        "results/{dataset}/benchmarks/capture/{scene}.source.tsv"
    conda:
        plan.conda
    threads: 4
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    params:
        root=plan.root,
        settings=plan.settings("capture"),
    shell:
        "fujinsplat capture source"
        " {params.root:q}"
        " {wildcards.scene:q}"
        " --views {output.views:q}"
        " --cameras {output.cameras:q}"
        " --points {output.points:q}"
        " --manifest {output.manifest:q}"
        " --settings {params.settings:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule capture_clean:
    input:
        files=plan.scene_files("clean"),
        cameras=rules.capture_source.output.cameras,
    output:
        views=directory("results/{dataset}/capture/{scene}/clean"),
    log:
        "results/{dataset}/logs/capture/{scene}.clean.log",
    benchmark:
        "results/{dataset}/benchmarks/capture/{scene}.clean.tsv"
    conda:
        plan.conda
    threads: 4
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    params:
        root=plan.root,
        settings=plan.settings("capture"),
    shell:
        "fujinsplat capture clean"
        " {params.root:q}"
        " {wildcards.scene:q}"
        " --cameras {input.cameras:q}"
        " --out {output.views:q}"
        " --settings {params.settings:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"


rule capture_held:
    input:
        files=plan.scene_files("held"),
        cameras=rules.capture_source.output.cameras,
    output:
        views=directory("results/{dataset}/capture/{scene}/held"),
    log:
        "results/{dataset}/logs/capture/{scene}.held.log",
    benchmark:
        "results/{dataset}/benchmarks/capture/{scene}.held.tsv"
    conda:
        plan.conda
    threads: 2
    resources:
        mem_mb=plan.grows(1000),
        runtime=plan.grows(30),
    params:
        root=plan.root,
    shell:
        "fujinsplat capture held"
        " {params.root:q}"
        " {wildcards.scene:q}"
        " --cameras {input.cameras:q}"
        " --out {output.views:q}"
        " --threads {threads}"
        " > {log:q} 2>&1"
