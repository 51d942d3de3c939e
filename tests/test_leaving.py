"""The program leaves at once when it is done, with the exit code and every word said."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

ENDS = """
import atexit, sys, threading
atexit.register(print, "tidied up")
sys.argv = ["cranfield", *sys.argv[1:]]
{more}
from cranfield.cli import program
program()
"""


def ended(*arguments: str, more: str = "") -> subprocess.CompletedProcess[str]:
    program = ENDS.format(more=more)
    return subprocess.run([sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("arguments", "code"), [(("--version",), 0), (("eval", "none", "none"), 3), (("nosuch",), 2)])
def test_exit_codes_words_and_what_is_to_be_done_at_the_end_stay(arguments, code):
    found = ended(*arguments)
    assert found.returncode == code
    assert found.stdout.endswith("tidied up\n")
    assert (found.stdout.startswith("cranfield ")) == (code == 0)
    assert bool(found.stderr) == (code != 0)


def test_a_thread_that_works_on_is_waited_for():
    slow = "threading.Thread(target=lambda: (__import__('time').sleep(0.3), print('done', flush=True))).start()"
    assert "done\n" in ended("--version", more=slow).stdout


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no device that is always full")
def test_a_disk_that_is_full_at_the_very_end_is_told():
    program = "import sys; sys.argv = ['cranfield', '--version']; from cranfield.cli import program; program()"
    with open("/dev/full", "w") as full:
        found = subprocess.run(
            [sys.executable, "-c", program], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert found.returncode == 3
    assert found.stderr == "cranfield: standard output: No space left on device\n"
