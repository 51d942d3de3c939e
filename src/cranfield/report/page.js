// The page is whole without this: here are its choosers, the sorting and filtering of tables, and the theme.
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
    const named = table.tHead.rows[0].cells[column].classList.contains("n");
    const turn = direction === "ascending" ? 1 : -1;
    const keyed = [...table.tBodies[0].rows].map((row) => {
      const text = row.cells[column].textContent;
      return { row, key: named ? text : number(text) };
    });
    keyed.sort((a, b) => {
      if (a.key === null || b.key === null) return (a.key === null) - (b.key === null);
      return turn * (named ? names.compare(a.key, b.key) : a.key - b.key);
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
    const width = Math.min(760, Math.max(320, 13 * rows.length)), height = 320;
    const domain = nice([0, ...rows.map((row) => row[1])]);
    const up = (v) => height + (v - domain[0]) / (domain[1] - domain[0]) * -height;
    const at = (i) => (i + 0.5) / Math.max(rows.length, 1) * width;
    const half = width / rows.length * 0.42;
    const sign = (v) => v > 0 ? 0 : v < 0 ? 2 : 1;
    const tone = ["c0", "grey", "c1"];
    const marks = rows.map(([name, v], i) => {
      const top = Math.min(up(v), up(0)), high = Math.abs(up(0) - up(v));
      return `<rect class="mark fill ${tone[sign(v)]}" x="${n(at(i) - half)}" y="${n(top)}" width="${n(2 * half)}" `
        + `height="${n(Math.max(high, 0.6))}"><title>${escaped(`${name}: ${y} ${short(v)}`)}</title></rect>`;
    }).join("") + `<path class="mark line grey" stroke-width="1" d="M0 ${n(up(0))}H${n(width)}"/>`;
    const labels = rows.length <= LABELLED ? rows.map(([name], i) => [at(i), cut(name)]) : [];
    const places = ticks(domain).map(([v, text]) => [up(v), text]);
    const present = [0, 1, 2].filter((s) => rows.some((row) => sign(row[1]) === s));
    const legend = present.map((s) => `<li><svg width="12" height="14" aria-hidden="true"><rect class="fill ${tone[s]}" `
      + `width="12" height="12" y="1"/></svg>${escaped(signs[s])}</li>`).join("");
    return framed("differences", title, said, width, height, { name: "topic", ticks: labels, turned: true },
      { name: y, ticks: places }, marks) + `<ul class="legend">${legend}</ul>`;
  };

  const scatter = (points, x, y, title, said, given) => {
    const size = 380, domain = given || nice(points.flatMap((p) => [p[1], p[2]]));
    const across = (v) => (v - domain[0]) / (domain[1] - domain[0]) * size;
    const up = (v) => size + (v - domain[0]) / (domain[1] - domain[0]) * -size;
    const marks = `<path class="mark line grey" stroke-width="1" stroke-dasharray="3 3" d="M0 ${size}L${size} 0"/>`
      + points.map(([name, a, b]) => `<circle class="mark fill c0" opacity="0.75" cx="${n(across(a))}" cy="${n(up(b))}" `
      + `r="3.8"><title>${escaped(`${name}: ${x} ${short(a)}, ${y} ${short(b)}`)}</title></circle>`).join("");
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
    const where = `${known.name}: a point a topic; ${known.lower ? "below" : "above"} the line ${to} is better`;
    $("scatter").innerHTML = scatter(points, from, to, where, said, known.domain);
    $("scatter-caption").textContent = where;
    $("topics-measure").textContent = known.name;
    $("topics-difference").textContent = `${to} − ${from}`;
    for (const row of $("topics").tBodies[0].rows) {
      const t = Number(row.dataset.topic);
      data.systems.forEach((_, s) => { row.cells[s + 2].textContent = shown(data.values[m][s][t], data.digits); });
      row.cells[1].textContent = shown(gain[t][1], data.digits, true);
    }
    const sorted = all("#topics th[aria-sort]")[0];
    if (sorted) sort($("topics"), sorted.cellIndex, sorted.getAttribute("aria-sort"));
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
  const filter = $("filter");
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    let left = 0;
    for (const row of $("topics").tBodies[0].rows) {
      row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
      left += !row.hidden;
    }
    $("filtered").textContent = `${left} of ${data.topics.length} topics`;
  });

  show();
})();
