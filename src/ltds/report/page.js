"use strict";
window.onerror = (message) => { document.documentElement.dataset.error = String(message); };

function sortBy(button) {
  const head = button.closest("th");
  const table = head.closest("table");
  const body = table.tBodies[0];
  const column = Number(head.dataset.column);
  const first = head.dataset.first;
  const other = first === "descending" ? "ascending" : "descending";
  const direction = head.getAttribute("aria-sort") === first ? other : first;
  for (const th of table.tHead.querySelectorAll("th[aria-sort]")) th.setAttribute("aria-sort", "none");
  head.setAttribute("aria-sort", direction);
  const sign = direction === "ascending" ? 1 : -1;
  const rows = Array.from(body.rows, (row, index) => ({ row, index, value: row.cells[column].dataset.value }));
  rows.sort((a, b) => {
    // No value goes last in either direction: missing is not small.
    if (!a.value || !b.value) return Number(!a.value) - Number(!b.value) || a.index - b.index;
    const order = column === 0 ? a.value.localeCompare(b.value) : Number(a.value) - Number(b.value);
    return sign * order || a.index - b.index;
  });
  body.append(...rows.map((entry) => entry.row));
}

for (const button of document.querySelectorAll("th button")) {
  button.addEventListener("click", () => sortBy(button));
}
// Closed parts would stay closed on paper.
let opened = [];
window.addEventListener("beforeprint", () => {
  opened = Array.from(document.querySelectorAll("details.printed:not([open])"));
  for (const part of opened) part.open = true;
});
window.addEventListener("afterprint", () => { for (const part of opened) part.open = false; });
document.documentElement.dataset.ready = "yes";
