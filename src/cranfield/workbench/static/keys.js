// Keys while judging: a digit grades, other keys do what the account has set. Dead while typing, with Ctrl and Meta, and
// when a key is held down; where single keys are off they need Alt.
const typing = (target) =>
  target instanceof Element && !!target.closest("textarea, select, [contenteditable], input:not([type=checkbox], [type=radio], [type=button], [type=submit])");

// the digit of a key: as typed, or by its place where it types a sign unshifted, as on AZERTY
const digitOf = (event) => {
  if (/^\d$/.test(event.key)) return event.key;
  const place = /^Digit(\d)$/.exec(event.code);
  return place && !event.shiftKey ? place[1] : "";
};

const is = (event, key) => {
  if (event.key === key || (key.length === 1 && event.key.toLowerCase() === key.toLowerCase())) return true;
  return event.altKey && /^[a-z]$/i.test(key) && event.code === `Key${key.toUpperCase()}`; // Alt types other letters on some
};

// keys: name → key; act(name, digit) is true if there was something to do
export const listen = ({ keys, single, act }) => {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing || event.ctrlKey || event.metaKey || event.getModifierState("AltGraph")) return;
    if (typing(event.target)) {
      if (event.key === "Escape" && event.target instanceof HTMLElement) event.target.blur();
      return;
    }
    if (event.altKey === single || document.querySelector("dialog[open]")) return;
    const name = Object.keys(keys).find((each) => is(event, keys[each]));
    const digit = name ? "" : digitOf(event);
    if (!name && !digit) return;
    if (event.repeat) event.preventDefault();
    else if (act(name || "grade", digit)) event.preventDefault();
  });
};
