// A document's text as nodes: words marked, long texts in pieces that are laid out when they come into view.
const PIECE = 20000;

// places come in code points, as the server counts them; strings here in UTF-16
export const inUnits = (text, spans, at) => {
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

// the number of code points before a place of a text
export const inPoints = (text, at = text.length) => at - (text.slice(0, at).match(/[\ud800-\udbff][\udc00-\udfff]/g) || []).length;

export const MOST_PLACES = 5000; // that are marked at once

const escaped = (text) => text.replace(/[\\^$.*+?()[\]{}|/]/g, "\\$&");

// a character as it is or as a letter with its accents; any blank for a blank, since texts break lines anywhere
const charPattern = (char) => {
  if (/\s/.test(char)) return "\\s";
  const parts = char.normalize("NFD");
  return parts === char ? escaped(char) : `(?:${escaped(char)}|${escaped(parts)})`;
};

// every place of a text that somebody looks for, whatever its case, line breaks and way of writing accents
export const places = (text, wanted) => {
  if (!wanted) return [];
  const source = [...wanted.normalize("NFC").replace(/\s+/g, " ")].map(charPattern).join("").replaceAll("\\s", "\\s+");
  const spans = [], pattern = new RegExp(source, "giu");
  for (const { index, 0: { length } } of text.matchAll(pattern)) {
    spans.push([index, index + length]);
    if (spans.length === MOST_PLACES) break;
  }
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
    for (; s < spans.length && spans[s][0] < end; s++) {
      const a = Math.max(spans[s][0], start), b = Math.min(spans[s][1], end);
      if (a < from) continue;
      add(a);
      const mark = document.createElement("mark");
      mark.textContent = text.slice(a, b);
      if (a > spans[s][0]) mark.className = "rest"; // of a place across a cut
      piece.append(mark);
      from = b;
      if (b < spans[s][1]) break;
    }
    add(end);
    if (piece !== whole) whole.append(piece);
    start = end;
  }
  return whole;
};

// the part of a range within a box as places of its text, without blanks at its ends; null if there is none
export const placesIn = (box, range, text) => {
  const inside = document.createRange();
  inside.selectNodeContents(box);
  if (!range.intersectsNode(box)) return null;
  if (range.compareBoundaryPoints(Range.START_TO_START, inside) > 0) inside.setStart(range.startContainer, range.startOffset);
  if (range.compareBoundaryPoints(Range.END_TO_END, inside) < 0) inside.setEnd(range.endContainer, range.endOffset);
  const before = document.createRange();
  before.setStart(box, 0);
  before.setEnd(inside.startContainer, inside.startOffset);
  let start = before.toString().length, end = start + inside.toString().length;
  while (start < end && /\s/.test(text[start])) start++;
  while (end > start && /\s/.test(text[end - 1])) end--;
  if (isInside(text, start)) start--;
  if (isInside(text, end)) end++;
  return start < end ? [start, end] : null;
};

// whether a place is between the two halves of one character
const isInside = (text, at) => /[\ud800-\udbff]/.test(text[at - 1] || "") && /[\udc00-\udfff]/.test(text[at] || "");

// places of a box's text as ranges
export const rangesOf = (box, spans) => {
  const nodes = [], walker = document.createTreeWalker(box, NodeFilter.SHOW_TEXT);
  for (let at = 0, node = walker.nextNode(); node; at += node.length, node = walker.nextNode()) nodes.push([at, node]);
  const boundary = (place) => {
    const [at, node] = nodes.findLast(([from]) => from <= place);
    return [node, Math.min(place - at, node.length)];
  };
  return (nodes.length ? spans : []).map(([start, end]) => {
    const range = document.createRange();
    range.setStart(...boundary(start));
    range.setEnd(...boundary(end));
    return range;
  });
};

// scroll to a node of a long text: its pieces are laid out when they come into view, and may push it out again
export const reveal = (node, frames = 30) => {
  const before = node.getBoundingClientRect().top;
  node.scrollIntoView({ block: "center" });
  const moved = Math.abs(node.getBoundingClientRect().top - before) > 1;
  if (frames && (moved || frames > 27)) requestAnimationFrame(() => { if (node.isConnected) reveal(node, frames - 1); });
};
