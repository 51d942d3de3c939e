// A page with work that is still going on: look every second, and load it again when the work is done. A reload would
// cancel a form that is being filled in or sent, and take the focus from somebody who goes through the page by Tab; so a
// page in use offers a link instead. Without a connection, or while
// the server is starting again, it says so and keeps looking.
import { sessionEnded } from "./session.js";

const LONGEST_WAIT = 15; // seconds
if (document.querySelector("[data-job]")) {
  let inUse = false, wait = 1;
  for (const event of ["input", "submit", "beforeunload"]) addEventListener(event, () => { inUse = true; }, true);
  addEventListener("keydown", (event) => { inUse ||= event.key === "Tab"; }, true);
  const link = () => Object.assign(document.createElement("a"), { href: location.href, textContent: "The result is ready: load the page again" });
  const say = (text) => {
    for (const each of document.querySelectorAll("[data-job]")) {
      const line = each.querySelector(".outage") || each.appendChild(Object.assign(document.createElement("p"), { className: "outage note" }));
      if (line.textContent !== text) line.textContent = text;
    }
  };
  const later = (text) => {
    wait = Math.min(LONGEST_WAIT, 2 * wait);
    say(text);
    setTimeout(look, 1000 * wait);
  };
  const look = async () => {
    let response, text;
    try {
      response = await fetch(location.href, { credentials: "same-origin" });
      text = await response.text();
    } catch { return later("No connection to the server. This page tries again."); }
    if (response.redirected && new URL(response.url).pathname === "/login") {
      sessionEnded({ sign_in: "/login" });
      return later("");
    }
    const page = new DOMParser().parseFromString(text, "text/html");
    const old = document.querySelectorAll("[data-job]"), fresh = page.querySelectorAll("[data-job]");
    if (!response.ok && !fresh.length) return later("The server cannot answer at the moment. This page tries again.");
    wait = 1;
    if (fresh.length < old.length) {
      if (inUse) old.forEach((each) => each.replaceWith(link()));
      else location.reload();
    } else {
      old.forEach((each, i) => each.replaceWith(fresh[i]));
      setTimeout(look, 1000);
    }
  };
  setTimeout(look, 700);
}
