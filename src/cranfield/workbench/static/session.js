// Says that the session has ended, and offers the way back in. What was not sent stays in the browser's storage meanwhile.
let banner = null;

const link = (to, text) => Object.assign(document.createElement("a"), { href: to, textContent: text });

// `values` is the reply of a request that nobody was signed in for
export const sessionEnded = (values) => {
  if (banner) return;
  banner = document.createElement("div");
  banner.id = "session-ended";
  banner.className = "told";
  banner.setAttribute("role", "alert");
  const line = document.createElement("p");
  line.append("Your session has ended. What is not sent yet stays in this browser. ");
  const back = location.pathname + location.search;
  if (values.sign_in) line.append(link(`${values.sign_in}?${new URLSearchParams({ next: back })}`, "Sign in again"), " and go on here.");
  else line.append(values.advice || "");
  banner.append(line);
  document.getElementById("main").prepend(banner);
};

export const sessionWorks = () => {
  if (banner) banner.remove();
  banner = null;
};
