// The caches of the service worker: one for each account, and one that names the account that was signed in last.
export const HOME = "/static/".slice(0, -"static/".length); // where the workspace begins
const PREFIX = `cranfield${HOME.slice(0, -1)} `;
const MARK = document.body.dataset.mark || "";
export const OWN_CACHE = PREFIX + MARK;

// whether the worker knows this account as the one that is signed in: not after somebody has signed out in another tab
export const isCurrentAccount = async () => {
  const stored = await caches.match("/current-account", { cacheName: PREFIX });
  return !!stored && await stored.text() === MARK;
};

export const emptyCaches = async () => {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX)) await caches.delete(name);
};
