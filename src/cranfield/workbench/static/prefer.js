// Preferring one of two: the next pair is here before it is asked for; preferences wait in the outbox.
import { newId } from "./net.js";
import { Outbox } from "./queue.js";
import { RepeatGuard, listen } from "./keys.js";
import { tell, wake } from "./unsent.js";
import { build } from "./text.js";
import { fieldBox } from "./card.js";
import { askOrSaved, saveForReload } from "./offline.js";

const $ = (id) => document.getElementById(id);
const config = JSON.parse($("config").textContent);
const form = $("form");
const announce = (text) => { $("announce").textContent = text; };
const make = (tag, text, name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });
const pairs = []; // the first is on the screen
const needs = {};
const made = []; // preferences of this page, the newest last
let view = null, kind = "", since = performance.now();

const outbox = new Outbox({
  page: "prefer",
  url: "/prefer.json",
  body: (events, of) => ({ of, events, n: of === config.comparison ? config.ahead : 0, have: [...pairs.map((each) => each.pair), ...unsent()] }),
  answered: (values, of) => { if (of === config.comparison) take(values); },
  changed: () => told(),
  elsewhere: ({ event, group }) => { if (group === config.comparison) gone(event.pair); },
});
const unsent = () => outbox.rowsThatCount().filter((row) => !row.refused && row.group === config.comparison && row.event.pair !== undefined).map((row) => row.event.pair);
const refusals = () => outbox.refused().map((row) => ({ ...row, event: { ...row.event, document: `topic ${row.event.topic}` } }));
const told = tell(Object.create(outbox, { refused: { value: refusals } }), (event) => ({ left: "A", right: "B", same: "neither" })[event.said]);

const take = (values) => {
  Object.assign(needs, values.needs);
  kind = values.kind;
  const there = new Set([...pairs.map((each) => each.pair), ...unsent()]);
  for (const each of values.pairs) if (!there.has(each.pair)) pairs.push(each);
  $("progress").textContent = `${values.mine} of ${values.all} compared`;
  $("bar").value = values.mine;
  if (!pairs.length && values.why) $("nothing-title").textContent = `${values.why[0].toUpperCase()}${values.why.slice(1)}.`;
  if (!view) show();
  save(values);
};

// what the page needs if it is loaded again without a connection
let counts = { mine: 0, all: 0 };
const save = (values = counts) => {
  counts = { mine: values.mine, all: values.all };
  saveForReload(`prefer ${config.comparison}`, { ...counts, pairs, needs, kind, why: "" });
};

const words = (said, marks) => { // without the place of the best passage: there are two texts
  const made = build(said, marks, 0);
  const best = made.querySelector("#best");
  if (best) best.remove();
  return made;
};
const list = (entries) => {
  const body = document.createElement("ol");
  body.append(...entries.map(({ title, text, marks }) => {
    const line = document.createElement("li"), name = make("b", title), said = document.createElement("span");
    said.append(words(text, marks));
    name.dir = said.dir = "auto";
    line.append(name, " ", said);
    return line;
  }));
  return entries.length ? body : make("p", "No results.");
};
const documentOf = (side) => {
  if (!side.found) return make("p", "The collection does not have this document.", "told");
  const whole = document.createElement("div");
  whole.append(fieldBox(side.above), text(side), fieldBox(side.below));
  return whole;
};
const text = (side) => {
  if (!side.text) return make("p", "This document has no text.", "told");
  const body = make("div", "", "text");
  body.dir = "auto";
  body.append(words(side.text, side.marks));
  if (side.length > side.text.length) {
    const whole = make("a", "the whole text");
    whole.href = `/document?${new URLSearchParams({ id: side.document, topic: view.topic, all: 1 })}`;
    const cut = make("p", `${side.text.length.toLocaleString("en")} of ${side.length.toLocaleString("en")} characters, around the best passage; `, "cut");
    cut.append(whole);
    const both = document.createElement("div");
    both.append(cut, body);
    return both;
  }
  return body;
};

const show = () => {
  const before = view;
  view = pairs[0] || null;
  $("pair").hidden = form.hidden = !view;
  $("nothing").hidden = !!view;
  if (!view) return announce($("nothing-title").textContent);
  const need = needs[view.topic] || {}, lists = kind === "lists";
  $("need-title").textContent = need.title || view.topic;
  $("need-id").textContent = `topic ${view.topic} · which ${lists ? "list of results" : "document"} is better for this topic?`;
  $("need-text").replaceChildren(...[need.description, need.narrative].filter((each) => each && each !== need.title).map((each) => Object.assign(make("p", each, "text"), { dir: "auto" })));
  for (const place of ["left", "right"]) {
    const side = view[place];
    $(`${place}-title`).textContent = lists ? "results" : side.title || side.document;
    $(`${place}-side`).querySelector(".body").replaceChildren(lists ? list(side.entries) : documentOf(side));
  }
  if (before !== view) scrollTo(0, 0);
  announce(`${!before || before.topic !== view.topic ? `New topic: ${need.title || view.topic}. ` : ""}${lists ? "Two lists." : `A: ${view.left.title || view.left.document}. B: ${view.right.title || view.right.document}.`}`);
  since = performance.now();
};

const prefer = (said) => {
  if (!view) return;
  const event = { id: newId(), pair: view.pair, topic: view.topic, said, seconds: Math.round((performance.now() - since) / 100) / 10 };
  made.push({ event, pair: pairs.shift() });
  outbox.add(event, config.comparison); // stored before anything else, sent behind the paint
  show();
  save();
};

const undo = () => {
  const last = made.pop();
  if (!last) return announce("There is nothing to undo.");
  if (outbox.refused().some((row) => row.event.id === last.event.id)) outbox.drop(last.event.id);
  else outbox.add({ id: newId(), kind: "withdrawal", refers: last.event.id }, config.comparison);
  gone(last.pair.pair, false);
  pairs.unshift(last.pair);
  show();
  announce("Withdrawn.");
};

const gone = (pair, shown = true) => { // answered in another tab
  const at = pairs.findIndex((each) => each.pair === pair);
  if (at >= 0) pairs.splice(at, 1);
  if (shown && view && view.pair === pair) show();
};

const acts = { left: () => prefer("left"), right: () => prefer("right"), same: () => prefer("same"), undo, help: () => $("keys").showModal() };
form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter && event.submitter.name === "said") prefer(event.submitter.value);
});
const guard = new RepeatGuard();
guard.watch(form, ".grade, #undo");
$("undo").addEventListener("click", undo);
$("help").addEventListener("click", acts.help);

const begin = async () => {
  wake(outbox, told);
  const values = await askOrSaved(`/prefer.json?${new URLSearchParams({ comparison: config.comparison })}`, `prefer ${config.comparison}`);
  if (!values) return setTimeout(begin, 5000);
  take(values);
  listen({ keys: config.keys, single: config.single, guard, guarded: ["left", "right", "same", "undo"], act: (name) => { if (acts[name]) acts[name](); return !!acts[name]; } });
  document.body.dataset.ready = "1";
};
begin();
