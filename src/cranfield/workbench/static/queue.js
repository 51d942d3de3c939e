// What was said and is not yet on the server: each thing a row of the browser's storage under its own id, sent in order,
// taken out when the server has it. Keyed by workspace, account and page, and sent only under that account. Any page:
//   const outbox = new Outbox({ page, url, body, answered, changed });  outbox.add(event, group);  outbox.flush();
// `body(events, group)` is what is sent, `answered(values, group)` hears what came back, `changed()` that the outbox is
// another, `elsewhere(row)` what another tab says, `settled(row)` what the server has, sent by whichever tab.
import { Refused, send } from "./net.js";

const { workspace = "", account = "" } = document.body.dataset;
const MOST = 50, LONGEST_WAIT = 30, CLAIM = 15000;
const claims = `cranfield-sender`;
const tab = `${Date.now()}-${crypto.getRandomValues(new Uint32Array(1))[0]}`;

export class Outbox {
  constructor({ page, url, body, answered = () => {}, changed = () => {}, elsewhere = () => {}, settled = () => {} }) {
    Object.assign(this, { url, body, answered, changed, settled, account });
    this.prefix = ["cranfield", workspace, account, page].map(encodeURIComponent).join("/") + "/";
    this.memory = new Map(); // where the browser keeps nothing
    this.wait = 0;
    this.problem = ""; // why nothing is sent at the moment
    this.offline = false; // whether the last request did not reach the server
    addEventListener("online", () => { this.wait = 0; this.flush(); });
    addEventListener("storage", (event) => {
      if (event.key === null || !event.key.startsWith(this.prefix)) return;
      if (event.newValue && !event.oldValue) elsewhere(JSON.parse(event.newValue));
      if (!event.newValue && event.oldValue) settled(JSON.parse(event.oldValue));
      this.changed();
    });
  }

  add(event, group = "") {
    const { guideline } = document.body.dataset; // the version of the guidelines on this page
    this._put({ event: guideline && event.kind !== "withdrawal" ? { ...event, guideline } : event, group, at: Date.now() });
    this.changed();
    this.flush();
  }

  // all rows in the order in which they were said
  rows() {
    const rows = [...this.memory.values()];
    try {
      for (let i = 0; i < localStorage.length; i++) {
        const key = localStorage.key(i);
        if (key.startsWith(this.prefix)) rows.push(JSON.parse(localStorage.getItem(key)));
      }
    } catch { /* no storage here */ }
    return rows.sort((one, other) => one.at - other.at || (one.event.id < other.event.id ? -1 : 1));
  }

  // all rows without those that another row withdraws
  rowsThatCount() {
    const rows = this.rows(), withdrawn = new Set(rows.map(({ event }) => event.refers));
    return rows.filter(({ event }) => !withdrawn.has(event.id));
  }

  waiting() { return this.rows().filter((row) => !row.refused); }

  refused() { return this.rows().filter((row) => row.refused); }

  again(id) {
    for (const row of this.refused()) if (row.event.id === id) this._put({ ...row, refused: undefined });
    this.changed();
    this.flush();
  }

  drop(id) {
    this._remove(id);
    this.changed();
  }

  // send what waits; only one tab does at a time
  flush() {
    if (this.sending) { this.more = true; return this.sending; }
    clearTimeout(this.timer);
    this.more = false;
    this.sending = this._alone(() => this._sendAll()).catch(() => {}).finally(() => {
      this.sending = null;
      this.changed();
      if (this.more) this.flush();
    });
    return this.sending;
  }

  async _alone(work) {
    if (navigator.locks) {
      return navigator.locks.request(this.prefix, { ifAvailable: true }, (lock) => lock ? work() : this._later(2));
    }
    const name = `${claims}/${this.prefix}`, held = JSON.parse(localStorage.getItem(name) || "null");
    if (held && held.tab !== tab && held.until > Date.now()) return this._later(2);
    localStorage.setItem(name, JSON.stringify({ tab, until: Date.now() + CLAIM }));
    try { return await work(); } finally { localStorage.removeItem(name); }
  }

  async _sendAll() {
    for (let waiting = this.waiting(); waiting.length; waiting = this.waiting()) {
      const group = waiting[0].group;
      const batch = waiting.filter((row) => row.group === group).slice(0, MOST);
      const now = Date.now();
      const events = batch.map((row) => ({ ...row.event, ...(now - row.at > 2000 && { age: (now - row.at) / 1000 }) }));
      let values;
      try {
        values = await send(this.url, { account: this.account, ...this.body(events, group) });
      } catch (error) {
        if (!this._failed(error, batch)) return;
        continue;
      }
      this.wait = 0;
      this.problem = "";
      this.offline = false;
      const told = new Map((values.outcomes || []).map((each) => [each.id, each]));
      for (const row of batch) {
        const { id } = row.event, outcome = told.get(id);
        if (!outcome || outcome.said === "refused") this._refuse(id, outcome ? outcome.why : "the server did not say what became of it");
        else {
          this._remove(id);
          this.settled(row);
        }
      }
      this.answered(values, group);
      this.changed();
    }
  }

  // whether to go on at once
  _failed(error, batch) {
    const status = error instanceof Refused ? error.status : 0;
    if ([400, 404, 409, 413, 415].includes(status)) { // as it is it will never be taken: shown, and kept until somebody decides
      for (const row of batch) this._refuse(row.event.id, error.message);
      return true;
    }
    this.offline = !status;
    this.problem = !status ? "no connection to the server" : status === 401 ? "sign in again to send them" : error.message;
    this.wait = Math.min(LONGEST_WAIT, this.wait ? this.wait * 2 : 0.5);
    this._later(this.wait * (0.75 + Math.random() / 2));
    return false;
  }

  _later(seconds) {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.flush(), seconds * 1000);
  }

  _refuse(id, why) {
    for (const row of this.rows()) if (row.event.id === id) this._put({ ...row, refused: why });
  }

  _put(row) {
    try {
      localStorage.setItem(this.prefix + row.event.id, JSON.stringify(row));
      this.memory.delete(row.event.id);
    } catch { this.memory.set(row.event.id, row); }
  }

  _remove(id) {
    this.memory.delete(id);
    try { localStorage.removeItem(this.prefix + id); } catch { /* no storage here */ }
  }
}
