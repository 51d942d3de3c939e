// The service worker: pages of judging and their images load from the network first. Without a connection they load as the
// same account saw them last. Each account has one cache, and signing out empties all of them.
const PAGES = new Set(["/judge", "/search", "/prefer", "/adjudicate"]);
const HOME = "/static/".slice(0, -"static/".length); // where the workspace begins: the server writes its prefix into scripts
const PREFIX = `cranfield${HOME.slice(0, -1)} `; // workspaces of one server have caches of their own
const CURRENT = "/current-account"; // in the cache `PREFIX`: the account that was signed in last
const GATEWAY = [502, 504]; // a proxy whose server is down
const MOST = { page: 20, image: 60 }; // in the cache of an account; the oldest go first

const currentAccount = async () => {
  const stored = await caches.match(CURRENT, { cacheName: PREFIX });
  return stored ? stored.text() : "";
};

const emptyCaches = async () => {
  for (const name of await caches.keys()) if (name.startsWith(PREFIX)) await caches.delete(name);
};

// store a response in the cache of its account; a static file has none and belongs to the current one
const store = async (request, response) => {
  let account = response.headers.get("Cranfield-Account");
  if (account) await (await caches.open(PREFIX)).put(CURRENT, new Response(account));
  else account = await currentAccount();
  if (!account) return;
  const cache = await caches.open(PREFIX + account);
  await cache.put(request, response);
  const keys = await cache.keys();
  for (const [kind, most] of Object.entries(MOST)) {
    for (const each of keys.filter(({ url }) => kindOf(new URL(url)) === kind).slice(0, -most)) await cache.delete(each);
  }
};

// what is stored of this server: pages of judging, images of cards, static files
const kindOf = ({ pathname }) => PAGES.has(pathname) ? "page" : pathname === "/image" ? "image" : pathname.startsWith("/static/") ? "static" : "";
// whether a stored page shows what an address asks for: the same round, topic and query, as far as the address names them
const shows = (stored, url) => stored.pathname === url.pathname && !stored.searchParams.has("document")
  && [...stored.searchParams].every(([name, value]) => !url.search || url.searchParams.get(name) === value);
const isStorable = (url, response) => response.ok && !response.redirected && (kindOf(url) === "static" || response.headers.has("Cranfield-Account"));

const lastSeen = async (request, url) => {
  const account = await currentAccount();
  if (!account) return undefined;
  const cache = await caches.open(PREFIX + account), exact = await cache.match(request, { ignoreVary: true });
  if (exact || kindOf(url) !== "page") return exact;
  const similar = (await cache.keys()).findLast((each) => shows(new URL(each.url), url));
  return similar && cache.match(similar, { ignoreVary: true });
};

const networkFirst = async (event, url) => {
  let response;
  try {
    response = await fetch(event.request);
  } catch (error) {
    const stored = await lastSeen(event.request, url);
    if (stored) return stored;
    throw error;
  }
  if (GATEWAY.includes(response.status)) return await lastSeen(event.request, url) || response;
  if (isStorable(url, response)) event.waitUntil(store(event.request, response.clone()));
  return response;
};

addEventListener("install", () => skipWaiting());
addEventListener("activate", (event) => event.waitUntil(clients.claim()));
addEventListener("fetch", (event) => {
  const url = new URL(event.request.url);
  if (url.origin !== location.origin) return;
  if (event.request.method === "POST" && url.pathname === "/logout") event.waitUntil(emptyCaches());
  if (event.request.method === "GET" && kindOf(url)) event.respondWith(networkFirst(event, url));
});

// what a page had loaded before this worker was there
addEventListener("message", (event) => event.waitUntil((async () => {
  for (const address of event.data.urls) {
    const url = new URL(address);
    if (url.origin !== location.origin || !kindOf(url)) continue;
    try {
      const response = await fetch(address, { credentials: "same-origin" });
      if (isStorable(url, response)) await store(address, response);
    } catch { /* the connection is gone: the next visit stores it */ }
  }
  event.ports[0]?.postMessage("stored");
})()));
