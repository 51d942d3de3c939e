// Importing: every chosen file is uploaded under its part, then the server imports them together.
import { ask } from "./net.js";
import { make, refusal, upload } from "./upload.js";

for (const form of document.querySelectorAll("form.upload")) {
  const page = form.getAttribute("action") || "/import";
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    const outcome = form.querySelector(".outcome"), button = form.querySelector("button");
    const files = [...form.querySelectorAll("input[type=file]")].filter((each) => each.files.length);
    button.disabled = true;
    try {
      for (const input of files) {
        const file = input.files[0];
        outcome.replaceChildren(make("p", `Uploading ${file.name} …`));
        await upload("/import/file.json", { part: input.name, name: file.name }, file);
      }
      outcome.replaceChildren(make("p", "Checking …"));
      const fields = new URLSearchParams({ do: form.dataset.do });
      for (const input of form.querySelectorAll("input:not([type=file]), select")) fields.set(input.name, input.value);
      const headers = { "Content-Type": "application/x-www-form-urlencoded" };
      await ask(`${page}.json`, { method: "POST", headers, body: fields.toString() });
      location.href = `${page}#task`;
      location.reload();
    } catch (error) {
      outcome.replaceChildren(refusal(error));
      button.disabled = false;
    }
  });
}
