// A document's text as nodes: words marked, long texts in pieces that are laid out when they come into view.
const PIECE = 20000;

// places come in code points, as the server counts them; strings here in UTF-16
const inUnits = (text, spans, at) => {
  if (!/[\ud800-\udfff]/.test(text)) return [spans, at];
  const wanted = [...new Set([at, ...spans.flat()])].sort((a, b) => a - b), found = new Map();
  let units = 0, points = 0, next = 0;
  for (const sign of text) {
    while (next < wanted.length && wanted[next] === points) found.set(wanted[next++], units);
    units += sign.length;
    points++;
  }
  while (next < wanted.length) found.set(wanted[next++], units);
  return [spans.map(([a, b]) => [found.get(a), found.get(b)]), found.get(at)];
};

// every place of a text that somebody looks for, whatever its case
export const places = (text, wanted) => {
  const spans = [], low = text.toLowerCase(), what = wanted.toLowerCase();
  if (!what || low.length !== text.length) return what ? exact(text, wanted) : spans;
  for (let at = low.indexOf(what); at >= 0 && spans.length < 5000; at = low.indexOf(what, at + what.length)) spans.push([at, at + what.length]);
  return spans;
};

const exact = (text, wanted) => {
  const spans = [];
  for (let at = text.indexOf(wanted); at >= 0 && spans.length < 5000; at = text.indexOf(wanted, at + wanted.length)) spans.push([at, at + wanted.length]);
  return spans;
};

const cuts = (text) => {
  const ends = [];
  for (let end = PIECE; end < text.length; end += PIECE) {
    const line = text.lastIndexOf("\n", end), blank = text.lastIndexOf(" ", end);
    const from = end - PIECE;
    end = (line > from + PIECE / 2 ? line : blank > from + PIECE / 2 ? blank : end - 1) + 1;
    ends.push(end);
  }
  return [...ends, text.length];
};

// a fragment of a text; `best` is put where the best passage begins
export const build = (text, spans, at, counted = true) => {
  if (counted) [spans, at] = inUnits(text, spans, at);
  const whole = document.createDocumentFragment(), ends = cuts(text);
  let start = 0, s = 0, best = false;
  for (const end of ends) {
    const piece = ends.length > 1 ? document.createElement("div") : whole;
    if (piece !== whole) piece.className = "piece";
    let from = start;
    const add = (to) => {
      if (!best && at >= from && at <= to) {
        if (at > from) piece.append(text.slice(from, at));
        const here = document.createElement("span");
        here.id = "best";
        piece.append(here);
        best = true;
        from = at;
      }
      if (to > from) piece.append(text.slice(from, to));
      from = Math.max(from, to);
    };
    for (; s < spans.length && spans[s][1] <= end; s++) {
      const [a, b] = spans[s];
      if (a < from) continue;
      add(a);
      const mark = document.createElement("mark");
      mark.textContent = text.slice(a, b);
      piece.append(mark);
      from = b;
    }
    while (s < spans.length && spans[s][0] < end) s++; // a word across a cut is not marked
    add(end);
    if (piece !== whole) whole.append(piece);
    start = end;
  }
  return whole;
};
