"""The contact sheet of a developed scene: camera, front, corrected; the clean twin for the analysis."""

from pathlib import Path

import numpy as np

from fujinsplat.core.files import atomic_file

WIDTH = 240  # pixels of one thumbnail
GAP, HEAD = 4, 18


def contact_sheet(
    developed: Path, views: Path, out: Path, source: Path | None = None, clean: Path | None = None, most: int = 12
) -> None:
    """One row per view (at most `most`, spread evenly); columns as given. Written as PNG."""
    from PIL import Image, ImageDraw

    from fujinsplat.capture import SourceViews
    from fujinsplat.develop.inspect import corrected
    from fujinsplat.develop.store import Developed
    from fujinsplat.views.store import Views

    scene, pictures = Developed(developed), Views(views)
    chosen = [
        scene.stems[i] for i in np.unique(np.linspace(0, len(scene.stems) - 1, min(most, len(scene.stems))).astype(int))
    ]
    columns = {}
    if source:
        columns["camera"] = SourceViews(source).rgb
    columns[pictures.front] = pictures.encoded
    columns["corrected"] = lambda stem: corrected(pictures.encoded(stem), scene.action(stem), scene.K, scene.M)
    if clean:
        columns["clean twin"] = SourceViews(clean).rgb
    first = pictures.encoded(chosen[0])
    height = max(1, round(first.shape[0] * WIDTH / first.shape[1]))
    size = (GAP + len(columns) * (WIDTH + GAP), HEAD + len(chosen) * (height + GAP))
    page = Image.new("RGB", size, "white")
    draw = ImageDraw.Draw(page)
    for column, (title, picture) in enumerate(columns.items()):
        left = GAP + column * (WIDTH + GAP)
        draw.text((left, 3), title, fill="black")
        for row, stem in enumerate(chosen):
            thumbnail = Image.fromarray(picture(stem)).resize((WIDTH, height), Image.Resampling.BOX)
            page.paste(thumbnail, (left, HEAD + row * (height + GAP)))
            if column == 0:
                draw.text(
                    (left + 4, HEAD + row * (height + GAP) + 3), stem, fill="white", stroke_width=1, stroke_fill="black"
                )
    with atomic_file(out) as temporary:
        page.save(temporary)
