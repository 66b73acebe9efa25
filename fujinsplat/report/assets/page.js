"use strict";

// before/after: the range input covers the picture; its value is where the smoky one is cut
for (const compare of document.querySelectorAll(".compare")) {
  const input = compare.querySelector("input");
  const move = () => compare.style.setProperty("--at", input.value + "%");
  input.addEventListener("input", move);
  move();
}

// poses of one scene
for (const poses of document.querySelectorAll(".poses")) {
  const tabs = [...poses.querySelectorAll("[role=tab]")];
  for (const tab of tabs) {
    tab.addEventListener("click", () => {
      for (const other of tabs) other.setAttribute("aria-selected", String(other === tab));
      for (const panel of poses.querySelectorAll(".compare")) panel.hidden = panel.dataset.pose !== tab.dataset.pose;
    });
  }
}

// tables: numbers by value, words by alphabet, gaps always last
for (const table of document.querySelectorAll("table:has(thead button)")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    head.querySelector("button").addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of heads) other.setAttribute("aria-sort", "none");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      table.classList.add("sorted");
      const key = (row) => {
        const cell = row.cells[column];
        if (!cell || cell.hasAttribute("data-gap")) return null;
        return cell.dataset.value === undefined ? cell.textContent : Number(cell.dataset.value);
      };
      const rows = [...table.tBodies[0].rows].map((row, index) => ({ row, index, key: key(row) }));
      rows.sort((a, b) => {
        if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.index - b.index;
        const both = typeof a.key === "number" && typeof b.key === "number";
        const order = both ? a.key - b.key : String(a.key).localeCompare(String(b.key));
        return (down ? -order : order) || a.index - b.index;
      });
      table.tBodies[0].append(...rows.map((entry) => entry.row));
    });
  });
}

// 3D views: the renderer's page waits as text, once; a scene's data is put into it when its button is pressed
const shell = document.getElementById("view-shell");
const mark = "/*fujinsplat:data*/";
let page = null;
for (const button of document.querySelectorAll(".open-view")) {
  button.addEventListener("click", () => {
    const scene = button.closest(".scene");
    const open = scene.querySelector("iframe.view");
    if (open) {
      open.remove();
      button.textContent = "Walk through it in 3D";
      return;
    }
    if (page === null) {
      const bytes = Uint8Array.from(atob(shell.textContent), (c) => c.charCodeAt(0));
      page = new TextDecoder().decode(bytes);
    }
    const data = document.querySelector(`script[data-view="${CSS.escape(button.dataset.scene)}"]`).textContent;
    const frame = document.createElement("iframe");
    frame.className = "view";
    frame.title = button.dataset.scene + ", 3D view";
    frame.allow = "fullscreen";
    frame.srcdoc = page.split(mark).join(data);
    button.before(frame);
    button.textContent = "Close the 3D view";
  });
}

// figures in full size
const lightbox = document.getElementById("lightbox");
for (const button of document.querySelectorAll(".zoom")) {
  button.addEventListener("click", () => {
    lightbox.querySelector("div").replaceChildren(button.querySelector("img").cloneNode());
    lightbox.showModal();
  });
}
lightbox.addEventListener("click", () => lightbox.close());

// light or dark: the system decides until the button is pressed
document.getElementById("theme").addEventListener("click", () => {
  const root = document.documentElement;
  const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = dark ? "light" : "dark";
});
