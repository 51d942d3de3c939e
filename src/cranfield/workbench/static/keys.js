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

const HASTY = 300; // ms

// The same input again within HASTY is a key that bounces, a double click or a double tap: about a document nobody has read.
export class RepeatGuard {
  #last = "";
  #at = -Infinity;

  refuses(input) {
    const now = performance.now(), hasty = input === this.#last && now - this.#at < HASTY;
    this.#last = input;
    this.#at = now;
    return hasty;
  }

  // the same for buttons of a form, whether they are clicked, tapped or pressed with Enter
  watch(form, buttons) {
    form.addEventListener("click", (event) => {
      if (!event.target.closest(buttons)) return;
      if (!this.refuses(event.detail ? "pointer" : "button") && event.detail < 2) return;
      event.preventDefault();
      event.stopPropagation();
    }, true);
    form.addEventListener("keydown", (event) => { // Enter that is held down clicks again and again
      if (event.repeat && event.target.closest(buttons)) event.preventDefault();
    });
  }
}

// keys: name → key; act(name, digit) is true if there was something to do; `guard` refuses hasty repeats of the acts in `guarded`
export const listen = ({ keys, single, act, guard, guarded = [] }) => {
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
    const hasty = guard && guard.refuses(`${name || "grade"} ${digit}`) && guarded.includes(name || "grade");
    if (event.repeat || hasty) event.preventDefault();
    else if (act(name || "grade", digit)) event.preventDefault();
  });
};
