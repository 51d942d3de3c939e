// Starts the service worker, with which a page of judging can be loaded again without a connection; and stores the next
// documents for such a page. Browsers allow a service worker over https they trust, and on this machine itself.
import { HOME, OWN_CACHE, isCurrentAccount } from "./caches.js";
import { ask } from "./net.js";

const ALLOWED = "You can load this page again without a connection.";
const FORBIDDEN = "Do not reload this page without a connection: this browser allows that over trusted https and on 127.0.0.1 only.";
export let canReload = "serviceWorker" in navigator && isSecureContext;

const start = async () => {
  await navigator.serviceWorker.register(document.querySelector("meta[name=worker]").content, { scope: HOME });
  const { active } = await navigator.serviceWorker.ready;
  const urls = [location.href, ...performance.getEntriesByType("resource").map((each) => each.name)];
  const channel = new MessageChannel();
  await new Promise((stored) => {
    channel.port1.onmessage = stored;
    active.postMessage({ urls }, [channel.port2]);
  });
  document.body.dataset.offline = "ready";
};
const say = () => {
  const note = document.getElementById("reload-note");
  if (note) note.textContent = canReload ? ALLOWED : FORBIDDEN;
};
say();
const started = canReload ? start().catch(() => { // no trusted certificate, or storage is off or full: the page works as before
  canReload = false;
  say();
}) : null;

// the values that a page needs after a reload without a connection, under a name
export const saveForReload = async (name, values) => {
  await started;
  if (!canReload || !await isCurrentAccount()) return;
  try { await (await caches.open(OWN_CACHE)).put(`/reload/${encodeURIComponent(name)}`, Response.json(values)); } catch { /* no room */ }
};

export const savedForReload = async (name) => {
  if (!canReload) return null;
  try {
    const stored = await caches.match(`/reload/${encodeURIComponent(name)}`, { cacheName: OWN_CACHE });
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
