// Buttons that copy a text of the page. Where the browser has no clipboard (plain http elsewhere), the text is selected.
for (const button of document.querySelectorAll("button[data-copy]")) {
  button.hidden = false;
  button.addEventListener("click", async () => {
    const source = document.getElementById(button.dataset.copy), status = document.getElementById("copied");
    try {
      await navigator.clipboard.writeText(source.textContent);
      status.textContent = "Copied.";
    } catch {
      getSelection().selectAllChildren(source);
      status.textContent = "Selected: copy it with Ctrl+C.";
    }
  });
}
