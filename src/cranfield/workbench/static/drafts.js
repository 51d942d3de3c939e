// What an assessor has prepared for a document and not sent: note, marks, "not sure". Each draft is a row of the browser's
// storage, by workspace, account, round and document. It survives a reload and is dropped when the label is sent.
const { workspace = "", account = "" } = document.body.dataset;
const PREFIX = ["cranfield", workspace, account, "draft"].map(encodeURIComponent).join("/") + "/";
const OLDEST = 30 * 24 * 3600 * 1000; // ms

export class Drafts {
  #memory = new Map(); // where the browser stores nothing

  constructor(round) {
    this.prefix = `${PREFIX}${encodeURIComponent(round)}/`;
    this.#dropOld();
  }

  get(key) {
    try {
      const row = localStorage.getItem(this.prefix + key);
      if (row) return JSON.parse(row);
    } catch { /* no storage here */ }
    return this.#memory.get(key) || null;
  }

  put(key, draft) {
    try {
      localStorage.setItem(this.prefix + key, JSON.stringify({ ...draft, at: Date.now() }));
      this.#memory.delete(key);
    } catch { this.#memory.set(key, draft); }
  }

  drop(key) {
    this.#memory.delete(key);
    try { localStorage.removeItem(this.prefix + key); } catch { /* no storage here */ }
  }

  #dropOld() {
    try {
      for (const key of Object.keys(localStorage)) {
        if (key.startsWith(PREFIX) && !(JSON.parse(localStorage.getItem(key)).at > Date.now() - OLDEST)) localStorage.removeItem(key);
      }
    } catch { /* no storage here */ }
  }
}
