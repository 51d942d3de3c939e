// Progress of rounds, asked for every five seconds.
import { follow } from "./net.js";

const put = (root, name, text) => {
  const found = root.querySelector(`[data-${name}]`) || (root.dataset.round && document.querySelector(`[data-${name}]`));
  if (found && found.textContent !== String(text)) found.textContent = text;
};
const shown = (root, each) => {
  put(root, "state", each.state);
  put(root, "done", `${each.done} of ${each.places}`);
  put(root, "out", each.out);
  put(root, "left", each.left);
  put(root, "hours", each.hours_left);
  const bar = root.querySelector("progress");
  if (bar) [bar.max, bar.value] = [Math.max(each.places, 1), each.done];
};
const people = (body, rows) => {
  body.replaceChildren(...rows.map((each) => {
    const row = document.createElement("tr"), head = document.createElement("th");
    head.scope = "row";
    head.className = "n";
    head.textContent = each.assessor;
    const gold = each.gold ? `${each.gold_right} of ${each.gold}` : "–";
    const seconds = each.seconds === null ? "–" : each.seconds.toFixed(1);
    const last = each.last.slice(0, 16).replace("T", " ") || "–";
    const cells = [each.done, each.out, each.skipped, each.extra, each.repeated, gold, seconds, last].map((text) => {
      const cell = document.createElement("td");
      cell.textContent = text;
      return cell;
    });
    row.append(head, ...cells);
    return row;
  }));
};
for (const root of document.querySelectorAll("[data-follow]")) {
  follow(root.dataset.follow, (values) => {
    if (values.rounds) {
      for (const each of values.rounds) {
        const row = [...root.querySelectorAll("[data-round]")].find((found) => found.dataset.round === each.name);
        if (row) shown(row, each);
      }
    } else {
      shown(root, values);
      people(root.querySelector("[data-people]"), values.people);
      put(root, "advice", values.advice);
    }
  });
}
