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
    // No value goes last in either direction: missing is not small.
    if (!a.value || !b.value) return Number(!a.value) - Number(!b.value) || a.index - b.index;
    const order = words ? a.value.localeCompare(b.value) : Number(a.value) - Number(b.value);
    return sign * order || a.index - b.index;
  });
  body.append(...rows.map((entry) => entry.row));
}

// A part whose figures differ in one thing shows one of them; paper shows all.
function choose(part) {
  const select = part.querySelector("select");
  const figures = all("figure", part);
  Array.from(select.options, (option, i) => { option.disabled = option.hidden = figures[i].hidden; });
  if (select.selectedOptions[0]?.disabled) {
    const first = figures.findIndex((figure) => !figure.hidden);
    if (first >= 0) select.selectedIndex = first;
  }
  figures.forEach((figure, i) => figure.classList.toggle("off", i !== select.selectedIndex));
  part.querySelector(".chooser").hidden = figures.every((figure) => figure.hidden);
}

// An element with data-method, data-domain or data-seed speaks of that one only; a heading speaks for its column.
function narrow() {
  const ticked = { method: new Set(), domain: new Set(), seed: new Set() };
  for (const box of all("#filters input:checked")) ticked[box.name].add(box.value);
  const wanted = (data) => Object.entries(ticked).every(([key, set]) => !set.size || !(key in data) || set.has(data[key]));
  for (const element of all("[data-method], [data-domain], [data-seed]")) {
    element.hidden = !wanted(element.dataset);
    if ("column" in element.dataset) {
      for (const row of element.closest("table").tBodies[0].rows) row.cells[element.dataset.column].hidden = element.hidden;
    }
  }
  const runs = all(".run");
  const shown = runs.filter((run) => !run.hidden);
  const places = new Set(shown.map((run) => `dataset-${run.dataset.dataset}`));
  for (const section of all("section[id^='dataset-']")) section.hidden = !places.has(section.id);
  for (const part of all(".part")) part.hidden = all("figure", part).every((figure) => figure.hidden);
  all(".switch").forEach(choose);
  const status = document.getElementById("shown");
  const some = shown.length < runs.length;
  status.classList.toggle("some", some);
  status.textContent = !some ? `All ${runs.length} runs are shown.`
    : shown.length ? `${shown.length} of ${runs.length} runs are shown.` : "No run is shown: none has all that is ticked.";
}

function openTarget() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("details")) target.open = true;
}

for (const button of all("th button")) button.addEventListener("click", () => sortBy(button));
for (const part of all(".switch")) {
  part.querySelector("select").addEventListener("change", () => choose(part));
  choose(part);
}
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
// Closed parts would stay closed on paper.
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = all("details.printed:not([open])");
  for (const part of opened) part.open = true;
});
window.addEventListener("afterprint", () => { for (const part of opened) part.open = false; });
document.documentElement.dataset.ready = "yes";
