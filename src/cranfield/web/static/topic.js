// A topic: lines from each document to where it stands in the other list, both lit at once; keys to the next topic.
const lists = document.getElementById("lists");
const rows = (root) => [...root.querySelectorAll("tr[data-document]")];

const join = () => {
  const svg = lists.querySelector(".joins"), [left, right] = lists.querySelectorAll(".side");
  if (!svg || !right) return;
  const box = svg.getBoundingClientRect(), half = box.width / 2;
  svg.replaceChildren();
  if (!box.width) return;
  svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
  const middle = (row) => {
    const place = row.getBoundingClientRect();
    return (place.top + Math.min(place.height / 2, 18) - box.top).toFixed(1);
  };
  for (const row of rows(left)) {
    const other = rows(right).find((each) => each.dataset.document === row.dataset.document);
    if (!other) continue;
    const path = document.createElementNS("http://www.w3.org/2000/svg", "path"), [a, b] = [middle(row), middle(other)];
    path.setAttribute("d", `M0 ${a}C${half} ${a} ${half} ${b} ${box.width} ${b}`);
    path.dataset.document = row.dataset.document;
    svg.append(path);
  }
};

const light = (id) => {
  for (const part of lists.querySelectorAll("[data-document]")) part.classList.toggle("lit", part.dataset.document === id);
};

if (lists) {
  for (const row of rows(lists)) {
    for (const name of ["mouseenter", "focusin"]) row.addEventListener(name, () => light(row.dataset.document));
    for (const name of ["mouseleave", "focusout"]) row.addEventListener(name, () => light(null));
  }
  join();
  new ResizeObserver(join).observe(lists);
}

// single keys, with Alt where the account has them off; dead while typing
const steps = document.querySelector(".steps");
if (steps) {
  addEventListener("keydown", (event) => {
    const typing = event.target instanceof Element && event.target.closest("input, select, textarea, [contenteditable]");
    if (typing || event.ctrlKey || event.metaKey || event.altKey === "single" in steps.dataset) return;
    const way = [...steps.querySelectorAll("[data-key]")].find((each) =>
      event.key.toLowerCase() === each.dataset.key.toLowerCase() || (event.altKey && event.code === `Key${each.dataset.key.toUpperCase()}`));
    if (way) way.click();
  });
}
