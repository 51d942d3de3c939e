// The page is whole without this, but for the lists side by side: here are its choosers, the sorting and filtering of
// tables, and the theme. Nothing is computed: grades, gains and sums come with the page as text.
// Bars and scatter are drawn as report/svg.py draws them; a test holds the two against each other.
"use strict";
(() => {
  const $ = (id) => document.getElementById(id);
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const data = JSON.parse($("data").textContent);

  for (const part of all("[data-script]")) part.hidden = false;

  // theme
  const theme = $("theme");
  const remembered = (() => { try { return localStorage.getItem("cranfield-theme"); } catch { return null; } })();
  const wear = (name) => {
    if (name === "light" || name === "dark") document.documentElement.dataset.theme = name;
    else delete document.documentElement.dataset.theme;
  };
  if (remembered) { theme.value = remembered; wear(remembered); }
  theme.addEventListener("change", () => {
    wear(theme.value);
    try { localStorage.setItem("cranfield-theme", theme.value); } catch { /* a file may have no storage */ }
  });

  // sorting: numbers as numbers, names as people sort them; what is missing comes last
  const names = new Intl.Collator("en", { numeric: true });
  const number = (text) => {
    const found = text.replaceAll("−", "-").match(/-?\d+(\.\d+)?/);
    return found ? Number(found[0]) : null;
  };
  const sort = (table, column, direction) => {
    const worded = table.tHead.rows[0].cells[column].classList.contains("n");
    const turn = direction === "ascending" ? 1 : -1;
    const keyed = [...table.tBodies[0].rows].map((row) => {
      const cell = row.cells[column], text = (cell.querySelector(".id") || cell).textContent;
      return { row, key: worded ? text : number(text) };
    });
    keyed.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
      return turn * (worded ? names.compare(a.key, b.key) : a.key - b.key);
    });
    table.tBodies[0].append(...keyed.map((each) => each.row));
  };
  for (const table of all("table.sortable")) {
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const usual = head.classList.contains("n") ? "ascending" : "descending";
        const now = head.getAttribute("aria-sort");
        const next = now === null ? usual : now === "ascending" ? "descending" : "ascending";
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", next);
        sort(table, column, next);
      });
    });
  }

  // drawing
  const LETTER = 7.8, TITLE = 8.5, LONGEST = 30, LABELLED = 60, BESIDE = 34;
  const n = (x) => { const text = (x + 1e-7).toFixed(1).replace(/\.0$/, ""); return text === "-0" ? "0" : text; };
  const short = (x) => { const text = String(Number(x.toFixed(4))); return text === "-0" ? "0" : text; };
  const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
  const cut = (text, longest = LONGEST) => {
    const letters = [...text], half = Math.floor(Math.floor(longest) / 2);
    return letters.length <= longest ? text : `${letters.slice(0, half).join("")}…${letters.slice(1 - half).join("")}`;
  };
  const step = (low, high, most = 8) => {
    const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
    return power * [1, 2, 2.5, 5, 10].find((factor) => power * factor >= rough * (1 - 1e-9));
  };
  const nice = (numbers) => {
    let low = Math.min(...numbers), high = Math.max(...numbers);
    if (low === high) [low, high] = [low - (Math.abs(low) || 1) / 2, high + (Math.abs(high) || 1) / 2];
    const by = step(low, high);
    return [Math.floor(low / by + 1e-9) * by, Math.ceil(high / by - 1e-9) * by];
  };
  const ticks = ([low, high]) => {
    const by = step(low, high), places = [];
    for (let i = Math.ceil(low / by - 1e-9); i <= Math.floor(high / by + 1e-9); i++) places.push(Number((i * by).toFixed(12)) + 0);
    const digits = Math.max(...places.map((x) => x.toFixed(6).replace(/0+$/, "").split(".")[1].length));
    return places.map((x) => [x, x.toFixed(digits).replace("-", "−")]);
  };
  const written = (x, y, text, anchor) => `<text text-anchor="${anchor}" x="${n(x)}" y="${n(y)}">${escaped(text)}</text>`;
  const turned = (x, y, text, look) =>
    `<text ${look} transform="translate(${n(x)},${n(y)}) rotate(-90)">${escaped(text)}</text>`;
  const asked = new Map(data.topics.map((topic, t) => [topic, data.queries ? data.queries[t] : ""]));
  const named = (topic) => asked.get(topic) ? `${topic} (${asked.get(topic)})` : topic;
  const room = (id) => $(id).clientWidth || 2000;
  const widest = (texts) => Math.max(0, ...texts.map((text) => [...text].length)) * LETTER;

  const framed = (id, title, said, width, height, x, y, marks) => {
    // x and y: {name, ticks: [[place, text]], turned}; places are in pixels
    const left = 14 + widest(y.ticks.map((t) => t[1])) + 18, top = 8;
    const below = 22 + (x.turned ? widest(x.ticks.map((t) => t[1])) - 8 : 0) + 20;
    const grid = (x.turned ? "" : x.ticks.map(([at]) => `M${n(at)} 0V${n(height)}`).join(""))
      + y.ticks.map(([at]) => `M0 ${n(at)}H${n(width)}`).join("");
    const labels = x.ticks.map(([at, text]) => x.turned
      ? turned(at + 4, height + 6, text, 'text-anchor="end"') : written(at, height + 16, text, "middle")).join("")
      + y.ticks.map(([at, text]) => written(-8, at + 4, text, "end")).join("")
      + `<text class="name" text-anchor="middle" x="${n(width / 2)}" y="${n(height + below - 6)}">${escaped(cut(x.name, width / TITLE))}</text>`
      + turned(12 - left, height / 2, cut(y.name, height / TITLE), 'class="name" text-anchor="middle"');
    const w = n(left + width + 14), h = n(top + height + below);
    return `<svg class="chart" viewBox="0 0 ${w} ${h}" role="img" width="${w}" height="${h}" `
      + `aria-labelledby="${id}-t ${id}-d"><title id="${id}-t">${escaped(title)}</title>`
      + `<desc id="${id}-d">${escaped(said)}</desc><g transform="translate(${n(left)},${n(top)})">`
      + `<g aria-hidden="true"><path class="grid" d="${grid}"/><path class="edge" d="M0 0V${n(height)}H${n(width)}"/>${labels}</g>`
      + `${marks}</g></svg>`;
  };

  const bars = (rows, y, title, said, signs) => {
    const height = 320, domain = nice([0, ...rows.map((row) => row[1])]);
    const beside = 14 + widest(ticks(domain).map((t) => t[1])) + 18 + 14;
    const width = Math.min(760, Math.max(320, 13 * rows.length), Math.max(240, room("differences") - beside));
    const up = (v) => height + (v - domain[0]) / (domain[1] - domain[0]) * -height;
    const at = (i) => (i + 0.5) / Math.max(rows.length, 1) * width;
    const half = width / rows.length * 0.42;
    const sign = (v) => v > 0 ? 0 : v < 0 ? 2 : 1;
    const tone = ["c0", "grey", "c1"];
    const marks = rows.map(([name, v], i) => {
      const top = Math.min(up(v), up(0)), high = Math.abs(up(0) - up(v));
      return `<rect class="mark fill ${tone[sign(v)]}" x="${n(at(i) - half)}" y="${n(top)}" width="${n(2 * half)}" `
        + `height="${n(Math.max(high, 0.6))}"><title>${escaped(`${named(name)}: ${y} ${short(v)}`)}</title></rect>`;
    }).join("") + `<path class="mark line grey" stroke-width="1" d="M0 ${n(up(0))}H${n(width)}"/>`;
    const labels = rows.length <= Math.min(LABELLED, width / 11) ? rows.map(([name], i) => [at(i), cut(name)]) : [];
    const places = ticks(domain).map(([v, text]) => [up(v), text]);
    const present = [0, 1, 2].filter((s) => rows.some((row) => sign(row[1]) === s));
    const legend = present.map((s) => `<li><svg width="12" height="14" aria-hidden="true"><rect class="fill ${tone[s]}" `
      + `width="12" height="12" y="1"/></svg>${escaped(signs[s])}</li>`).join("");
    return framed("differences", title, said, width, height, { name: "topic", ticks: labels, turned: true },
      { name: y, ticks: places }, marks) + `<ul class="legend">${legend}</ul>`;
  };

  const scatter = (points, x, y, title, said, given) => {
    const domain = given || nice(points.flatMap((p) => [p[1], p[2]]));
    const beside = 14 + widest(ticks(domain).map((t) => t[1])) + 18 + 14;
    const size = Math.min(380, Math.max(220, room("scatter") - beside));
    const across = (v) => (v - domain[0]) / (domain[1] - domain[0]) * size;
    const up = (v) => size + (v - domain[0]) / (domain[1] - domain[0]) * -size;
    const marks = `<path class="mark line grey" stroke-width="1" stroke-dasharray="3 3" d="M0 ${size}L${size} 0"/>`
      + points.map(([name, a, b]) => `<circle class="mark fill c0" opacity="0.75" cx="${n(across(a))}" cy="${n(up(b))}" `
      + `r="3.8"><title>${escaped(`${named(name)}: ${x} ${short(a)}, ${y} ${short(b)}`)}</title></circle>`).join("");
    const places = ticks(domain);
    return framed("scatter", title, said, size, size, { name: x, ticks: places.map(([v, text]) => [across(v), text]) },
      { name: y, ticks: places.map(([v, text]) => [up(v), text]) }, marks);
  };

  $("pairs").classList.add("one-measure");

  // choosing a measure and two systems
  const measure = $("measure"), one = $("one"), other = $("other"), everyPair = $("every-pair");
  const shown = (value, digits, signed) => value === null ? "–"
    : (signed && value >= 0 ? "+" : "") + value.toFixed(digits).replace("-", "−");

  const show = () => {
    const m = Number(measure.value), a = Number(one.value), b = Number(other.value);
    const known = data.measures[m], from = data.systems[a], to = data.systems[b];
    const low = data.values[m][a], high = data.values[m][b];
    for (const part of all("[data-of]")) part.hidden = part.dataset.of !== known.name;
    for (const row of all("#pairs tbody tr")) {
      const here = [Number(row.dataset.one), Number(row.dataset.other)], these = row.dataset.measure === String(m);
      row.hidden = !these || (!everyPair.checked && !here.includes(data.reference));
      row.classList.toggle("on", these && here.includes(a) && here.includes(b));
    }
    const said = data.sentences[`${m} ${a} ${b}`] || data.sentences[`${m} ${b} ${a}`]
      || `${known.name}, ${from} and ${to}: ${data.unlisted}.`;
    $("sentence").textContent = said;
    const gain = data.topics.map((topic, t) => [topic, low[t] === null || high[t] === null ? null : high[t] - low[t]]);
    const rows = gain.filter((row) => row[1] !== null).sort((p, q) => q[1] - p[1]);
    const signs = [`${to} better`, "equal", `${from} better`];
    const title = `${known.name}: ${to} against ${from}, topic by topic`;
    const gained = [...to, ...from].length <= BESIDE ? `${to} − ${from}` : "other − one";
    $("differences").innerHTML = bars(rows, gained, title, said, known.lower ? signs.reverse() : signs);
    $("differences-caption").textContent = title;
    const points = data.topics.map((topic, t) => [topic, low[t], high[t]]).filter((p) => p[1] !== null && p[2] !== null);
    const where = `${known.name}: one point per topic; ${known.lower ? "below" : "above"} the line ${to} is better`;
    $("scatter").innerHTML = scatter(points, from, to, where, said, known.domain);
    $("scatter-caption").textContent = where;
    $("topics-measure").textContent = known.name;
    $("topics-difference").textContent = `${to} − ${from}`;
    const topics = $("topics"), first = topics.tHead.rows[0].cells.length - data.systems.length;
    for (const row of [topics.tHead.rows[0], ...topics.tBodies[0].rows]) {
      data.systems.forEach((_, s) => { row.cells[first + s].classList.toggle("chosen", s === a || s === b); });
    }
    for (const row of topics.tBodies[0].rows) {
      const t = Number(row.dataset.topic), difference = gain[t][1];
      data.systems.forEach((_, s) => { row.cells[first + s].textContent = shown(data.values[m][s][t], data.digits); });
      row.cells[1].textContent = shown(difference, data.digits, true);
      const good = known.lower ? -difference : difference;
      row.dataset.side = difference === null ? "" : good > 0 ? "up" : good < 0 ? "down" : "equal";
    }
    const sorted = all("#topics th[aria-sort]")[0];
    if (sorted) sort(topics, sorted.cellIndex, sorted.getAttribute("aria-sort"));
    for (const option of $("side").options) {
      if (option.value === "up") option.textContent = `${to} better`;
      if (option.value === "down") option.textContent = `${from} better`;
    }
    choose();
  };
  const distinct = (kept, moved) => {
    if (kept.value === moved.value) moved.value = String((Number(kept.value) + 1) % data.systems.length);
    show();
  };
  measure.addEventListener("change", show);
  everyPair.addEventListener("change", show);
  one.addEventListener("change", () => distinct(one, other));
  other.addEventListener("change", () => distinct(other, one));
  $("swap").addEventListener("click", () => { [one.value, other.value] = [other.value, one.value]; show(); });

  // filtering topics
  const filter = $("filter"), side = $("side"), category = $("category");
  const rows = () => [...$("topics").tBodies[0].rows];
  const choose = () => {
    const words = filter.value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const [column, ...value] = category ? category.value.split(" ") : [""];
    let left = 0;
    for (const row of rows()) {
      const said = `${data.topics[row.dataset.topic]} ${data.queries ? data.queries[row.dataset.topic] : ""}`.toLowerCase();
      row.hidden = !words.every((word) => said.includes(word)) || (side.value !== "" && row.dataset.side !== side.value)
        || (column !== "" && row.cells[2 + Number(column)].textContent !== value.join(" "));
      left += !row.hidden;
    }
    $("filtered").textContent = `${left} of ${data.topics.length} topics`;
    rove();
  };
  filter.addEventListener("input", choose);
  for (const box of [side, category]) if (box) box.addEventListener("change", choose);

  // the lists of a topic, side by side
  const near = data.near, dialog = $("beside");
  const make = (tag, look, ...inside) => {
    const element = document.createElement(tag);
    if (look) element.className = look;
    element.append(...inside);
    return element;
  };
  const open_rows = () => rows().filter((row) => !row.hidden);
  const rove = () => {  // one stop of the keyboard for all topics; arrows go on from there
    if (!near) return;
    const seen = open_rows(), stop = seen.find((row) => row.querySelector(".open").tabIndex === 0) || seen[0];
    for (const row of rows()) row.querySelector(".open").tabIndex = row === stop ? 0 : -1;
  };
  const split = (text) => text === "" ? [] : text.split(" ");
  const place = (s, t) => split(near.lists[s][t]);

  const moved = (rank, before, returned, alone) => {
    if (before === undefined) return [alone, "new", "not returned by the other"];
    if (before > returned) return [`at ${before}`, "deep", `below rank ${returned} of the other: rank ${before}`];
    const up = before - rank;
    return up > 0 ? [`↑${up}`, "up", `rank ${before} in the other`] : up < 0 ? [`↓${-up}`, "down", `rank ${before} in the other`]
      : ["=", "same", "the same rank in the other"];
  };
  const line = (mine, theirs, i, s, t, sums, alone, deeper) => {
    const id = Number(mine[i]), rank = i + 1, at = theirs.indexOf(mine[i]);
    const [mark, look, hint] = moved(rank, at < 0 ? deeper.get(mine[i]) : at + 1, theirs.length, alone);
    const grade = split(near.grades[s][t])[i], words = near.texts && near.texts[id];
    const name = make("td", "doc");
    if (words && words.length) name.append(make("span", "title", words[0]));
    if (words && words.length > 1) name.append(make("span", "words", words[1]));
    name.append(make("span", words && words.length ? "docid" : "docid alone", near.ids[id]));
    const move = make("td", `move ${look}`, mark);
    move.title = hint;
    const judged = make("td", "", grade === "-" ? make("span", "unjudged", "unjudged")
      : make("span", `grade ${grade.startsWith("−") || grade === "0" ? "zero" : "good"}`, grade));
    const row = make("tr", "", make("td", "rank", String(rank)), move, name, judged);
    const step = sums && sums.steps ? split(sums.steps[s][t])[i] : "-";
    if (sums && sums.steps) sums.columns.forEach((_, c) => row.append(make("td", "sum", step === "-" ? "" : sums.rows[step][c])));
    row.tabIndex = 0;
    row.dataset.doc = String(id);
    return row;
  };
  const counted = (n, what) => `${n} ${what}${n === 1 ? "" : "s"}`;
  const column = (m, s, o, t, tone) => {
    const mine = place(s, t), theirs = place(o, t), sums = near.arithmetic[m];
    const deeper = new Map(split(near.deeper[o][t]).map((each) => each.split(":")).map(([id, rank]) => [id, Number(rank)]));
    const steps = sums && sums.steps ? sums.columns : [];
    const heads = ["", "", "document", "grade", ...steps].map((text, c) => {
      const head = make("th", c < 3 ? "n" : c > 3 ? "sum" : "", text || make("span", "unseen", c ? "move" : "rank"));
      head.scope = "col";
      return head;
    });
    const table = make("table", "", make("thead", "", make("tr", "", ...heads)),
      make("tbody", "", ...mine.map((_, i) => line(mine, theirs, i, s, t, sums, tone === "one" ? "gone" : "new", deeper))));
    const value = make("span", "value", shown(data.values[m][s][t], data.digits));
    const group = near.runs[s] === data.systems[s] ? "" : ` (list: ${near.runs[s]})`;
    const box = make("section", `side ${tone}`, make("h3", "", make("span", "", data.systems[s] + group), value));
    box.append(mine.length ? make("div", "scroll", table) : make("p", "note", "Nothing was returned."));
    const worked = sums && sums.lines[s][t];
    if (worked) box.append(make("p", "worked", sums.words ? `${sums.words} = ${worked}` : worked));
    const more = [];
    if (near.below[s][t]) more.push(`${near.below[s][t]} more of a grade above 0 below rank ${mine.length}`);
    if (near.missed[s][t]) more.push(`${near.missed[s][t]} of a grade above 0 not returned`);
    const unjudged = split(near.grades[s][t]).filter((grade) => grade === "-").length;
    if (unjudged) more.push(`${unjudged} of these ${mine.length} unjudged`);
    if (more.length) box.append(make("p", "note", `${more.join("; ")}.`));
    return box;
  };
  const joins = () => {  // a line from each document to where it stands in the other list
    const both = $("lists"), svg = both && both.querySelector(".joins");
    if (!svg) return;
    const [left, right] = all(".side tbody", both), box = svg.getBoundingClientRect();
    svg.replaceChildren();
    if (!left || !right || !box.width) return;
    svg.setAttribute("viewBox", `0 0 ${box.width} ${box.height}`);
    for (const row of left.rows) {
      const other = [...right.rows].find((each) => each.dataset.doc === row.dataset.doc);
      if (!other) continue;
      const middle = (each) => { const r = each.getBoundingClientRect(); return r.top + Math.min(r.height / 2, 18) - box.top; };
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path"), w = box.width;
      path.setAttribute("d", `M0 ${n(middle(row))}C${n(w / 2)} ${n(middle(row))} ${n(w / 2)} ${n(middle(other))} ${n(w)} ${n(middle(other))}`);
      path.dataset.doc = row.dataset.doc;
      svg.append(path);
    }
  };
  const light = (doc) => {
    for (const part of all("#lists [data-doc]")) part.classList.toggle("lit", doc !== undefined && part.dataset.doc === doc);
  };
  let opened = null;
  const look = (row) => {
    opened = row;
    const t = Number(row.dataset.topic), m = Number(measure.value), a = Number(one.value), b = Number(other.value);
    const seen = open_rows(), query = data.queries ? data.queries[t] : "";
    $("beside-h").classList.toggle("long", query.length > 100);
    $("beside-h").replaceChildren(make("span", "id", data.topics[t]), ...(query ? [" ", query] : []));
    $("beside-where").textContent = `${seen.indexOf(row) + 1} of ${counted(seen.length, "topic")}`;
    $("previous").disabled = seen[0] === row;
    $("next").disabled = seen[seen.length - 1] === row;
    const values = [a, b].map((s) => data.values[m][s][t]);
    const gain = values.includes(null) ? null : values[1] - values[0], known = data.measures[m];
    const verdict = gain === null ? "has no value for one of the two" : gain === 0 ? "the same for both"
      : `${data.systems[(gain > 0) === !known.lower ? b : a]} is better by ${shown(Math.abs(gain), data.digits)}`;
    const kinds = [...row.cells].slice(2, row.cells.length - data.systems.length).map((cell) => cell.textContent).filter(Boolean);
    const formula = near.arithmetic[m] ? near.arithmetic[m].formula : "";
    const joined = document.createElementNS("http://www.w3.org/2000/svg", "svg");
    joined.setAttribute("class", "joins");
    joined.setAttribute("aria-hidden", "true");
    const both = make("div", "lists", column(m, a, b, t, "one"), joined, column(m, b, a, t, "other"));
    both.id = "lists";
    $("beside-body").replaceChildren(
      make("p", "said", `${known.name}: ${verdict}.`, ...kinds.map((kind) => make("span", "kind", kind))),
      both, ...(formula ? [make("p", "note", `${known.name} = ${formula}`)] : []));
    for (const each of all("tr[data-doc]", both)) {
      each.addEventListener("mouseenter", () => light(each.dataset.doc));
      each.addEventListener("focus", () => light(each.dataset.doc));
      each.addEventListener("mouseleave", () => light());
      each.addEventListener("blur", () => light());
    }
    dialog.scrollTop = 0;
    joins();
  };
  const step_to = (by) => {
    const seen = open_rows(), next = seen[seen.indexOf(opened) + by];
    if (next) look(next);
    if (document.activeElement === document.body || document.activeElement.disabled) $("close").focus();
  };
  if (near) {
    for (const row of rows()) {
      const id = row.cells[0].querySelector(".id"), button = make("button", "open", ...id.childNodes);
      button.type = "button";
      button.setAttribute("aria-haspopup", "dialog");
      id.append(button);
      row.classList.add("opens");
      row.addEventListener("click", () => {
        if (String(getSelection())) return;
        for (const each of rows()) each.querySelector(".open").tabIndex = each === row ? 0 : -1;
        look(row);
        dialog.showModal();
        $("close").focus();
        joins();
      });
      button.addEventListener("keydown", (event) => {
        const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
        const next = by && open_rows()[open_rows().indexOf(row) + by];
        if (!next) return;
        event.preventDefault();
        button.tabIndex = -1;
        next.querySelector(".open").tabIndex = 0;
        next.querySelector(".open").focus();
      });
    }
    dialog.addEventListener("close", () => {
      const button = opened.querySelector(".open");
      for (const row of rows()) row.querySelector(".open").tabIndex = row === opened ? 0 : -1;
      button.focus();
    });
    dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
    $("close").addEventListener("click", () => dialog.close());
    $("previous").addEventListener("click", () => step_to(-1));
    $("next").addEventListener("click", () => step_to(1));
    dialog.addEventListener("keydown", (event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by) step_to(by);
    });
    $("differences").addEventListener("click", (event) => {
      const bar = event.target.closest("rect.mark"), bars_drawn = all("#differences rect.mark");
      const order = bar && rows().filter((row) => row.cells[1].textContent !== "–")
        .sort((p, q) => gain_of(q) - gain_of(p) || p.dataset.topic - q.dataset.topic);
      if (bar) order[bars_drawn.indexOf(bar)].click();
    });
  }
  const gain_of = (row) => {
    const [m, a, b, t] = [measure.value, one.value, other.value, row.dataset.topic].map(Number);
    return data.values[m][b][t] - data.values[m][a][t];
  };

  let wide = innerWidth;
  addEventListener("resize", () => { if (innerWidth !== wide) { wide = innerWidth; show(); } joins(); });
  show();
})();
