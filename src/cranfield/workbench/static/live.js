// A page with work that is still going on: look every second, and load it again when the work is done. A reload would
// cancel a form that is being filled in or sent, so a page in use offers a link instead.
if (document.querySelector("[data-job]")) {
  let inUse = false;
  for (const event of ["input", "submit", "beforeunload"]) addEventListener(event, () => { inUse = true; }, true);
  const link = () => {
    const made = document.createElement("a");
    made.href = location.href;
    made.textContent = "The result is ready: load the page again";
    return made;
  };
  const look = async () => {
    const response = await fetch(location.href, { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const old = document.querySelectorAll("[data-job]"), fresh = page.querySelectorAll("[data-job]");
    if (fresh.length < old.length) {
      if (inUse) old.forEach((each) => each.replaceWith(link()));
      else location.reload();
    } else {
      old.forEach((each, i) => each.replaceWith(fresh[i]));
      setTimeout(look, 1000);
    }
  };
  setTimeout(look, 700);
}
