"""A question and a page of the workbench."""

from cranfield.commands.listings import presets
from cranfield.workbench.access_control import VIEWER
from cranfield.workbench.question import WorkbenchQuestion
from cranfield.workbench.routes import Page, page


class Conventions(WorkbenchQuestion):
    """The presets of conventions. A name for an example."""

    name = "conventions"

    def depends(self, bench):
        return {}

    def run(self, bench, tell):
        return presets()


@page("/hello", VIEWER, "demo.hello", menu=("look", 95, "Hello"))
def hello(request):
    """Greet whoever is here."""
    return Page("Hello", "demo_plugins:hello.html", {"greeting": f"Hello {request.account.name}"})
