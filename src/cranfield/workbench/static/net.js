// Requests to this server and to no other: JSON in, JSON out, errors as sentences.
import { sessionEnded, sessionWorks } from "./session.js";

export class Refused extends Error {
  constructor(status, values) {
    super(values.error || `the server answers ${status}`);
    this.status = status;
    this.values = values;
  }
}

const refusal = (status, values) => {
  if ("sign_in" in values) sessionEnded(values);
  return new Refused(status, values);
};

export async function ask(url, options = {}) {
  const response = await fetch(url, { credentials: "same-origin", cache: "no-cache", ...options });
  if (response.ok || response.status === 304) sessionWorks();
  if (response.status === 304) return null;
  if (!response.ok) throw refusal(response.status, await response.json().catch(() => ({})));
  return response.json(); // what was cut short on its way is no answer
}

export const send = (url, values) =>
  ask(url, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(values) });

// an id without crypto.randomUUID, which plain HTTP off localhost does not have; the later of two sorts last
export const newId = () => {
  const random = crypto.getRandomValues(new Uint8Array(8));
  const hex = [...random].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  return `${(BigInt(Date.now()) * 1000000n).toString(16).padStart(16, "0")}-${hex}`;
};

// ask every five seconds, saying what is known already; stops while the page is hidden
export const follow = (url, told, seconds = 5) => {
  let tag = "";
  const look = async () => {
    if (!document.hidden) {
      try {
        const response = await fetch(url, { credentials: "same-origin", headers: tag ? { "If-None-Match": tag } : {} });
        if (response.status === 401 || response.status === 403) refusal(response.status, await response.json());
        if (response.ok) {
          sessionWorks();
          tag = response.headers.get("ETag") || "";
          told(await response.json());
        }
      } catch { /* offline: ask again later */ }
    }
    setTimeout(look, seconds * 1000);
  };
  setTimeout(look, seconds * 1000);
};
