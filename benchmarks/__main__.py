"""`python -m benchmarks [name …]`: run all `bench_*.py`, or those named, one after the other."""

import sys
from importlib import import_module
from pathlib import Path

from fujinsplat.core.runtime import use_threads


def main() -> None:
    use_threads(None)
    names = sys.argv[1:] or sorted(
        path.stem.removeprefix("bench_") for path in Path(__file__).parent.glob("bench_*.py")
    )
    for name in names:
        print(f"\n## {name}", flush=True)
        import_module(f"benchmarks.bench_{name}").main()


main()
