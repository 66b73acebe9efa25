# Pictures at held poses (scored later) and at source poses (train-view PSNR). Poses and the model are all they read.


rule render_held:
    input:
        model=rules.splat_train.output.model,
        cameras=rules.capture_source.output.cameras,
    output:
        directory("results/{dataset}/renders/{scene}/{variant}"),
    log:
        "results/{dataset}/logs/render/{scene}.{variant}.log",
    benchmark:
        "results/{dataset}/benchmarks/render/{scene}.{variant}.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(20),
        gpu=plan.gpu,
    params:
        device=plan.device,
    shell:
        "fujinsplat splat render"
        " --model {input.model:q}"
        " --cameras {input.cameras:q}"
        " --out {output:q}"
        " --views held"
        " --threads {threads}"
        " --device {params.device}"
        " > {log:q} 2>&1"


rule render_source:
    input:
        model=rules.splat_train.output.model,
        cameras=rules.capture_source.output.cameras,
    output:
        directory("results/{dataset}/renders_source/{scene}/{variant}"),
    log:
        "results/{dataset}/logs/render/{scene}.{variant}.source.log",
    benchmark:
        "results/{dataset}/benchmarks/render/{scene}.{variant}.source.tsv"
    conda:
        plan.conda
    threads: 1
    resources:
        mem_mb=plan.grows(4000),
        runtime=plan.grows(20),
        gpu=plan.gpu,
    params:
        device=plan.device,
    shell:
        "fujinsplat splat render"
        " --model {input.model:q}"
        " --cameras {input.cameras:q}"
        " --out {output:q}"
        " --views source"
        " --threads {threads}"
        " --device {params.device}"
        " > {log:q} 2>&1"
