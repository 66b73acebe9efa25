# RAW, camera RGB, poses and points of one scene, decoded once. Each rule opens one part of the dataset. Poses and points
# that a scene does not bring are found by structure from motion.


rule capture_poses:
    input:
        files=plan.capture.files("source", "poses"),
    output:
        directory(at("poses")),
    threads: 4
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(240),
    params:
        root=plan.capture.root,
        settings=plan.settings("capture"),
        motion=plan.settings("motion"),
    shell:
        plan.job(
            "capture poses"
            " {params.root:q}"
            " {wildcards.scene:q}"
            " --out {output:q}"
            " --settings {params.settings:q}"
            " --motion {params.motion:q}"
        )


rule capture_source:
    input:
        files=plan.capture.files("source", "poses", "points"),
        found=plan.capture.found,
    output:
        views=directory(at("source")),
        cameras=at("cameras"),
        points=at("points"),
        manifest=at("manifest"),
    threads: 4
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    params:
        root=plan.capture.root,
        found=plan.capture.found_option,
        settings=plan.settings("capture"),
    shell:
        plan.job(
            "capture source"
            " {params.root:q}"
            " {wildcards.scene:q}"
            " --views {output.views:q}"
            " --cameras {output.cameras:q}"
            " --points {output.points:q}"
            " --manifest {output.manifest:q}"
            " {params.found:q}"
            " --settings {params.settings:q}"
        )


rule capture_clean:
    input:
        files=plan.capture.files("clean"),
        cameras=rules.capture_source.output.cameras,
    output:
        views=directory(at("clean")),
    threads: 4
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(60),
    params:
        root=plan.capture.root,
        settings=plan.settings("capture"),
    shell:
        plan.job(
            "capture clean"
            " {params.root:q}"
            " {wildcards.scene:q}"
            " --cameras {input.cameras:q}"
            " --out {output.views:q}"
            " --settings {params.settings:q}"
        )


rule capture_held:
    input:
        files=plan.capture.files("held"),
        cameras=rules.capture_source.output.cameras,
    output:
        views=directory(at("held")),
    threads: 2
    resources:
        mem_mb=plan.grows(1000),
        runtime=plan.grows(30),
    params:
        root=plan.capture.root,
    shell:
        plan.job(
            "capture held"
            " {params.root:q}"
            " {wildcards.scene:q}"
            " --cameras {input.cameras:q}"
            " --out {output.views:q}"
        )
