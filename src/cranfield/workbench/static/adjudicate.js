// Deciding where people differ: the next document is here before it is asked for; decisions wait in the outbox.
import { ask, newId } from "./net.js";
import { Outbox } from "./queue.js";
import { RepeatGuard, listen } from "./keys.js";
import { button, tell, wake } from "./unsent.js";
import { build, reveal } from "./text.js";
import { showCard } from "./card.js";
import { askOrSaved, saveForReload } from "./offline.js";

const $ = (id) => document.getElementById(id);
const config = JSON.parse($("config").textContent);
const form = $("form");
const keyOf = ({ topic, document }) => JSON.stringify([topic, document]);
const announce = (text) => { $("announce").textContent = text; };
const make = (tag, text, name = "") => Object.assign(document.createElement(tag), { textContent: text, className: name });

const cases = []; // the first is on the screen
const needs = {};
const later = new Set(); // to decide later, by key
const made = []; // decisions of this page, the newest last
let view = null;
let left = 0; // documents to decide, as of the last reply
let retry = 0;
let since = performance.now();

const outbox = new Outbox({
  page: "adjudicate",
  url: "/adjudicate.json",
  body: (events) => ({ of: config.topic, events, n: config.ahead, have: [...cases, ...later].map((each) => each.item ? [each.item.topic, each.item.document] : JSON.parse(each)) }),
  answered: (values) => take(values),
  changed: () => told(),
});
const told = tell(outbox, (event) => `${event.grade}`);

const take = (values) => {
  Object.assign(needs, values.needs);
  const waiting = new Set(outbox.rowsThatCount().map((row) => keyOf(row.event)));
  const there = new Set(cases.map((each) => keyOf(each.item)));
  for (const each of values.cases || []) {
    const key = keyOf(each.item);
    if (!there.has(key) && !waiting.has(key) && !later.has(key)) cases.push(each);
  }
  $("progress").textContent = `${values.left.toLocaleString("en")} to decide, ${values.decided.toLocaleString("en")} decided`;
  left = values.left;
  counts = { left, decided: values.decided };
  if (!view) show();
  save();
};

// what the page needs if it is loaded again without a connection
let counts = {};
const save = () => { if (!config.alone) saveForReload(`adjudicate ${config.topic}`, { state: "ready", ...counts, cases, needs }); };

const opinion = ({ who, grade, sure, note, passage }) => {
  const line = document.createElement("li"), quote = make("blockquote", passage), said = make("p", note, "said-note");
  line.append(make("b", who, "who"), " ", make("span", grade === null ? "cannot judge" : `${grade}`, "given"));
  if (!sure) line.append(" ", make("span", "not sure", "unsure"));
  said.dir = quote.dir = "auto";
  if (note) line.append(said);
  if (passage) line.append(quote);
  return line;
};

const show = () => {
  view = cases[0] || null;
  $("judge").hidden = form.hidden = !view;
  $("nothing").hidden = !!view;
  if (!view) {
    if (later.size) {
      $("nothing-title").textContent = `${later.size} to decide later. `;
      $("nothing-title").append(button("Show them now", () => { later.clear(); fetchMore(); }));
    } else if (left > outbox.rows().length) {
      $("nothing-title").textContent = navigator.onLine && !outbox.offline ? "Loading the next document …" : "No connection: the next document comes when it is back";
      clearTimeout(retry);
      retry = setTimeout(fetchMore, 2000);
    } else $("nothing-title").textContent = config.topic ? `Nothing of topic ${config.topic} is left to decide.` : "Nothing is left to decide.";
    announce($("nothing-title").textContent);
    return;
  }
  const { item, opinions, grades, decision } = view, need = needs[item.topic] || {};
  $("need-title").textContent = need.title || item.topic;
  $("need-id").textContent = `topic ${item.topic}`;
  $("need-text").replaceChildren(...[need.description, need.narrative].filter((text) => text && text !== need.title).map((text) => Object.assign(make("p", text, "text"), { dir: "auto" })));
  $("opinions").replaceChildren(...opinions.map(opinion));
  showCard(item);
  $("doc-id").textContent = item.document;
  $("text").replaceChildren(build(item.text, item.marks, item.opens_at));
  $("state").hidden = item.text !== "";
  $("state").textContent = item.found ? "This document has no text." : "The collection does not have this document.";
  $("cut").hidden = item.length <= item.text.length;
  const whole = make("a", "The whole text");
  whole.href = `/document?${new URLSearchParams({ id: item.document, topic: item.topic, all: 1 })}`;
  $("cut").replaceChildren(`${item.text.length.toLocaleString("en")} of ${item.length.toLocaleString("en")} characters, around the best passage. `, whole);
  $("made").hidden = !decision;
  $("made").textContent = decision ? `${decision.id ? "You" : "Somebody"} decided ${decision.grade}. A grade ${decision.id ? "replaces" : "overrules"} it.` : "";
  $("buttons").replaceChildren(...grades.map((each) => {
    const one = make("button", "", "grade");
    Object.assign(one, { name: "grade", value: each.grade, title: each.meaning });
    if (each.key) one.append(make("kbd", each.key), " ");
    one.append(each.label || `grade ${each.grade}`);
    return one;
  }));
  $("note").value = "";
  if (item.opens_at > 800 && $("best")) reveal($("best"));
  else scrollTo(0, 0);
  announce(`${item.title || item.document}. ${opinions.map((each) => `${each.who}: ${each.grade === null ? "cannot judge" : each.grade}${each.sure ? "" : ", not sure"}`).join("; ")}`);
  since = performance.now();
};

const fetchMore = () => {
  clearTimeout(retry);
  return ask(`/adjudicate.json?${new URLSearchParams(config.topic ? { topic: config.topic } : {})}`).then((values) => {
    if (values && values.state === "ready") take(values);
    else if (values && values.state === "running") setTimeout(fetchMore, 300); // the list is made anew after labels have come
  }).catch(() => { if (!view) retry = setTimeout(fetchMore, 5000); });
};

const decide = (grade) => {
  if (!view) return;
  const { topic, document } = view.item, note = $("note").value.trim();
  const event = { id: newId(), topic, document, grade, seconds: Math.round((performance.now() - since) / 100) / 10, ...(note && { note }), ...(view.decision && { overrule: true }) };
  made.push({ event, case: cases.shift() });
  outbox.add(event); // stored before anything else, sent behind the paint
  list();
  show();
  save();
};

const putOff = () => {
  if (!view) return;
  later.add(keyOf(view.item));
  cases.shift();
  view = null;
  show();
  if (!cases.length) outbox_more();
};
const outbox_more = () => ask("/adjudicate.json", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ account: outbox.account, ...outbox.body([]) }) }).then(take).catch(() => {});

const undo = () => {
  const last = made.pop();
  if (!last) return announce("There is nothing to undo on this page. Your last decisions are listed below.");
  if (outbox.refused().some((row) => row.event.id === last.event.id)) outbox.drop(last.event.id);
  else outbox.add({ id: newId(), kind: "withdrawal", refers: last.event.id });
  const at = cases.findIndex((each) => keyOf(each.item) === keyOf(last.case.item));
  if (at >= 0) cases.splice(at, 1);
  cases.unshift(last.case);
  list();
  show();
  save();
  announce(`Withdrawn: ${last.event.grade} for ${last.case.item.title || last.event.document}.`);
};

const before = [...$("decisions").children];
const list = () => {
  const rows = made.slice(-10).reverse().map(({ event }) => {
    const line = document.createElement("li"), link = document.createElement("a");
    link.href = `/adjudicate?${new URLSearchParams({ topic: event.topic, document: event.document })}`;
    link.append(make("b", `${event.grade}`), ` ${event.document}`);
    line.append(link, " ", make("span", `topic ${event.topic}${event.note ? ` · ${event.note}` : ""}`, "note"));
    return line;
  });
  $("decisions").replaceChildren(...rows, ...before.slice(0, 10 - rows.length));
  $("no-decisions").hidden = rows.length + before.length > 0;
};

const byKey = (digit) => {
  const choice = view && view.grades.find((each) => each.key === digit);
  if (choice) decide(choice.grade);
  else announce(`No grade has the key ${digit}.`);
};
const acts = { grade: byKey, skip: putOff, undo, note: () => $("note").focus(), help: () => $("keys").showModal() };

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (event.submitter && event.submitter.name === "grade") decide(Number(event.submitter.value));
});
const guard = new RepeatGuard();
guard.watch(form, ".grade, #skip, #undo");
$("note").addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); $("note").blur(); } });
$("skip").addEventListener("click", putOff);
$("undo").addEventListener("click", undo);
$("help").addEventListener("click", acts.help);

const begin = async () => {
  wake(outbox, told);
  const values = await askOrSaved(`/adjudicate.json${location.search}`, config.alone ? "" : `adjudicate ${config.topic}`);
  if (!values) return setTimeout(begin, 5000);
  if (values.state === "ready") take(values);
  listen({ keys: config.keys, single: config.single, guard, guarded: ["grade", "skip", "undo"], act: (name, digit) => { acts[name](digit); return true; } });
  document.body.dataset.ready = "1";
};
begin();
