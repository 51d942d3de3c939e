// A page of judging notices that a lead has edited the guidelines: it asks every minute, and when the window is used again.
import { ask } from "./net.js";

const box = document.getElementById("guidelines-changed"), shown = document.body.dataset.guideline || "";
const MINUTE = 60000;
let last = performance.now();

const look = async () => {
  last = performance.now();
  try {
    const values = await ask("/guidelines.json?now=1");
    if (!values || values.hash === shown || !box.hidden) return;
    const link = Object.assign(document.createElement("a"), { href: `/guidelines?${new URLSearchParams(shown ? { since: shown } : {})}`, textContent: "read what is new" });
    const again = Object.assign(document.createElement("a"), { href: location.href, textContent: "load this page again" });
    box.replaceChildren("The guidelines changed: ", link, ", then ", again, ". Until then your labels record the version that this page shows.");
    box.hidden = false;
  } catch { /* no connection: it asks again */ }
};
if (box) {
  setInterval(() => { if (!document.hidden && box.hidden) look(); }, MINUTE);
  addEventListener("focus", () => { if (box.hidden && performance.now() - last > 1000) look(); });
}
