// Tables that sort: a button in each head. Numbers as numbers, names as people sort them, what is missing last.
const names = new Intl.Collator("en", { numeric: true });
const number = (text) => {
  const found = text.replaceAll("−", "-").replaceAll(",", "").match(/[-+]?\d+(\.\d+)?/);
  return found ? Number(found[0]) : null;
};

const sort = (table, column, turn) => {
  const worded = table.tHead.rows[0].cells[column].classList.contains("n");
  const keyed = [...table.tBodies[0].rows].map((row) => {
    const text = row.cells[column].textContent;
    return { row, key: worded ? text || null : number(text) };
  });
  keyed.sort((a, b) => {
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
    return turn * (worded ? names.compare(a.key, b.key) : a.key - b.key);
  });
  table.tBodies[0].append(...keyed.map((each) => each.row));
};

const prepare = (table) => {
  const heads = [...table.tHead.rows[0].cells];
  for (const [column, head] of heads.entries()) {
    if (!head.textContent.trim() || table.tBodies[0].rows.length < 2) continue;
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      const up = before ? before !== "ascending" : head.classList.contains("n");
      for (const each of heads) each.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      sort(table, column, up ? 1 : -1);
    });
  }
};

for (const table of document.querySelectorAll("table.sortable")) prepare(table);
