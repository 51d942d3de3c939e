// Adding a run: the file is the body of the request, its name travels in the query; what is found in it is said by line.
import { ask } from "./net.js";

const make = (tag, text, ...inside) => {
  const element = document.createElement(tag);
  element.append(...(text ? [text] : []), ...inside);
  return element;
};

const box = (...inside) => {
  const made = make("div", "", ...inside);
  made.className = "told";
  return made;
};

const listed = (findings) => {
  const list = make("ul", "");
  list.className = "plain";
  for (const each of findings) {
    const where = each.line === null ? each.file : `${each.file}:${each.line}`;
    const item = make("li", `${where}: ${each.severity}: ${each.message}`);
    if (each.examples.length) item.append(make("ul", "", ...each.examples.map((line) => make("li", "", make("code", line)))));
    list.append(item);
  }
  return list;
};

const form = document.getElementById("add"), told = document.getElementById("added");
if (form) {
  for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = form.elements.file.files[0], button = form.querySelector("button");
    const name = form.elements.name.value.trim() || file.name;
    button.disabled = true;
    told.replaceChildren(make("p", "Checking …"));
    try {
      const url = `/runs.json?${new URLSearchParams({ name })}`;
      const answer = await ask(url, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
      location.href = `/runs?${new URLSearchParams({ new: answer.name })}`;
    } catch (error) {
      const said = [error.message, error.values?.safe, error.values?.advice].filter(Boolean).map((text) => text.replace(/\.$/, ""));
      told.replaceChildren(box(make("p", `${said.join(". ")}.`), listed(error.values?.findings || [])));
      button.disabled = false;
    }
  });
}
