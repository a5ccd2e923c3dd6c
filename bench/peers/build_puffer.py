"""Build pufferlib-core's CPU extension from the source inside its installed wheel, for the torch beside it.

Run once by `make peers-train` with the peer venv's python. The wheel's own binary wants CUDA libraries and torch 2.9,
and without it pufferlib's trainer refuses to train. Nothing is changed but the torch it is linked with.
"""

import importlib.util
import subprocess
import sysconfig
from pathlib import Path

import torch
from torch.utils.cpp_extension import include_paths


def main() -> None:
    found = importlib.util.find_spec("pufferlib")
    if found is None or found.origin is None:
        raise SystemExit("pufferlib-core is not installed here; run `make peers-train`")
    package, libraries = Path(found.origin).parent, Path(torch.__file__).parent / "lib"
    target = package / f"_C{sysconfig.get_config_var('EXT_SUFFIX')}"
    headers = [f"-I{path}" for path in (*include_paths(), sysconfig.get_path("include"))]
    linked = [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-ltorch", "-ltorch_cpu", "-lc10", "-ltorch_python"]
    source = str(package / "extensions" / "pufferlib.cpp")
    subprocess.run(
        ["g++", "-O3", "-std=c++20", "-shared", "-fPIC", *headers, source, *linked, "-o", str(target)], check=True
    )


if __name__ == "__main__":
    main()
