"""Somebody at a browser with a keyboard and no mouse: Tab to what has a name, Enter, and what they type."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

MOST = 150  # presses of Tab before somebody gives up
NAME = """() => {
  const on = document.activeElement, label = on.labels && on.labels[0];
  const own = on.getAttribute("aria-label") || (on.matches("input, select, textarea") ? "" : on.textContent) || "";
  return [on.tagName, (own || (label ? label.textContent : "")).trim().replace(/\\s+/g, " ")];
}"""


class Keyboard:
    """The keys of one page; nothing here uses the mouse, sets a value or calls a script of the page."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.presses = 0
        page.on("filechooser", lambda dialog: None)  # from now on dialogs come here; asked for later, one may be missed

    def press(self, key: str) -> None:
        """Press one key."""
        self.presses += 1
        self.page.keyboard.press(key)

    def focused(self) -> tuple[str, str]:
        """The tag and the name of the element with the focus."""
        try:
            tag, name = self.page.evaluate(NAME)
        except Exception as error:  # a page whose work is done loads itself again: Tab starts at its top
            if "context was destroyed" not in str(error):
                raise
            self.page.wait_for_load_state()
            return "", ""
        return tag, name

    def go_to(self, name: str, tag: str = "") -> None:
        """Press Tab until the element with a name that begins so has the focus."""
        seen = []
        for _ in range(MOST):
            self.press("Tab")
            on, found = self.focused()
            seen.append(found)
            if found.startswith(name) and tag in ("", on):
                return
        raise AssertionError(f"no Tab leads to {name!r}; it led to {list(dict.fromkeys(seen))}")

    def open(self, name: str, tag: str = "") -> None:
        """Go to a link or button, and press Enter."""
        self.go_to(name, tag)
        self.press("Enter")

    def follow(self, name: str, tag: str = "") -> None:
        """Go to a link or button that leads to another page, and follow it."""
        self.go_to(name, tag)
        with self.page.expect_navigation():
            self.press("Enter")

    def enter(self, name: str, text: str) -> None:
        """Type a text into a field."""
        self.go_to(name)
        self.presses += len(text)
        self.page.keyboard.press("Control+A")
        self.page.keyboard.type(text)

    def choose_file(self, name: str, path: Path) -> None:
        """Open the dialog of the system at a field for files, and choose one."""
        self.go_to(name, "INPUT")
        with self.page.expect_file_chooser() as waiting:
            self.press("Enter")
        waiting.value.set_files(path)

    def choose(self, menu: str, name: str) -> None:
        """Open a menu of the bar, and a page in it."""
        self.open(menu, "SUMMARY")
        self.follow(name, "A")
