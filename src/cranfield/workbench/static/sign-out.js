// Signing out empties the caches of the service worker, also from a page that the worker does not control.
import { emptyCaches } from "./caches.js";

const form = document.querySelector("form.sign-out");
form.addEventListener("submit", async (event) => {
  if (!window.caches) return;
  event.preventDefault();
  try { await emptyCaches(); } finally { form.submit(); }
});
