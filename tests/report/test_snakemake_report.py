"""`snakemake --report` on the finished build: every kind of main output under its category, with its caption."""

import re

CATEGORIES = ("Figures", "Tables", "3D views", "Report", "Studies", "Controllers", "Developed views", "Synthetic smoke")


def test_main_outputs_are_in_snakemakes_own_report(copy_of_build):
    copy_of_build.snakemake("--report", "snakemake.html")
    page = (copy_of_build.folder / "snakemake.html").read_text()
    missing = [name for name in CATEGORIES if f'"{name}"' not in page]
    assert not missing
    assert re.search(r"Source views of .{0,40}Hayate", page), "captions are filled in"
