// Files to the server: each file is the body of a request, and what was found in it is shown by line.
import { ask } from "./net.js";

export const make = (tag, text, ...inside) => {
  const element = document.createElement(tag);
  element.append(...(text ? [text] : []), ...inside);
  return element;
};

export const listed = (findings) => {
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

// the box that says why something was refused
export const refusal = (error) => {
  const parts = [error.message, error.values?.safe, error.values?.advice];
  const sentences = parts.filter(Boolean).map((text) => text.replace(/\.$/, ""));
  const box = make("div", "", make("p", `${sentences.join(". ")}.`), listed(error.values?.findings || []));
  box.className = "told";
  return box;
};

export const upload = (path, query, file) => ask(`${path}?${new URLSearchParams(query)}`, {
  method: "POST",
  headers: { "Content-Type": "application/octet-stream" },
  body: file,
});

// pages hide what works only with scripts
for (const part of document.querySelectorAll("[data-script]")) part.hidden = false;
