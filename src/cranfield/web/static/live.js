// A page with work that is still going on: look every second, and load it again when the work is done.
if (document.querySelector("[data-job]")) {
  const look = async () => {
    const response = await fetch(location.href, { credentials: "same-origin" });
    const page = new DOMParser().parseFromString(await response.text(), "text/html");
    const old = document.querySelectorAll("[data-job]"), fresh = page.querySelectorAll("[data-job]");
    if (fresh.length < old.length) location.reload();
    else {
      old.forEach((each, i) => each.replaceWith(fresh[i]));
      setTimeout(look, 1000);
    }
  };
  setTimeout(look, 700);
}
