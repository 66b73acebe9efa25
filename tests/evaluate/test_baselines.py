"""Methods side by side: those run here and those quoted, in the tables `baselines`, `main` and `ablation`."""

from fujinsplat.evaluate.tables import build_table

from .conftest import row_facts


def plant_medium(results, scene, variant, psnr):
    path = results / "metrics" / scene / f"{variant}.csv"
    path.write_text(path.read_text() + f"medium,0026,{psnr},0.5,0.5\n")


def test_methods_run_here_and_quoted_ones_stand_together_and_never_in_one_column(tmp_path, outline, plant):
    specs = {
        "ours": {"title": "FujinSplat", "correction": "controller", "reconcile": "delta", "paper": "FujinSplat"},
        "sea": {"title": "Our SeaSplat", "front": "camera", "model": "seasplat", "paper": "SeaSplat"},
        "dark": {"title": "Dark channel + 3DGS", "front": {"restored": "dark_channel"}, "model": "vanilla"},
        "knots": {"title": "8 knots", "like": "ours", "settings": {"flow": {"M": 8}}, "paper": "M=8"},
        "own": {"title": "Own knots", "like": "ours", "settings": {"flow": {"M": 9}}},
    }
    rows = row_facts(specs)
    for scene in ("Yama", "Kawa"):
        for name, psnr in (("ours", 20.0), ("sea", 9.0), ("dark", 15.0), ("knots", 19.0)):
            plant(tmp_path, scene, name, psnr)
            for job, seconds in ((f"splat/train/{scene}.{name}", 90), (f"views/make/restored.{scene}", 30)):
                path = tmp_path / "benchmarks" / f"{job}.tsv"
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"s\th:m:s\tmax_rss\n{seconds}\t0:00:00\t500\n")
        plant_medium(tmp_path, scene, "sea", 11.0)
    table = build_table("baselines", outline(["Yama", "Kawa"], rows=rows), tmp_path)
    found = {row.cells[0].text(): row.cells for row in table.rows}
    assert "8 knots" not in found
    sea, dark = found["Our SeaSplat"], found["Dark channel + 3DGS"]
    assert [cell.value for cell in sea[1:6:4]] == ["run here", 11.0]
    assert sea[2].value == 9.0 and sea[8].value == 9.28
    assert (dark[6].value, dark[7].value) == (2.0, 0.5) and sea[6].value == 1.5
    assert [cell.rank for cell in (found["FujinSplat"][2], dark[2], sea[2])] == [1, 2, 3]
    assert "SeaSplat" not in found
    for row in table.rows:
        quoted = row.cells[1].text() == "quoted"
        assert quoted == (row.note == "quoted")
        assert all((cell.value == "") for cell in (row.cells[2:8] if quoted else [])), row.cells[0].text()
    assert found["SeaThru-NeRF"][8].value == 9.02
    main = build_table("main", outline(["Yama", "Kawa"], rows=rows), tmp_path)
    assert {row.cells[-1].text() for row in main.rows} == {"run here", "quoted"}
    titles = [row.cells[0].text() for row in main.rows if row.cells[0].text()]
    assert "Our SeaSplat" in titles and "SeaSplat" not in titles and "ConvIR" in titles
    ablation = [
        row.cells[0].text() for row in build_table("ablation", outline(["Yama", "Kawa"], rows=rows), tmp_path).rows
    ]
    assert "Own knots" in ablation and not {"Our SeaSplat", "Dark channel + 3DGS"} & set(ablation)


def test_the_main_table_has_the_picture_with_medium_and_no_gap_in_rows_that_ran(tmp_path, outline, plant):
    specs = {
        "ours": {"title": "FujinSplat", "correction": "controller", "reconcile": "delta", "paper": "FujinSplat"},
        "sea": {"title": "SeaSplat on RAW", "front": "camera", "model": "seasplat"},
    }
    plant(tmp_path, "Yama", "ours", 20.0)
    plant(tmp_path, "Yama", "sea", 9.0)
    plant_medium(tmp_path, "Yama", "sea", 11.0)
    build = outline(["Yama"], rows=row_facts(specs))
    table = build_table("main", build, tmp_path)
    texts = [[cell.text() for cell in row.cells] for row in table.rows if row.note != "quoted"]
    assert not [row for row in texts if "–" in row]
    through = [row for row in texts if row[1] == "PSNR with medium"]
    assert through == [["", "PSNR with medium", "11.00", "11.00", "", "run here"]], "one model of the two has a medium"
    assert texts.index(through[0]) == 6 and "is scored without it" in table.caption
    for name in ("baselines", "seven_scenes"):
        assert (
            "controller's training, once for all scenes, are not counted" in build_table(name, build, tmp_path).caption
        )
