// Judging: the next document is painted from what is already here, and the judgment goes to the server behind it.
import { ask, newId } from "./net.js";
import { Outbox } from "./queue.js";
import { RepeatGuard, listen } from "./keys.js";
import { button, tell } from "./unsent.js";
import { MOST_PLACES, build, inPoints, inUnits, places, placesIn, rangesOf, reveal } from "./text.js";
import { Drafts } from "./drafts.js";
import { fetchImages, showCard } from "./card.js";
import { askOrSaved, saveForReload } from "./offline.js";

const $ = (id) => document.getElementById(id);
const config = JSON.parse($("config").textContent);
const form = $("form");
const KEPT = 30; // documents that are kept to go back to
const QUOTE = 160; // characters of a marked passage in the list
const LONG = 800; // characters before the best passage from which on a document opens there

const items = []; // to judge, the first is on the screen
const needs = {};
const seen = new Map(); // documents that were shown before, by key
const answered = new Map(); // when the server had the answer to a document; never, until it says so
let labels = []; // one's own, the newest first
let more = false; // whether the server has older ones
let looking = -1; // at which of them, or at what is to be judged
let view = null; // the document on the screen
let changes = ""; // the label that a grade would change
let asking = null; // further aspects of the document on the screen
let passages = []; // marked: start and end in the whole text, in code points
let oldPassage = ""; // of a label whose passage has no places
let quotes = {}; // the texts of marked passages by their places: a part of a long text may lack them
let spent = 0, since = performance.now();
let found = null; // a text that is looked for
let limited = false; // whether there may be more hits than are marked
let hit = -1;

const drafts = new Drafts(config.round);
const keyOf = ({ topic, document }) => JSON.stringify([topic, document]);
const said = (label) => label.kind === "skip" ? "skipped" : label.kind === "cannot-judge" ? "cannot judge" : `${label.grade}${label.sure === false ? "?" : ""}`;
const announce = (text) => { $("announce").textContent = text; };
const url = (extra = {}) => {
  const query = new URLSearchParams({ ...(config.round && { round: config.round }), ...extra });
  return `/judge.json?${query}`;
};

// what waits

const outbox = new Outbox({
  page: "judge",
  url: "/judge.json",
  body: (events, round) => ({ round, events, n: round === config.round && round ? config.ahead : 0, have: items.map(({ topic, document }) => [topic, document]) }),
  answered: (values, round) => { if (round === config.round) take(values); },
  changed: () => { told(); sayWaiting(); replenish(); },
  elsewhere: ({ event, group }) => { if (group === config.round && event.document && !event.aspect) judgedElsewhere(event); },
  settled: ({ event }) => { if (answered.has(keyOf(event))) answered.set(keyOf(event), performance.now()); },
});

const told = tell(outbox, (event) => said(event));

// what comes

// `begun` is when they were asked for: what was answered since is none of them
const take = (values, begun = Infinity) => {
  Object.assign(needs, values.needs);
  const unsent = new Set(outbox.rowsThatCount().map((row) => keyOf(row.event)));
  const there = new Set(items.map(keyOf));
  for (const item of values.items || []) {
    const key = keyOf(item);
    if (!there.has(key) && !unsent.has(key) && !(answered.get(key) > begun)) items.push(item);
  }
  if (values.progress) showProgress(progress = values.progress);
  if (!view && items.length) paint(items[0]);
  else if (!items.length && values.why && looking < 0 && !asking) showNothing(values);
  prepare();
  save();
};

// what the page needs if it is loaded again without a connection; stored behind the paint
let saving = 0, progress = null;
const save = () => {
  clearTimeout(saving);
  if (config.round && !config.alone) saving = setTimeout(() => saveForReload(`judge ${config.round}`, {
    items: items.filter((item) => !item.bare).map(({ node, ...item }) => item), needs, progress, labels: labels.slice(0, KEPT), more_labels: more || labels.length > KEPT,
  }), 100);
};

// texts of documents to come are made before they are needed
const prepare = () => setTimeout(() => {
  for (const item of items.slice(1)) {
    if (item.node) continue;
    item.node = build(item.text, item.marks, item.opens_at);
    fetchImages(item);
  }
}, 0);

let asked = null;
const replenish = (force = false) => {
  if (config.alone || !config.round || asked || (!force && (items.length > 1 || outbox.rows().length || nothing))) return;
  const begun = performance.now();
  asked = ask(url()).then((values) => take(values, begun)).catch(() => {}).finally(() => { setTimeout(() => { asked = null; }, 500); });
};

let nothing = null;
const showNothing = (values) => {
  const text = values.why || "nothing is left", held = form.contains(document.activeElement);
  view = null;
  $("judge").hidden = form.hidden = true;
  $("nothing").hidden = false;
  $("nothing-title").textContent = `${text[0].toUpperCase()}${text.slice(1)}.`;
  if (held) $("nothing-title").focus();
  announce(text);
  clearTimeout(nothing);
  nothing = setTimeout(() => { nothing = null; if (!document.hidden) replenish(true); else showNothing(values); }, 15000);
};

const showProgress = ({ done, all, mine, pace, left }) => {
  const time = left === null ? "" : left < 90 ? `${Math.round(left)} s` : left < 5400 ? `${Math.round(left / 60)} min` : `${(left / 3600).toFixed(1)} h`;
  $("progress").textContent = `${done}${all === null ? "" : ` of ${all}`} labels, ${mine} yours${pace === null ? "" : ` · ${pace} s each`}${time && ` · about ${time} left`}`;
  if ($("bar")) $("bar").value = done;
};

// what is shown

const paint = (item, label = null) => {
  clearTimeout(nothing);
  nothing = null;
  const topic = !view || view.topic !== item.topic;
  view = item;
  waiting = false;
  changes = label ? label.id : "";
  $("nothing").hidden = true;
  $("judge").hidden = form.hidden = false;
  const need = needs[item.topic] || {};
  if (topic) {
    $("need-title").textContent = need.title || item.topic;
    $("need-id").textContent = `topic ${item.topic}`;
    $("need-text").replaceChildren(...[need.description, need.narrative].filter((text) => text && text !== need.title).map((text) => {
      const made = document.createElement("p");
      made.className = "text";
      made.dir = "auto";
      made.textContent = text;
      return made;
    }));
  }
  showCard(item);
  $("doc-id").textContent = item.document;
  document.title = document.title.replace(/^.* · /s, `${item.title || item.document} · `);
  found = null;
  limited = false;
  $("find").value = "";
  fill(item, label);
  showText(item);
  $("state").hidden = item.found && item.text !== "";
  $("state").textContent = item.found ? "This document has no text." : "The collection does not have this document. Choose “cannot judge”.";
  showLooking(label);
  open(item, topic);
  announce(`${topic ? `New topic: ${need.title || item.topic}. ` : ""}${item.title || item.document}`);
  spent = 0;
  since = performance.now();
};

// text of the server is counted in code points, text here in UTF-16
const isCut = (item) => !item.whole && item.length > inPoints(item.text);

const showText = (item) => {
  $("text").replaceChildren(item.node || build(item.text, item.marks, item.opens_at));
  item.node = null;
  showPassages();
  hit = -1;
  $("hits").textContent = "";
  const cut = isCut(item);
  $("cut").hidden = !cut;
  if (cut) {
    const link = document.createElement("a");
    link.href = `/document?${new URLSearchParams({ id: item.document, topic: item.topic, all: 1 })}`;
    link.textContent = "Show all";
    $("cut").replaceChildren(`${inPoints(item.text).toLocaleString("en")} of ${item.length.toLocaleString("en")} characters, around the best passage. `, link);
  }
};

$("cut").addEventListener("click", (event) => { // the link of the page as it came, too
  if (!event.target.closest("a") || event.ctrlKey || event.metaKey || event.shiftKey || !view || view.bare) return;
  event.preventDefault();
  showAll(view);
});

const showAll = async (item) => {
  try {
    const values = await ask(`/document.json?${new URLSearchParams({ id: item.document, topic: item.topic })}`);
    Object.assign(item, { text: values.text, marks: [], opens_at: 0, start: 0, whole: true });
    if (view === item) showText(item);
  } catch (error) { announce(`The rest of the text could not be loaded: ${error.message}`); }
};

const open = (item, topic) => {
  const best = item.opens_at > LONG && $("best");
  if (best) reveal(best);
  else if (topic) scrollTo(0, 0);
  else if ($("title").getBoundingClientRect().top < 0) $("title").scrollIntoView({ block: "start" });
};

// the fields of the form: the draft of a document, else its label
const fill = (item, label) => {
  const { note = "", sure = true, passages: marked = [], passage = "", quotes: texts = quotesOf(marked, passage) } = item && drafts.get(keyOf(item)) || label || {};
  $("unsure").checked = !sure;
  $("note").value = note;
  passages = marked;
  oldPassage = marked.length ? "" : passage;
  quotes = { ...texts };
  for (const each of form.querySelectorAll(".grade")) {
    if (label && label.grade === Number(each.value)) each.setAttribute("aria-pressed", "true");
    else each.removeAttribute("aria-pressed");
  }
};

// the server joins the texts of the passages of a label
const quotesOf = (spans, passage) => {
  const texts = passage.split(" […] ");
  return texts.length === spans.length ? Object.fromEntries(spans.map((span, i) => [span, texts[i]])) : {};
};

const prepared = () => ({ note: $("note").value, sure: !$("unsure").checked, passages, passage: oldPassage, quotes });
const isEmpty = ({ note, sure, passages, passage }) => !note.trim() && sure && !passages.length && !passage;

const storeDraft = () => {
  if (!view || asking) return;
  if (isEmpty(prepared()) && !changes) drafts.drop(keyOf(view));
  else drafts.put(keyOf(view), prepared());
};
$("note").addEventListener("input", storeDraft);
$("unsure").addEventListener("change", storeDraft);

const showLooking = (label) => {
  $("looking").hidden = !label;
  if (label) $("looking").replaceChildren(`Your label: ${said(label)}. A grade replaces it. `, button("To the next document", work));
  [...$("labels").children].forEach((line, i) => {
    if (i === looking) line.setAttribute("aria-current", "true");
    else line.removeAttribute("aria-current");
  });
};

const showLabels = () => {
  $("no-labels").hidden = labels.length > 0;
  $("labels").replaceChildren(...labels.map((label, i) => {
    const line = document.createElement("li"), link = document.createElement("a"), grade = document.createElement("b"), title = document.createElement("span"), rest = document.createElement("span");
    grade.textContent = said(label);
    title.textContent = label.title || label.document;
    title.dir = "auto";
    rest.className = "note";
    rest.textContent = ` topic ${label.topic}${label.note ? ` · ${label.note}` : ""}`;
    link.href = `/judge?${new URLSearchParams({ round: config.round, topic: label.topic, document: label.document })}`;
    link.append(grade, " ", title);
    link.addEventListener("click", (event) => {
      if (event.ctrlKey || event.metaKey || event.shiftKey) return;
      event.preventDefault();
      look(i);
    });
    line.append(link, rest);
    return line;
  }));
};

let labelling = 0;
const noteLabels = () => { // behind the paint
  clearTimeout(labelling);
  labelling = setTimeout(showLabels, 60);
};

// what is said

const seconds = () => Math.round((spent + (document.hidden ? 0 : performance.now() - since)) / 100) / 10;
document.addEventListener("visibilitychange", () => {
  if (document.hidden) spent += performance.now() - since;
  else { since = performance.now(); outbox.flush(); }
});

const judge = (kind, grade) => {
  if (!view || asking) return false;
  const { topic, document } = view, sure = !$("unsure").checked, note = $("note").value.trim();
  const marked = passages.length ? { passages } : oldPassage ? { passage: oldPassage } : {};
  const event = { id: newId(), kind, topic, document, seconds: seconds(), ...(kind === "judgment" && { grade }), ...(!sure && { sure }), ...(note && { note }), ...marked, ...(changes && { changes }) };
  const label = { ...event, sure, note, passages, passage: oldPassage, quotes, title: view.title, before: changes ? labels.find((each) => each.id === changes) : undefined, aspects: [] };
  remember(view);
  drafts.drop(keyOf(view));
  answered.set(keyOf(view), Infinity);
  labels = [label, ...labels.filter((each) => each.id !== changes && !(each.kind === "skip" && keyOf(each) === keyOf(label)))];
  const asks = kind === "judgment" ? config.aspects.filter((each) => each.from_grade === null || grade >= each.from_grade) : [];
  outbox.add(event, config.round); // stored before anything else, sent behind the paint
  if (asks.length) {
    asking = { label, asks, at: 0 };
    showAsking();
  } else next();
  noteLabels();
  save();
  return true;
};

const remember = (item) => {
  seen.delete(keyOf(item));
  seen.set(keyOf(item), item);
  if (seen.size > KEPT) seen.delete(seen.keys().next().value);
};

const next = () => {
  if (looking < 0) {
    const at = view ? items.findIndex((each) => keyOf(each) === keyOf(view)) : -1;
    if (at >= 0) items.splice(at, 1);
  }
  work();
};

let waiting = false; // for the next document
const sayWaiting = () => {
  if (waiting) $("title").textContent = navigator.onLine && !outbox.offline ? "Loading the next document …" : "No connection: the next document comes when it is back";
};

// back to what is to be judged
const work = () => {
  looking = -1;
  changes = "";
  if (config.alone && config.round) config.alone = false;
  if (items.length) return paint(items[0]);
  view = null;
  if (config.alone) return showNothing({ why: "kept" });
  showCard({ title: "…" });
  waiting = true;
  sayWaiting();
  $("doc-id").textContent = "";
  $("text").replaceChildren();
  $("looking").hidden = $("cut").hidden = $("state").hidden = true;
  fill(null, null);
  showPassages();
  replenish();
};

const showAsking = () => {
  const box = $("asking"), ask = asking && asking.asks[asking.at], held = document.activeElement.closest("#buttons, #asking");
  const focus = () => { if (held) form.querySelector(ask ? "#asking button" : "#buttons button").focus(); };
  box.hidden = !ask;
  $("buttons").hidden = !!ask;
  if (!ask) return focus();
  const line = document.createElement("p"), row = document.createElement("div");
  line.textContent = ask.question;
  line.dir = "auto";
  row.className = "row buttons";
  row.append(...ask.grades.map((each) => {
    const made = button("", () => answer(each.grade)), key = document.createElement("kbd");
    made.className = "grade";
    key.textContent = each.key;
    made.append(key, ` ${each.label || each.grade}`);
    return made;
  }));
  box.setAttribute("aria-label", ask.question);
  box.replaceChildren(line, row);
  focus();
  announce(ask.question);
};

const answer = (grade) => { // of a further aspect; null passes over it
  const { label, asks, at } = asking;
  if (grade !== null) {
    const event = { id: newId(), topic: label.topic, document: label.document, aspect: asks[at].name, grade, ...(label.changes && { changes: label.changes }) };
    label.aspects.push(event.id);
    outbox.add(event, config.round);
  }
  asking.at++;
  if (asking.at < asks.length) return showAsking();
  asking = null;
  showAsking();
  next();
};

const itemOf = async (label) => seen.get(keyOf(label)) || ask(url({ topic: label.topic, document: label.document })).then((values) => {
  Object.assign(needs, values.needs);
  return values.items[0];
});

const look = async (at) => {
  if (at >= labels.length && more) await older();
  if (at < 0 || at >= labels.length) {
    if (at < 0 && looking >= 0) work();
    else announce("No more labels.");
    return;
  }
  if (asking) return;
  try {
    const label = labels[at], item = await itemOf(label);
    looking = at;
    paint(item, label);
    announce(`Your label: ${said(label)}. ${item.title || item.document}`);
  } catch (error) { announce(`The document could not be loaded: ${error.message}`); }
};

const older = async () => {
  const values = await ask(url({ labels: labels.filter((each) => !each.unknown).length, ahead: 0 })).catch(() => null);
  if (!values) return;
  const there = new Set(labels.map((each) => each.id));
  labels.push(...values.labels.filter((each) => !there.has(each.id)));
  more = values.more_labels;
  showLabels();
};

const undo = async () => {
  const last = asking ? asking.label : labels[0];
  if (!last) return announce("There is nothing to undo.");
  const item = asking ? view : await itemOf(last).catch(() => null);
  if (!item) return announce("The document could not be loaded.");
  labels = labels.filter((each) => each !== last);
  if (last.before) labels.unshift(last.before);
  if (last.kind !== "skip") { // a grade after a skip takes its place
    for (const id of [last.id, ...(last.aspects || [])]) {
      if (outbox.refused().some((row) => row.event.id === id)) outbox.drop(id);
      else outbox.add({ id: newId(), kind: "withdrawal", refers: id }, config.round);
    }
  }
  asking = null;
  showAsking();
  looking = -1;
  const { note = "", sure = true, passages: marked = [], passage = "", quotes: texts = quotesOf(marked, passage) } = last, draft = { note, sure, passages: marked, passage, quotes: texts };
  if (!isEmpty(draft)) drafts.put(keyOf(item), draft);
  if (!last.before) {
    answered.delete(keyOf(item));
    if (!items.some((each) => keyOf(each) === keyOf(item))) items.unshift(item);
    item.node = null;
    paint(item);
  } else work();
  noteLabels();
  save();
  announce(`Withdrawn: ${said(last)} for ${item.title || item.document}.`);
};

const judgedElsewhere = (event) => {
  answered.set(keyOf(event), Infinity);
  const at = items.findIndex((each) => keyOf(each) === keyOf(event));
  if (at < 0) return;
  const shown = view === items[at] && !asking;
  items.splice(at, 1);
  if (shown) {
    work();
    announce("That document was judged in another tab.");
  }
};

// within the document

// a marked passage as places in the text that is here; null if it is elsewhere in the document
const placesOf = ([start, end]) => {
  const from = start - view.start, to = end - view.start;
  return from < 0 || to > inPoints(view.text) ? null : inUnits(view.text, [[from, to]], 0)[0][0];
};

const showPassages = () => {
  const spans = view && !view.bare ? passages.map(placesOf) : [], here = spans.filter(Boolean);
  spans.forEach((span, i) => { if (span) quotes[passages[i]] = view.text.slice(...span).slice(0, QUOTE); });
  const texts = passages.map((span) => quotes[span] || `characters ${span[0].toLocaleString("en")} to ${span[1].toLocaleString("en")}`);
  $("passages").replaceChildren(...[...texts, ...(oldPassage ? [oldPassage] : [])].map((text, i) => {
    const line = document.createElement("li"), quote = document.createElement("q"), remove = button("×", () => unmark(i));
    quote.dir = "auto";
    quote.textContent = text.length < QUOTE ? text : `${text.slice(0, QUOTE - 1)}…`;
    remove.setAttribute("aria-label", remove.title = `Remove mark ${i + 1}`);
    line.append(quote, " ", remove);
    return line;
  }));
  $("passages").hidden = !$("passages").children.length;
  if (!window.CSS || !CSS.highlights) return; // the list shows them, too
  if (here.length) CSS.highlights.set("passage", new Highlight(...rangesOf($("text"), here)));
  else CSS.highlights.delete("passage");
};

const unmark = (i) => {
  if (i < passages.length) passages = passages.filter((_, place) => place !== i);
  else oldPassage = "";
  showPassages();
  storeDraft();
  announce("Mark removed.");
};

// passages in the order of the text; those that overlap or touch are one
const joined = (spans) => spans.sort(([a], [b]) => a - b).reduce((before, [start, end]) => {
  const last = before.at(-1);
  if (!last || start > last[1]) return [...before, [start, end]];
  return [...before.slice(0, -1), [last[0], Math.max(last[1], end)]];
}, []);

// what is selected; a tap on the button may have collapsed the selection just before
let selected = { range: null, at: 0 };
document.addEventListener("selectionchange", () => {
  const selection = getSelection();
  if (selection.rangeCount && !selection.isCollapsed) selected = { range: selection.getRangeAt(0).cloneRange(), at: performance.now() };
});
const selectedRange = () => {
  const selection = getSelection();
  if (selection.rangeCount && !selection.isCollapsed) return selection.getRangeAt(0);
  return performance.now() - selected.at < 1000 ? selected.range : null;
};

const markSelection = () => {
  const range = selectedRange(), count = passages.length + (oldPassage ? 1 : 0);
  const spot = view && !view.bare && range ? placesIn($("text"), range, view.text) : null;
  if (!spot) return count ? unmark(count - 1) : announce("Select some of the text first.");
  const marked = joined([...passages, spot.map((place) => view.start + inPoints(view.text, place))]);
  if (marked.length > config.passages) return announce(`At most ${config.passages} passages can be marked.`);
  passages = marked;
  oldPassage = "";
  selected = { range: null, at: 0 };
  getSelection().removeAllRanges();
  showPassages();
  storeDraft();
  announce(`Marked: ${marked.length === 1 ? "one passage" : `${marked.length} passages`}.`);
};

const step = (by) => {
  const hits = $("text").querySelectorAll("mark:not(.rest)");
  if (hits[hit]) hits[hit].classList.remove("at");
  if (!hits.length) { $("hits").textContent = found ? (isCut(view) ? "not found in this part" : "not found") : "no words of the topic"; return; }
  hit = hit < 0 ? (by > 0 ? 0 : hits.length - 1) : (hit + by + hits.length) % hits.length;
  hits[hit].classList.add("at");
  reveal(hits[hit]);
  $("hits").textContent = `${hit + 1} of ${hits.length}${limited ? " or more" : ""}`;
};

const find = async () => {
  const item = view;
  found = $("find").value;
  if (!item) return;
  if (found && isCut(item)) { // the whole text is searched
    $("hits").textContent = "searching…";
    await showAll(item);
    if (view !== item || $("find").value !== found) return;
  }
  const spans = found ? places(item.text, found) : item.marks;
  limited = found && spans.length === MOST_PLACES;
  $("text").replaceChildren(build(item.text, spans, found ? 0 : item.opens_at, !found));
  showPassages();
  hit = -1;
  if (found) step(1);
  else $("hits").textContent = "";
};
let typing = 0;
$("find").addEventListener("input", () => {
  clearTimeout(typing);
  typing = setTimeout(find, 120);
});
$("find").addEventListener("keydown", (event) => {
  if (event.key === "Enter") { event.preventDefault(); step(event.shiftKey ? -1 : 1); }
});
$("note").addEventListener("keydown", (event) => {
  if (event.key === "Enter") { event.preventDefault(); $("note").blur(); }
});

const guidelines = () => {
  const box = $("guidelines") || $("meanings");
  box.open = !box.open;
  if (box.open) box.scrollIntoView({ block: "nearest" });
};

const help = () => $("keys").showModal();

// keys and buttons

const grade = (digit) => {
  const choices = asking ? asking.asks[asking.at].grades : config.grades;
  const choice = choices.find((each) => each.key === digit);
  if (!choice) { announce(`No grade has the key ${digit}.`); return true; }
  if (asking) answer(choice.grade);
  else judge("judgment", choice.grade);
  return true;
};

const acts = {
  grade,
  unsure: () => { $("unsure").checked = !$("unsure").checked; storeDraft(); announce($("unsure").checked ? "Not sure." : "Sure."); },
  cannot: () => judge("cannot-judge"),
  skip: () => (asking ? answer(null) : judge("skip")),
  undo,
  note: () => $("note").focus(),
  mark: markSelection,
  guidelines,
  find: () => { $("find").focus(); $("find").select(); },
  next_hit: () => step(1),
  previous_hit: () => step(-1),
  older: () => look(looking + 1),
  newer: () => look(looking - 1),
  help,
};

const guard = new RepeatGuard();
listen({ keys: config.keys, single: config.single, guard, guarded: ["grade", "cannot", "skip", "undo", "mark"], act: (name, digit) => { acts[name](digit); return true; } });

form.addEventListener("submit", (event) => {
  event.preventDefault();
  const by = event.submitter;
  if (by && by.name === "grade") judge("judgment", Number(by.value));
  else if (by && by.name === "kind") acts[by.id]();
});
guard.watch(form, ".grade, #skip, #cannot, #undo");
$("undo").addEventListener("click", undo);
$("mark").addEventListener("mousedown", (event) => event.preventDefault()); // the selection stays
$("mark").addEventListener("click", markSelection);
$("help").addEventListener("click", help);
$("next-hit").addEventListener("click", () => step(1));
$("previous-hit").addEventListener("click", () => step(-1));
if ($("more")) $("more").addEventListener("click", (event) => { event.preventDefault(); older().then(() => { $("more").hidden = !more; }); });

// begin

let begun = false;
const begin = async () => {
  for (const each of document.querySelectorAll(".scripted")) each.hidden = false;
  for (const each of form.querySelectorAll(".aspect")) each.remove();
  told();
  outbox.flush();
  if (config.at && !begun) view = { topic: config.at[0], document: config.at[1], title: $("title").textContent, text: $("text").textContent, marks: [], opens_at: 0, start: 0, length: 0, found: true, bare: true };
  if (view && outbox.rowsThatCount().some((row) => row.event.document && keyOf(row.event) === keyOf(view))) view = null;
  if (view && !begun) {
    items.push(view);
    if (!config.alone) fill(view, null);
  }
  begun = true;
  if (view && $("best") && $("best").previousSibling && $("best").previousSibling.textContent.length + $("best").offsetTop > 2 * LONG) reveal($("best"));
  const asked = performance.now();
  const values = await askOrSaved(`/judge.json${location.search}`, config.alone ? "" : `judge ${config.round}`);
  if (!values) return setTimeout(begin, 5000);
  if (view && view.bare && !config.alone && !values.items.some((each) => keyOf(each) === keyOf(view))) { // a page of earlier
    items.splice(items.indexOf(view), 1);
    view = null;
  }
  const withdrawn = new Set(outbox.rows().map((row) => row.event.refers));
  const unsent = outbox.rowsThatCount().filter((row) => !row.refused && row.group === config.round && row.event.document && !row.event.aspect).reverse().map(({ event }) => ({ ...event, kind: event.kind || "judgment" }));
  values.labels = values.labels.filter((each) => !withdrawn.has(each.id));
  const there = new Set(values.labels.map((each) => each.id));
  const own = labels.filter((each) => !there.has(each.id)), known = new Set([...there, ...own.map((each) => each.id)]);
  labels = [...own, ...unsent.filter((each) => !known.has(each.id)), ...values.labels];
  more = values.more_labels;
  for (const item of values.items) { // what the page itself brought, with its text
    const bare = items.find((each) => each.bare && keyOf(each) === keyOf(item));
    if (!bare) continue;
    Object.assign(bare, item, { bare: false });
    if (bare === view && $("text").textContent !== item.text) showText(bare); // HTML has no carriage returns, JSON has
  }
  if (config.alone && values.label) changes = values.label.id;
  if (config.alone && view) fill(view, values.label);
  showPassages();
  take(values, asked);
  if (!view && !items.length && !values.why && !config.alone) work();
  if (config.round) showLabels();
  form.dataset.ready = "true";
};
begin();
