// Starts the service worker, with which a page of judging can be loaded again without a connection; and stores the next
// documents for such a page. Browsers allow a service worker over https they trust, and on this machine itself.
import { ask } from "./net.js";

const HOME = "/static/".slice(0, -"static/".length); // where the workspace begins
const CACHE = `cranfield${HOME.slice(0, -1)} ${document.body.dataset.mark || ""}`;
const available = "serviceWorker" in navigator && isSecureContext;
export const reloadNote = available
  ? "You can load this page again without a connection."
  : "Do not reload this page without a connection: this browser allows that over trusted https and on 127.0.0.1 only.";

const start = async () => {
  await navigator.serviceWorker.register(document.querySelector("meta[name=worker]").content, { scope: HOME });
  const { active } = await navigator.serviceWorker.ready;
  const urls = [location.href, ...performance.getEntriesByType("resource").map((each) => each.name)];
  const channel = new MessageChannel();
  channel.port1.onmessage = () => { document.body.dataset.offline = "ready"; };
  active.postMessage({ urls }, [channel.port2]);
};
if (available) start().catch(() => { /* storage is off or full: the page works as before */ });

const note = document.getElementById("reload-note");
if (note) note.textContent = reloadNote;

// the values that a page needs after a reload without a connection, under a name
export const saveForReload = async (name, values) => {
  if (!available) return;
  try { await (await caches.open(CACHE)).put(`/reload/${encodeURIComponent(name)}`, Response.json(values)); } catch { /* no room */ }
};

export const savedForReload = async (name) => {
  if (!available) return null;
  try {
    const stored = await (await caches.open(CACHE)).match(`/reload/${encodeURIComponent(name)}`);
    return stored ? stored.json() : null;
  } catch { return null; }
};

// what the server answers now; without a connection what was saved last, with `saved: true`; null if there is neither
export const askOrSaved = async (url, name) => {
  try {
    return await ask(url);
  } catch (error) {
    const saved = error instanceof TypeError ? await savedForReload(name) : null;
    return saved ? { ...saved, saved: true } : null;
  }
};
