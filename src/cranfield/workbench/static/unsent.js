// Says what of an outbox is not sent yet, and shows what the server refused until somebody decides: #unsent and #refused.
import { canReload } from "./offline.js";

const $ = (id) => document.getElementById(id);

export const button = (text, act) => {
  const made = document.createElement("button");
  made.type = "button";
  made.textContent = text;
  made.addEventListener("click", act);
  return made;
};

// `said(event)` is what an event says, in a word or two; the answer is called when the outbox has changed
export const tell = (outbox, said) => {
  let late = 0;
  const waiting = () => {
    const n = outbox.waiting().length;
    late = n ? late || Date.now() : 0;
    const slow = outbox.wait > 0 || !navigator.onLine || (late && Date.now() - late > 1000);
    const advice = outbox.offline && !canReload ? ". Do not reload this page before the connection is back" : "";
    const text = n && slow ? `${n} not sent yet${outbox.problem ? `: ${outbox.problem}` : ""}${advice}` : "";
    if ($("unsent").textContent !== text) $("unsent").textContent = text;
    if (n && !slow) setTimeout(waiting, 1100);
  };
  const refused = () => {
    const rows = outbox.refused(), box = $("refused");
    const shown = rows.map((row) => row.event.id + row.refused).join(" ");
    if ((box.dataset.shown || "") === shown) return;
    box.dataset.shown = shown;
    box.hidden = !rows.length;
    box.className = "told";
    box.setAttribute("role", "alert");
    box.replaceChildren(...rows.map(({ event, refused: why }) => {
      const line = document.createElement("p");
      const what = event.kind === "withdrawal" ? "withdrawal of a label" : `${said(event)} for ${event.document}`;
      line.append(`Not stored: ${what}. The server says: ${why}. `, button("Send again", () => outbox.again(event.id)), " ", button("Drop it", () => outbox.drop(event.id)));
      return line;
    }));
  };
  return () => { waiting(); refused(); };
};

// shows the parts of a page that need its script, and sends what an earlier visit left
export const wake = (outbox, told) => {
  for (const each of document.querySelectorAll(".scripted")) each.hidden = false;
  told();
  outbox.flush();
};
