// A topic: lines from each document to its place in the other list, both lit at once; keys to the next topic.
import { listen } from "./keys.js";

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

const steps = document.querySelector(".steps");
if (steps) {
  const ways = Object.fromEntries([...steps.querySelectorAll("[data-key]")].map((each) => [each.rel, each]));
  const keys = Object.fromEntries(Object.entries(ways).map(([name, each]) => [name, each.dataset.key]));
  listen({ keys, single: "single" in steps.dataset, act: (name) => ways[name] && (ways[name].click(), true) });
}
