"use strict";
const all = (selector, root = document) => Array.from(root.querySelectorAll(selector));

function sortBy(button) {
  const head = button.closest("th");
  const table = head.closest("table");
  const body = table.tBodies[0];
  const column = Number(head.dataset.column);
  const first = head.dataset.first;
  const other = first === "descending" ? "ascending" : "descending";
  const direction = head.getAttribute("aria-sort") === first ? other : first;
  for (const th of all("th[aria-sort]", table.tHead)) th.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", direction);
  const sign = direction === "ascending" ? 1 : -1;
  const rows = Array.from(body.rows, (row, index) => ({ row, index, value: row.cells[column].dataset.value }));
  const words = rows.some((entry) => Number.isNaN(Number(entry.value)));
  rows.sort((a, b) => {
    // Missing values go last in both directions.
    if (!a.value || !b.value) return Number(!a.value) - Number(!b.value) || a.index - b.index;
    const order = words ? a.value.localeCompare(b.value) : Number(a.value) - Number(b.value);
    return sign * order || a.index - b.index;
  });
  body.append(...rows.map((entry) => entry.row));
}

// A group of figures with a selector shows those of one method or domain; in print all are shown.
function choose(group) {
  const select = group.querySelector("select");
  if (!select) return;
  const key = select.dataset.key;
  const figures = all("figure", group);
  const shown = new Set(figures.filter((figure) => !figure.hidden).map((figure) => figure.dataset[key]));
  for (const option of select.options) option.disabled = option.hidden = !shown.has(option.value);
  if (select.selectedOptions[0]?.disabled) {
    const first = Array.from(select.options).findIndex((option) => !option.disabled);
    if (first >= 0) select.selectedIndex = first;
  }
  for (const figure of figures) figure.classList.toggle("off", figure.dataset[key] !== select.value);
  group.querySelector(".chooser").hidden = !shown.size;
}

// Hidden parts of a drawing leave no empty paper: the drawing is cut to what is left.
function fit(drawing) {
  drawing.dataset.whole ??= drawing.getAttribute("viewBox");
  let box = drawing.dataset.whole;
  if (drawing.querySelector("[hidden]")) {
    const left = drawing.getBBox();
    if (!left.width || !left.height) return; // in a closed part of the page: when it is opened
    box = [left.x - 6, left.y - 6, left.width + 12, left.height + 12].join(" ");
  }
  drawing.setAttribute("viewBox", box);
  drawing.style.maxWidth = `${1.76 * box.split(" ")[2]}px`;
}

// An element with data-method, data-domain or data-seed refers to that one only; a heading refers to its column.
function narrow() {
  const ticked = { method: new Set(), domain: new Set(), seed: new Set() };
  for (const box of all("#filters input:checked")) ticked[box.name].add(box.value);
  const wanted = (data) => Object.entries(ticked).every(([key, set]) => !set.size || !(key in data) || set.has(data[key]));
  for (const element of all("[data-method], [data-domain], [data-seed]")) {
    const hidden = !wanted(element.dataset);
    element.toggleAttribute("hidden", hidden); // parts of a drawing have no property "hidden"
    if ("column" in element.dataset) {
      const table = element.closest("table");
      for (const row of [...table.tBodies[0].rows, ...(table.tFoot?.rows ?? [])]) row.cells[element.dataset.column].hidden = hidden;
    }
  }
  const runs = all(".run");
  const shown = runs.filter((run) => !run.hidden);
  const datasets = new Set(shown.map((run) => `dataset-${run.dataset.dataset}`));
  for (const section of all("section[id^='dataset-']")) section.hidden = !datasets.has(section.id);
  for (const group of all(".figure-group")) group.hidden = all("figure", group).every((figure) => figure.hidden);
  all(".switch").forEach(choose);
  all(".card > svg").forEach(fit);
  const status = document.getElementById("shown");
  const some = shown.length < runs.length;
  status.classList.toggle("some", some);
  status.textContent = !some ? `All ${runs.length} runs are shown.`
    : shown.length ? `${shown.length} of ${runs.length} runs are shown.` : "No run is shown: no run matches everything that is ticked.";
}

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("details")) target.open = true;
}

for (const button of all("th button")) button.addEventListener("click", () => sortBy(button));
for (const group of all(".switch")) {
  group.querySelector("select")?.addEventListener("change", () => { choose(group); all(".card > svg", group).forEach(fit); });
  choose(group);
}
for (const part of all("details")) part.addEventListener("toggle", () => all(".card > svg", part).forEach(fit));
const filters = document.getElementById("filters");
if (filters) {
  filters.hidden = false;
  filters.addEventListener("change", narrow);
  document.getElementById("all").addEventListener("click", () => {
    for (const box of all("#filters input")) box.checked = false;
    narrow();
  });
}
window.addEventListener("hashchange", openTarget);
openTarget();
// Closed details would stay closed in print.
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = all("details.printed:not([open])");
  for (const details of opened) details.open = true;
});
window.addEventListener("afterprint", () => { for (const details of opened) details.open = false; });
document.documentElement.dataset.ready = "yes";
