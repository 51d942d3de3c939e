// Adding a run: the file is the body of the request, its name travels in the query.
import { make, refusal, upload } from "./upload.js";

const form = document.getElementById("add"), outcome = document.getElementById("added");
if (form) {
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const file = form.elements.file.files[0], button = form.querySelector("button");
    const name = form.elements.name.value.trim() || file.name;
    button.disabled = true;
    outcome.replaceChildren(make("p", "Checking …"));
    try {
      const answer = await upload("/runs.json", { name }, file);
      location.href = `/runs?${new URLSearchParams({ new: answer.name })}`;
    } catch (error) {
      outcome.replaceChildren(refusal(error));
      button.disabled = false;
    }
  });
}
