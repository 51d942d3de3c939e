// Search and judge: results are judged where they stand. Each label waits in the outbox until the server has it.
import { ask, newId } from "./net.js";
import { Outbox } from "./queue.js";
import { RepeatGuard, listen } from "./keys.js";
import "./card.js";
import { tell, wake } from "./unsent.js";
import { build } from "./text.js";

const $ = (id) => document.getElementById(id);
const config = JSON.parse($("config").textContent);
const results = [...document.querySelectorAll(".result")];
const labels = new Map(Object.entries(config.labels)); // one's own, by document
const given = []; // labels of this page, the newest last
const said = (event) => event.kind === "cannot-judge" ? "cannot judge" : `${event.grade}${event.sure === false ? "?" : ""}`;
const announce = (text) => { $("announce").textContent = text; };
const titleOf = (result) => result.querySelector("h2").textContent;
const part = (result, name) => result.querySelector(name);
const resultOf = (document) => results.find((each) => each.dataset.document === document);
let at = -1; // the marked result
let since = performance.now();

const outbox = new Outbox({
  page: "search",
  url: "/search.json",
  body: (events) => ({ events }),
  changed: () => told(),
});
const told = tell(outbox, said);

const show = (result) => {
  const label = labels.get(result.dataset.document);
  part(result, ".own").hidden = part(result, ".withdraw").hidden = !label;
  part(result, ".own").textContent = label ? `your label: ${said(label)}` : "";
  for (const each of result.querySelectorAll(".grade")) {
    if (label && label.kind === "judgment" && label.grade === Number(each.value)) each.setAttribute("aria-pressed", "true");
    else each.removeAttribute("aria-pressed");
  }
};

const go = (to, focus = true) => {
  if (to < 0 || to >= results.length) return announce(results.length ? "No more results here." : "There are no results.");
  if (at >= 0) results[at].removeAttribute("aria-current");
  at = to;
  since = performance.now();
  results[at].setAttribute("aria-current", "true");
  if (!focus) return;
  results[at].focus({ preventScroll: true });
  results[at].scrollIntoView({ block: "nearest" });
  const label = labels.get(results[at].dataset.document);
  announce(`Result ${results[at].dataset.rank}: ${titleOf(results[at])}${label ? `. Your label: ${said(label)}` : ""}`);
};

const next = () => {
  const open = results.findIndex((each, i) => i > at && !labels.has(each.dataset.document));
  if (open >= 0) go(open);
  else announce("You have judged all results on this page.");
};

const judge = (result, kind, grade) => {
  const { document, rank } = result.dataset, form = part(result, "form"), before = labels.get(document);
  const sure = !form.elements.unsure.checked, note = form.elements.note.value.trim();
  const event = { id: newId(), kind, topic: config.topic, document, query: config.query, rank: Number(rank), ...(kind === "judgment" && { grade }), ...(!sure && { sure }), ...(note && { note }), seconds: Math.round((performance.now() - since) / 100) / 10 };
  const aspects = kind === "judgment" ? [...form.querySelectorAll("select")].filter((each) => each.value !== "") : [];
  const also = aspects.map((each) => ({ id: newId(), kind, topic: config.topic, document, query: config.query, rank: Number(rank), aspect: each.name.slice("aspect-".length), grade: Number(each.value) }));
  given.push({ result, before, ids: [event, ...also].map((each) => each.id) });
  labels.set(document, { ...event, sure });
  for (const each of [event, ...also]) outbox.add(each);
  show(result);
  announce(`${said(labels.get(document))} for ${titleOf(result)}.`);
  at = results.indexOf(result);
  next();
};

const takeBack = (ids) => {
  for (const id of ids) {
    if (outbox.refused().some((row) => row.event.id === id)) outbox.drop(id);
    else outbox.add({ id: newId(), kind: "withdrawal", refers: id });
  }
};

const withdraw = (result) => {
  const last = given.findLastIndex((each) => each.result === result);
  if (last >= 0) return undo(last);
  const label = labels.get(result.dataset.document);
  if (!label) return;
  labels.delete(result.dataset.document);
  takeBack([label.id]);
  show(result);
  announce(`Withdrawn: ${said(label)} for ${titleOf(result)}.`);
};

const undo = (which = given.length - 1) => {
  const [last] = which < 0 ? [] : given.splice(which, 1);
  if (!last) return announce("There is nothing to undo on this page.");
  const { result, before, ids } = last, label = labels.get(result.dataset.document);
  if (before) labels.set(result.dataset.document, before);
  else labels.delete(result.dataset.document);
  takeBack(ids);
  show(result);
  go(results.indexOf(result));
  announce(`Withdrawn: ${said(label)} for ${titleOf(result)}.`);
};

const toggle = async (result) => {
  const box = part(result, ".whole"), by = part(result, ".open");
  if (box.hidden && !box.hasChildNodes()) {
    try {
      const { text } = await ask(`/document.json?${new URLSearchParams({ id: result.dataset.document, topic: config.topic })}`);
      box.replaceChildren(text ? build(text, [], 0) : "This document has no text.");
      part(box, "#best")?.removeAttribute("id");
    } catch (error) { return announce(`The text could not be loaded: ${error.message}`); }
  }
  box.hidden = !box.hidden;
  box.tabIndex = 0;
  part(result, ".snippet").hidden = !box.hidden;
  by.setAttribute("aria-expanded", String(!box.hidden));
};

// keys and buttons

const marked = (act) => () => {
  if (at < 0) go(0);
  if (at >= 0) act(results[at]);
};
const acts = {
  grade: (digit) => {
    const choice = config.grades.find((each) => each.key === digit);
    if (!choice) return announce(`No grade has the key ${digit}.`);
    if (at < 0) return announce("Choose a result first.");
    judge(results[at], "judgment", choice.grade);
  },
  unsure: marked((result) => {
    const box = part(result, "form").elements.unsure;
    part(result, ".further").open = box.checked = !box.checked;
    announce(box.checked ? "Not sure." : "Sure.");
  }),
  cannot: marked((result) => judge(result, "cannot-judge")),
  undo: () => undo(),
  note: marked((result) => {
    part(result, ".further").open = true;
    part(result, "form").elements.note.focus();
  }),
  find: () => { $("query").focus(); $("query").select(); },
  next_result: () => go(at + 1),
  previous_result: () => go(at - 1),
  open_result: marked(toggle),
  help: () => $("keys").showModal(),
};
const guard = new RepeatGuard();
listen({ keys: config.keys, single: config.single, guard, guarded: ["grade", "cannot", "undo"], act: (name, digit) => { acts[name](digit); return true; } });
$("help").addEventListener("click", acts.help);

for (const [place, result] of results.entries()) {
  result.addEventListener("focusin", () => { if (at !== place) go(place, false); });
  part(result, ".open").addEventListener("click", () => toggle(result));
  const form = part(result, "form");
  guard.watch(form, ".grade, [name=kind]");
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const by = event.submitter;
    if (by && by.name === "grade") judge(result, "judgment", Number(by.value));
    else if (by && by.value === "withdrawal") withdraw(result);
    else if (by) judge(result, by.value);
  });
  part(result, "[name=note]").addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); result.focus(); }
  });
}

// begin: what an earlier visit said and the server does not have yet
for (const { event } of outbox.waiting()) {
  if (event.topic !== config.topic || event.aspect) continue;
  const result = resultOf(event.document);
  if (!result) continue;
  labels.set(event.document, event);
  show(result);
}
wake(outbox, told);
if (results.length) go(Math.max(0, results.findIndex((each) => !labels.has(each.dataset.document))), false);
document.body.dataset.search = "ready";
