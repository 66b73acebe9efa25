#!/usr/bin/env bash
# Snakemake runs a copy of this in the new environment, from the folder it works in; jobs never compile.
set -euo pipefail
if [ ! -f fujinsplat/warmup.py ]; then
    echo "fujinsplat: $PWD is not a checkout of FujinSplat, so gsplat's kernels are not compiled; run \`$(command -v python) -m fujinsplat.warmup\` in the checkout" >&2
    exit 0
fi
PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" python -m fujinsplat.warmup
