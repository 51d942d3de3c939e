// Adding a run: the file is the body of the request, its name travels in the query.
import { ask } from "./net.js";

const form = document.getElementById("add"), told = document.getElementById("added");
if (form) {
  form.hidden = false;
  const say = (text, look = "told") => {
    const line = document.createElement("p");
    line.textContent = text;
    const box = document.createElement("div");
    box.className = look;
    box.append(line);
    told.replaceChildren(box);
  };
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = form.elements.file.files[0];
    const name = form.elements.name.value.trim() || file.name;
    const button = form.querySelector("button");
    button.disabled = true;
    say("Checking …", "note");
    try {
      const url = `/runs.json?${new URLSearchParams({ name })}`;
      const answer = await ask(url, { method: "POST", headers: { "Content-Type": "application/octet-stream" }, body: file });
      location.href = `/runs?${new URLSearchParams({ new: answer.name })}`;
    } catch (error) {
      say([error.message, error.values?.advice].filter(Boolean).join(". "));
    }
    button.disabled = false;
  });
}
