// A page of judging without a document: what was said before and is not sent yet is sent from here too.
import { Outbox } from "./queue.js";
import { tell } from "./unsent.js";

const outbox = new Outbox({
  page: "judge",
  url: "/judge.json",
  body: (events, round) => ({ round, events, n: 0 }),
  changed: () => told(),
});
const told = tell(outbox, (event) => event.kind === "judgment" ? `${event.grade}` : event.kind);
told();
outbox.flush();
