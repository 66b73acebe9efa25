"""The tables: the paper's own numbers, ranks, gaps, repeats, and three formats of the same content."""

import csv
import io
import re
import shutil
import subprocess

import pytest

from fujinsplat.actions.population import Fit, Pair, Population
from fujinsplat.actions.population import save as save_population
from fujinsplat.core.errors import UserError
from fujinsplat.core.files import write_json
from fujinsplat.evaluate.paper import published, role_of
from fujinsplat.evaluate.tables import TABLES, build_table, write_table
from fujinsplat.evaluate.tables.formats import as_csv, as_latex, as_markdown
from fujinsplat.evaluate.tables.model import Table
from fujinsplat.rows.registries import AllSettings

from .conftest import row_facts

SCENES = published()["scenes"]
METRICS = ("psnr", "ssim", "lpips")


def lines(table: Table) -> dict[tuple[str, str], list]:
    """`{(title, second cell): rest of the row}`, without the source of its numbers; a blank title is the one above."""
    found, title = {}, ""
    for row in table.rows:
        title = row.cells[0].text() or title
        found[title, row.cells[1].text()] = [cell for cell in row.cells[2:] if cell.value not in ("run here", "quoted")]
    return found


def values(cells) -> list:
    return [cell.value for cell in cells]


# the paper's own numbers


def test_the_papers_means_follow_from_its_per_scene_values():
    """Per-scene values are printed with two decimals, so a mean of them is known to half a unit of the last one."""
    ours = published()["rows"]["method"]["psnr"]
    assert sum(ours) / 8 == pytest.approx(18.42, abs=0.005)
    assert SCENES[0] == published()["excluded_from_seven"]
    assert sum(ours[1:]) / 7 == pytest.approx(18.2083, abs=0.005)
    assert round(sum(ours[1:]) / 7, 2) == round(18.2083, 2)


@pytest.mark.parametrize("row", [*published()["baselines"], *published()["rows"].values()], ids=lambda row: row["name"])
def test_every_quoted_mean_follows_from_its_row(row):
    for metric, unit in (("psnr", 0.01), ("ssim", 0.001), ("lpips", 0.001)):
        assert len(row[metric]) == 8
        assert sum(row[metric]) / 8 == pytest.approx(row["mean"][metric], abs=unit / 2 + 1e-9)


@pytest.mark.parametrize("study, unit", [("base_fidelity", 0.01), ("rank_one", 0.0001)])
def test_quoted_study_means_follow_from_their_rows(study, unit):
    table = published()[study]
    for key in table[SCENES[0]]:
        mean = table["mean"][key]
        assert sum(table[scene][key] for scene in SCENES) / 8 == pytest.approx(mean, abs=unit / 2 + 1e-9)


def test_quoted_tables_agree_with_each_other():
    for key in ("raw_base", "curves_only", "couplings_only", "no_delta", "method"):
        for metric in ("psnr", "ssim"):
            assert published()["ablation"][key][metric] == published()["rows"][key]["mean"][metric]
    adopted = published()["capacity"][-1]
    assert [adopted[metric] for metric in METRICS] == [published()["rows"]["method"]["mean"][m] for m in METRICS]


# roles


@pytest.mark.parametrize(
    "line, expected",
    [
        ("FujinSplat", "method"),
        ("w/o Δ-ISP", "no_delta"),
        ("RGB input", "rgb_input"),
        ("K=9", "capacity"),
        ("M=32", "capacity"),
        ("RAW base only", "raw_base"),
        ("RGB base only", "rgb_base"),
        ("ConvIR", "baseline"),
        (None, None),
    ],
)
def test_a_rows_role_follows_from_the_line_it_is_compared_with(line, expected):
    assert role_of(line) == expected
    assert row_facts({"row": {"paper": line}})["row"].role == expected


def test_every_line_of_the_paper_has_a_place_in_some_table():
    """The ablation's roles, sizes of the colour flow, and methods of the main table."""
    named = {"method", *published()["rows"], *published()["ablation"], "capacity", "baseline"}
    lines = [row["name"] for row in (*published()["rows"].values(), *published()["baselines"])]
    assert len(lines) == 14 and {role_of(line) for line in lines} <= named


def test_rows_of_our_own_and_oracles_are_compared_with_nothing(outline):
    rows = outline(["Yama"]).rows
    assert rows["fitted_labels"].role is None and not rows["fitted_labels"].oracle
    assert rows["oracle"].role is None and rows["oracle"].oracle
    assert [name for name, row in rows.items() if row.oracle] == ["oracle"]


# RealX3D: the paper's numbers scene by scene, in columns of their own


@pytest.fixture
def realx3d(tmp_path, outline, plant):
    """The paper's own method row, planted as if it had been measured here."""
    row = published()["rows"]["method"]
    for i, scene in enumerate(SCENES):
        plant(tmp_path, scene, "ours", *(row[metric][i] for metric in METRICS), train=18.45)
    return tmp_path, outline(SCENES, "realx3d", excluded_from_seven="Akikaze")


def test_main_table_ranks_as_the_paper_colours_it(realx3d, outline, plant):
    """Its baselines planted as if they had been run here, too."""
    results, _ = realx3d
    specs = {
        f"other{i}": {"title": row["name"], "paper": row["name"]} for i, row in enumerate(published()["baselines"])
    }
    for name, row in zip(specs, published()["baselines"], strict=True):
        for i, scene in enumerate(SCENES):
            plant(results, scene, name, *(row[metric][i] for metric in METRICS))
    specs["ours"] = {"title": "FujinSplat", "correction": "controller", "paper": "FujinSplat"}
    table = lines(build_table("main", outline(SCENES, rows=row_facts(specs)), results))
    ranks = {key: [cell.rank for cell in cells[:9]] for key, cells in table.items()}
    assert ranks["FujinSplat", "PSNR ↑"] == [1] * 9
    assert ranks["FujinSplat", "LPIPS ↓"] == [2, 1, None, None, 1, 2, 2, 2, 2]
    assert ranks["FujinSplat", "SSIM ↑"] == [2, 1, 2, None, 1, 1, 2, 1, 1]
    assert ranks["ConvIR", "PSNR ↑"] == [2, 3, 2, 2, None, 3, 2, None, 2]
    assert ranks["I2-NeRF", "SSIM ↑"][7] == 2
    assert table["FujinSplat", "PSNR ↑"][8].value == pytest.approx(18.42, abs=0.005)


def test_quoted_rows_are_marked_as_quoted(realx3d):
    results, outline = realx3d
    table = build_table("main", outline, results)
    quoted = [row for row in table.rows if row.note == "quoted"]
    assert len(quoted) == 3 * 8
    assert "ConvIR†" in as_markdown(table) and "† quoted from the paper" in as_markdown(table)
    sources = {row["Method"]: row["source"] for row in csv.DictReader(io.StringIO(as_csv(table))) if row["Method"]}
    assert sources["ConvIR"] == "quoted" and sources["FujinSplat"] == "ours"


@pytest.mark.parametrize("name", ["main", "seven_scenes", "ablation", "ablation_per_scene", "capacity"])
def test_what_is_quoted_and_what_is_measured_share_no_column_on_the_papers_scenes(realx3d, name):
    results, outline = realx3d
    table = build_table(name, outline, results)
    assert table.published == {i for i, header in enumerate(table.headers) if header.startswith("RealX3D (paper)")}
    for row in table.rows:
        for i, cell in enumerate(row.cells):
            if i in table.published:
                assert cell.rank is None and cell.deviation is None
            elif row.note == "quoted":
                assert not isinstance(cell.value, float), (name, table.headers[i])
    if name in ("main", "ablation_per_scene"):
        ours = lines(table)["FujinSplat", "PSNR ↑"]
        assert values(ours[9:]) == [*published()["rows"]["method"]["psnr"], 18.42]


def test_seven_scenes_leave_out_the_excluded_one(realx3d):
    results, outline = realx3d
    table = build_table("seven_scenes", outline, results)
    assert table.rows[-1].cells[0].text() == "FujinSplat"
    assert table.rows[-1].cells[1].value == pytest.approx(18.2083, abs=0.005)
    quoted = {row.cells[0].text(): row.cells[3].text() for row in table.rows if row.note == "quoted"}
    assert quoted["GenSmoke-GS"] == "20.2061"
    assert quoted["SmokeGS-R (its authors' repository)"] == "15.209", "the paper has no line of it"


@pytest.mark.parametrize("count, words", [(1, "1 scene"), (2, "2 scenes")])
def test_titles_count_scenes_as_people_do(realx3d, count, words):
    results, outline = realx3d
    few = outline.model_copy(update={"scenes": [s for s in SCENES if s != outline.excluded_from_seven][:count]})
    assert build_table("overview", few, results).title.endswith(f", {words}")
    assert f" over {words} of " in build_table("seven_scenes", few, results).title


def test_run_time_comes_from_the_benchmarks(realx3d):
    results, outline = realx3d
    for scene in SCENES:
        jobs = {
            f"isp/calibrate/{scene}": 60,
            f"views/make/base.{scene}": 30,
            f"views/make/camera.{scene}": 9999,
            f"develop/scene/{scene}.ours": 15,
        }
        jobs |= {f"splat/train/{scene}.ours": 1200, f"splat/train/{scene}.raw_base": 9999}
        jobs |= {f"splat/train/{scene}.ours@2": 9999, f"render/held/{scene}.ours": 9999}
        for job, seconds in jobs.items():
            path = results / "benchmarks" / f"{job}.tsv"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:00\t-\n")
    table = build_table("seven_scenes", outline, results)
    assert table.rows[-1].cells[2].text() == "21.8 min" and table.timed == {2}
    timed = build_table("baselines", outline, results)
    assert [timed.headers[i] for i in sorted(timed.timed)] == ["Minutes per scene", "Peak memory, GB"]


# another dataset: the paper's numbers in columns of their own


def test_elsewhere_published_numbers_are_columns_and_never_ranked(tmp_path, outline, plant):
    for scene in ("Yama", "Kawa"):
        plant(tmp_path, scene, "ours", 20.0)
        plant(tmp_path, scene, "raw_base", 12.0)
    for name in ("main", "ablation", "ablation_per_scene", "capacity", "seven_scenes"):
        table = build_table(name, outline(["Yama", "Kawa"]), tmp_path)
        assert table.published, name
        for row in table.rows:
            for i, cell in enumerate(row.cells):
                if i in table.published:
                    assert "paper" in table.headers[i] and cell.rank is None
                elif row.note == "quoted" and table.headers[i] in ("Yama", "Kawa", "Avg.", "PSNR ↑"):
                    assert cell.value == "", (name, table.headers[i])
    main = lines(build_table("main", outline(["Yama", "Kawa"]), tmp_path))
    assert values(main["FujinSplat", "PSNR ↑"]) == pytest.approx([20, 20, 20, 18.42])
    assert [cell.rank for cell in main["FujinSplat", "PSNR ↑"]] == [1, 1, 1, None]
    assert values(main["ConvIR", "PSNR ↑"]) == ["", "", "", 15.85]


# gaps, repeats, oracles


def test_a_missing_score_is_a_gap_and_spoils_no_mean(tmp_path, outline, plant):
    plant(tmp_path, "Yama", "ours", 20.0, lpips=None)
    table = lines(build_table("main", outline(["Yama", "Kawa"]), tmp_path))
    assert values(table["FujinSplat", "PSNR ↑"]) == [pytest.approx(20), None, None, 18.42]
    assert values(table["FujinSplat", "LPIPS ↓"])[0] is None
    assert values(table["RAW base only", "PSNR ↑"])[:3] == [None] * 3


@pytest.mark.parametrize("name", TABLES)
def test_every_table_stands_without_any_result(tmp_path, outline, name):
    for scenes in (["Yama"], SCENES):
        write_table(build_table(name, outline(scenes), tmp_path), tmp_path / "tables")
        assert {path.suffix for path in (tmp_path / "tables").glob(f"{name}.*")} == {".csv", ".md", ".tex"}


def test_repeats_show_mean_and_deviation(tmp_path, outline, plant):
    for scene in ("Yama", "Kawa"):
        for repeat, psnr in enumerate((19.0, 20.0, 21.0), start=1):
            plant(tmp_path, scene, "ours" if repeat == 1 else f"ours@{repeat}", psnr)
    once = outline(["Yama", "Kawa"])
    rows = {name: row.model_copy(update={"seeds": 3}) if name == "ours" else row for name, row in once.rows.items()}
    build = outline(["Yama", "Kawa"], rows=rows)
    table = build_table("main", build, tmp_path)
    cell = lines(table)["FujinSplat", "PSNR ↑"][-2]
    assert (cell.value, cell.deviation) == (pytest.approx(20), pytest.approx(1))
    assert cell.text() == "20.00 ± 1.00"
    rows = list(csv.DictReader(io.StringIO(as_csv(table))))
    assert float(rows[0]["Avg. deviation"]) == pytest.approx(1, abs=1e-5)
    assert "± sample standard deviation over seeds" in as_markdown(table)
    (line,) = [line for line in as_markdown(build_table("overview", build, tmp_path)).splitlines() if "`ours`" in line]
    assert "| 20.00 ± 1.00 |" in line and "| 3 |" in line
    plant(tmp_path, "Yama", "raw_base", 12.0)
    plant(tmp_path, "Kawa", "raw_base", 13.0)
    base, ours = ([cell.text() for cell in row.cells] for row in build_table("recipes", build, tmp_path).rows)
    assert base[:6] == ["RAW base only", "1", "12.00", "13.00", "12.50", "–"]
    assert ours[:6] == ["FujinSplat", "3", "20.00 ± 1.00", "20.00 ± 1.00", "20.00 ± 1.00", "7.50"]
    # files of other seeds that the build does not ask for are not in its tables
    assert "±" not in as_markdown(build_table("overview", once, tmp_path))


def test_oracles_are_shown_and_never_ranked(tmp_path, outline, plant):
    plant(tmp_path, "Yama", "oracle", 40.0)
    plant(tmp_path, "Yama", "ours", 20.0)
    plant(tmp_path, "Yama", "raw_base", 10.0)
    for name in ("main", "ablation"):
        table = build_table(name, outline(["Yama"]), tmp_path)
        best = [row for row in table.rows if row.note == "oracle"]
        assert best and all(cell.rank is None for row in best for cell in row.cells)
        assert any(cell.rank == 1 and cell.value == pytest.approx(20) for row in table.rows for cell in row.cells)


def test_ablation_shows_parts_and_train_psnr(tmp_path, outline, plant):
    plant(tmp_path, "Yama", "ours", 20.0, train=21.5)
    table = build_table("ablation", outline(["Yama"]), tmp_path)
    row = next(row for row in table.rows if row.cells[0].text() == "FujinSplat")
    assert [cell.text() for cell in row.cells[1:5]] == ["✓"] * 4
    assert [cell.text() for cell in row.cells[5:7]] == ["21.50", "20.00"]
    assert [row.cells[0].text() for row in table.rows][:3] == ["RAW base only", "rgb_input", "curves_only"]


def test_capacity_has_a_row_for_every_size_tried_or_published(tmp_path, outline, plant):
    plant(tmp_path, "Yama", "k5", 18.0)
    table = build_table("capacity", outline(["Yama"]), tmp_path)
    sizes = {(row.cells[1].text(), row.cells[2].text()): row.cells[3].value for row in table.rows}
    assert sizes["5", "16"] == pytest.approx(18) and sizes["7", "32"] is None
    assert len(sizes) == len(table.rows) == 7


def test_settings_table_shows_what_is_used_beside_what_the_paper_used(tmp_path, outline):
    used = AllSettings(splat={"iterations": 3600}, controller={"steps": 77})
    table = build_table("settings", outline(["Yama"], settings=used.model_dump(mode="json")), tmp_path)
    rows = {row.cells[0].text(): row for row in table.rows}
    assert (rows["Controller"].cells[3].text(), rows["Controller"].cells[6].text()) == ("77", "1500")
    assert (rows["3DGS"].cells[3].text(), rows["3DGS"].cells[6].text()) == ("3600", "18000")
    assert rows["Δ-ISP"].cells[3].text() == "2600–3200"
    assert rows["3DGS"].cells[2].text() == "horizon 18000; others 3DGS defaults"
    assert rows["3DGS"].cells[5].text() == "3DGS defaults"
    used = AllSettings(splat={"lr_means": 0.0016, "lr_sh0": 0.02})
    changed = build_table("settings", outline(["Yama"], settings=used.model_dump(mode="json")), tmp_path).rows[3]
    assert changed.cells[2].text() == "means 0.0016, horizon 18000, sh0 0.02; others 3DGS defaults"


def test_study_tables_show_what_the_studies_wrote(tmp_path, outline):
    rows = [{"scene": "Yama", "clean_psnr": 12.0, "hazy_clean_psnr": 11.0}, {"scene": "Kawa", "clean_psnr": 14.0}]
    write_json(tmp_path / "analysis" / "base_fidelity" / "result.json", {"table": rows})
    for scene, psnr in (("Yama", 25.0), ("Kawa", 27.0)):
        write_json(tmp_path / "base" / f"{scene}.json", {"hazy_psnr": psnr, "hazy_ssim": 0.9})
    table = build_table("base_fidelity", outline(["Yama", "Kawa"]), tmp_path)
    assert [cell.text() for cell in table.rows[0].cells[:5]] == ["Yama", "25.00", "0.900", "12.00", "11.00"]
    assert [cell.text() for cell in table.rows[-1].cells[1:]] == [
        *("26.00", "0.900", "13.00", "–"),
        *("25.37", "0.970", "12.32", "11.57"),
    ]
    write_json(tmp_path / "analysis" / "rank_one" / "result.json", {"table": [{"scene": "Yama", "rho1_p1": 0.98765}]})
    table = build_table("rank_one", outline(["Yama", "Kawa"]), tmp_path)
    assert [row.cells[1].text() for row in table.rows] == ["0.9877", "–", "–"]


def test_population_table_shows_measured_and_published_medians(tmp_path, outline):
    pairs = [
        Pair(scene=scene, view="1", white_balance=(2, 1, 1.5), raw=Fit(t=t, pivot=(0.1, t, 0.3), clean_median=0.2))
        for scene, t in (("Yama", 0.4), ("Kawa", 0.5), ("Kawa", 0.9))
    ]
    save_population(tmp_path / "population.json", Population.of(pairs, []))
    table = build_table("population", outline(["Yama", "Kawa"]), tmp_path)
    rows = [dict(zip(table.headers, (cell.text() for cell in row.cells), strict=True)) for row in table.rows]
    assert [row["pairs"] for row in rows] == ["1", "2", "3"]
    assert [row["t (RAW)"] for row in rows] == ["0.400", "0.700", "0.500"]
    assert rows[-1]["pivot (RAW)"] == "0.100 0.500 0.300" and rows[-1]["t range (RAW)"] == "0.40–0.90"
    assert rows[0]["ratio (RAW)"] == "1.333" and rows[0]["t (base)"] == "–"
    quoted = [value for name, value in rows[-1].items() if name.startswith("RealX3D (paper)")]
    assert quoted == ["0.360", "0.15–0.90", "0.0538", "1.510"]
    assert not [value for name, value in rows[0].items() if name.startswith("RealX3D (paper)") and value != "–"]
    realx3d = build_table("population", outline(SCENES), tmp_path)
    column = realx3d.headers.index("RealX3D (paper): t (RAW)")
    assert [row.cells[column].text() for row in realx3d.rows[:3]] == ["0.337", "0.289", "0.612"]


def test_the_compiled_inverse_stands_beside_what_the_paper_says_of_it(tmp_path, outline):
    row = {"contrast": 0.36, "nothing": 13.04, "published": 28.12, "fitted": 41.96}
    row |= {"published_round_trip": 298.7, "fitted_round_trip": 300.0}
    write_json(tmp_path / "analysis" / "inverse" / "result.json", {"table": [row]})
    (line,) = build_table("inverse", outline(["Yama"]), tmp_path).rows
    texts = [cell.text() for cell in line.cells]
    assert texts == ["0.36", "13.0", "28.1", "42.0", "299", "300", "to numerical precision"]


def test_a_damaged_score_file_is_named(tmp_path, outline):
    path = tmp_path / "metrics" / "Yama" / "ours.csv"
    path.parent.mkdir(parents=True)
    path.write_text("split,view,psnr\nheld,0001,fine\n")
    with pytest.raises(UserError, match=r"ours.csv is not a score file"):
        build_table("main", outline(["Yama"]), tmp_path)
    with pytest.raises(UserError, match=r"no table 'ablaton'; did you mean 'ablation'"):
        build_table("ablaton", outline(["Yama"]), tmp_path)


# formats


def test_formats_hold_the_same_numbers(realx3d):
    results, outline = realx3d
    table = build_table("main", outline, results)
    cells = [cell for row in table.rows for cell in row.cells if isinstance(cell.value, float)]
    for text in (as_markdown(table), as_latex(table)):
        numbers = [float(n) for n in re.findall(r"(?<=[ {}*|])\d+\.\d+", text)]
        assert numbers == pytest.approx([round(cell.value, cell.digits) for cell in cells])
    assert len([v for row in csv.reader(io.StringIO(as_csv(table))) for v in row if re.fullmatch(r"[\d.]+", v)]) == len(
        cells
    )


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="no pdflatex here: apt-get install texlive-latex-recommended"
)
def test_latex_compiles(tmp_path, outline, plant, realx3d):
    for scene in ("Yama_1", "Kawa & Sons"):
        plant(tmp_path, scene, "ours", 20.0)
        plant(tmp_path, scene, "ours@2", 21.0)
    folder = tmp_path / "tex"
    body = []
    builds = {"other_one": outline(["Yama_1", "Kawa & Sons"], "other_one"), "realx3d": realx3d[1]}
    for where, build in builds.items():
        for name in TABLES:
            write_table(build_table(name, build, tmp_path), folder / where)
            body.append(rf"\input{{{where}/{name}}}")
    head = r"\documentclass{article}\usepackage[T1]{fontenc}\usepackage{booktabs}\usepackage[table]{xcolor}"
    head += r"\usepackage{graphicx}\usepackage{amssymb}\extrafloats{50}\begin{document}"
    (folder / "all.tex").write_text(head + "\n" + "\n".join(body) + "\n\\end{document}\n")
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"],
        cwd=folder,
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    assert (folder / "all.pdf").stat().st_size > 20_000
