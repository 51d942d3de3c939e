// The fields of a document's card as nodes; card.html draws the same. Addresses come from the server, which has checked them.
const make = (tag, values) => Object.assign(document.createElement(tag), values);

const LONG = 80; // characters; a longer text takes the whole width
const IMAGE = "/image"; // the server puts the prefix of the workspace here, and leaves it out of values
const addressOf = (image) => image.replace(/^\/image(?=\?)/, IMAGE);

const link = (href, content) => {
  const made = make("a", { href, target: "_blank", rel: "noopener noreferrer" });
  made.append(content);
  return made;
};

const valueNode = ({ text, url, image }) => {
  const src = addressOf(image);
  if (src) return link(src, make("img", { referrerPolicy: "no-referrer", decoding: "async", loading: "lazy", alt: text, src }));
  const made = url ? link(url, text) : make("span", { textContent: text });
  made.dir = "auto";
  return made;
};

export const fieldNodes = (parts = []) => parts.map(({ type, label, values }) => {
  const long = type === "text" && values.some(({ text }) => [...text].length > LONG);
  const group = make("div", { className: `of-${type}${long ? " long" : ""}` });
  group.append(make("dt", { textContent: label }), ...values.map((each) => {
    const line = document.createElement("dd");
    line.append(valueNode(each));
    return line;
  }));
  return group;
});

export const fieldBox = (parts) => {
  const box = make("dl", { className: "fields-of-card", hidden: !parts.length });
  box.append(...fieldNodes(parts));
  return box;
};

// the title, the fields above and below the text, and the label of the text
export const showCard = (item) => {
  const show = (id, nodes) => {
    const box = document.getElementById(id);
    box.hidden = !nodes.length;
    box.replaceChildren(...nodes);
  };
  document.getElementById("title").textContent = item.title || item.document;
  show("above", fieldNodes(item.above));
  show("below", fieldNodes(item.below));
  show("text-label", item.text_label ? [item.text_label] : []);
};

// loads the images of a document that comes later
export const fetchImages = ({ above = [], below = [] }) => {
  for (const { values } of [...above, ...below]) {
    for (const { image } of values) if (image) make("img", { referrerPolicy: "no-referrer" }).src = addressOf(image);
  }
};

// an image that does not come leaves its text
const nameMissing = (image) => image.replaceWith(make("span", { className: "note", textContent: `No image: ${image.alt}` }));
const isOfCard = (node) => node instanceof HTMLImageElement && node.closest(".fields-of-card");
addEventListener("error", ({ target }) => { if (isOfCard(target)) nameMissing(target); }, true);
for (const image of document.querySelectorAll(".fields-of-card img")) if (image.complete && !image.naturalWidth) nameMissing(image);
