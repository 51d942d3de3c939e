"""Builds the native core as one abi3 module; without a compiler the install goes on without it.

A wheel without the core is a pure one (py3-none-any): its name must not promise a binary that is not in it.
CRANFIELD_NO_NATIVE=1 leaves the core out, CRANFIELD_REQUIRE_NATIVE=1 makes a failed build an error.
CRANFIELD_CFLAGS and CRANFIELD_LDFLAGS are added to the flags.
"""

import os
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build_ext import build_ext

NO_NATIVE = bool(os.environ.get("CRANFIELD_NO_NATIVE"))
REQUIRED = bool(os.environ.get("CRANFIELD_REQUIRE_NATIVE"))
FLAGS = [] if os.name == "nt" else ["-O3", "-std=c11"]

core = Extension(
    "cranfield.base.kernels._core",
    sources=["src/cranfield/base/kernels/core.c"],
    depends=["src/cranfield/base/kernels/usual.h"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    py_limited_api=True,
    extra_compile_args=[*FLAGS, *os.environ.get("CRANFIELD_CFLAGS", "").split()],
    extra_link_args=os.environ.get("CRANFIELD_LDFLAGS", "").split(),
    optional=not REQUIRED,
)


class BuildCore(build_ext):
    """Builds the core and remembers whether it came out."""

    built = False

    def run(self) -> None:
        """Build; say what is lost where that failed."""
        super().run()
        self.built = all(Path(self.get_ext_fullpath(extension.name)).exists() for extension in self.extensions)
        if not self.built:
            print(
                "cranfield: the native core was not built; the NumPy twin will run instead (same results, slower). "
                "Install a C compiler and Python's headers, then install cranfield again.",
                file=sys.stderr,
            )

    def build_extension(self, ext: Extension) -> None:
        """Build; after a failure nothing of an older build may be left to be taken for the new one."""
        try:
            super().build_extension(ext)
        except Exception:
            old = Path(self.get_ext_fullpath(ext.name))
            old.unlink(missing_ok=True)
            if self.inplace:
                Path("src", *ext.name.split(".")).with_name(old.name).unlink(missing_ok=True)
            raise


class Wheel(bdist_wheel):
    """Builds the core first, so that the wheel is tagged by what is in it."""

    def run(self) -> None:
        """Build the wheel: abi3 with the core, pure without."""
        if self.distribution.has_ext_modules():
            self.run_command("build_ext")
            build = self.get_finalized_command("build_ext")
            if not build.built:  # type: ignore[attr-defined]
                self.distribution.ext_modules = []
                self.root_is_pure = True
                self.py_limited_api = False
        super().run()


setup(
    ext_modules=[] if NO_NATIVE else [core],
    cmdclass={"build_ext": BuildCore, "bdist_wheel": Wheel},
    options={} if NO_NATIVE else {"bdist_wheel": {"py_limited_api": "cp311"}},
)
