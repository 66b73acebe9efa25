# Developed views, poses and points to Gaussians: the linear model, and a PLY that looks right in any viewer.
# The checkpoints are no output, so a job that was killed continues where it stood.


rule splat_train:
    input:
        developed="results/{dataset}/developed/{scene}/{variant}.safetensors",
        cameras=rules.capture_source.output.cameras,
        points=rules.capture_source.output.points,
    output:
        ply="results/{dataset}/gaussians/{scene}/{variant}.ply",
        model="results/{dataset}/gaussians/{scene}/{variant}.linear.safetensors",
        log="results/{dataset}/gaussians/{scene}/{variant}.log.jsonl",
        alpha="results/{dataset}/gaussians/{scene}/{variant}.delta.json",
    log:
        "results/{dataset}/logs/splat/{scene}.{variant}.log",
    benchmark:
        "results/{dataset}/benchmarks/splat/{scene}.{variant}.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(8000),
        runtime=plan.grows(240),
        gpu=plan.gpu,
    params:
        checkpoints=lambda w: f"results/{w.dataset}/checkpoints/{w.scene}/{w.variant}",
        delta=plan.delta_option,
        settings=plan.settings("splat"),
        device=plan.device,
    shell:
        "fujinsplat splat train"
        " --developed {input.developed:q}"
        " --cameras {input.cameras:q}"
        " --points {input.points:q}"
        " --out {output.ply:q}"
        " --model {output.model:q}"
        " --log {output.log:q}"
        " --alpha {output.alpha:q}"
        " --checkpoints {params.checkpoints:q}"
        " {params.delta}"
        " --settings {params.settings:q}"
        " --threads {threads}"
        " --device {params.device}"
        " > {log:q} 2>&1"
