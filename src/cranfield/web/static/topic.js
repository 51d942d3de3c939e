// A document lights up in both lists.
for (const row of document.querySelectorAll("tr[data-document]")) {
  const light = (on) => {
    for (const other of document.querySelectorAll("tr[data-document]"))
      other.classList.toggle("lit", on && other.dataset.document === row.dataset.document);
  };
  for (const name of ["mouseenter", "focusin"]) row.addEventListener(name, () => light(true));
  for (const name of ["mouseleave", "focusout"]) row.addEventListener(name, () => light(false));
}
