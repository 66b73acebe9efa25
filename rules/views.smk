# The pictures that rows start from, made once per front. Clean twins are an input of oracle fronts alone.


rule views_make:
    input:
        unpack(plan.views.inputs),
    output:
        views=at("views"),
    priority: 1
    resources:
        mem_mb=plan.grows(3000),
        runtime=plan.grows(15),
    params:
        options=plan.views.options,
        settings=plan.views.settings,
    shell:
        plan.job("views make" " {params.options:q}" " --out {output.views:q}" " --settings {params.settings:q}")
