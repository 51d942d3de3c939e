// The menu works without this script; it closes an open group on Escape, on a click elsewhere, and when the focus leaves it.
const groups = [...document.querySelectorAll("header.top details")];
const close = (but) => groups.forEach((each) => { if (each !== but) each.open = false; });

for (const group of groups) {
  group.addEventListener("toggle", () => { if (group.open) close(group); });  // browsers that do not know details[name]
  group.addEventListener("focusout", (event) => {
    if (event.relatedTarget && !group.contains(event.relatedTarget)) group.open = false;
  });
  group.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || !group.open) return;
    event.stopPropagation();
    group.open = false;
    group.querySelector("summary").focus();
  });
}
document.addEventListener("click", (event) => close(event.target.closest("header.top details")));
