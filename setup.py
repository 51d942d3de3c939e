"""Builds the native core as one abi3 module; where no compiler is found the install goes on without it."""

import os

from setuptools import Extension, setup

core = Extension(
    "cranfield.kernels._core",
    sources=["src/cranfield/kernels/core.c"],
    define_macros=[("Py_LIMITED_API", "0x030B0000")],
    py_limited_api=True,
    extra_compile_args=[] if os.name == "nt" else ["-O3", "-std=c11", *os.environ.get("CRANFIELD_CFLAGS", "").split()],
    extra_link_args=os.environ.get("CRANFIELD_LDFLAGS", "").split(),
    optional=True,
)

setup(
    ext_modules=[] if os.environ.get("CRANFIELD_NO_NATIVE") else [core],
    options={"bdist_wheel": {"py_limited_api": "cp311"}} if not os.environ.get("CRANFIELD_NO_NATIVE") else {},
)
