"""Tests which Python packages ./run finds on a machine without a network."""

import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from folder_case import CheckoutCase


class RunWithoutNetwork(CheckoutCase):
    def setUp(self):
        super().setUp()
        for name in ("packages", "packages-dev", "requirements", "requirements-lint"):
            (self.checkout / "tools" / f"{name}.txt").write_text("")

    def make_venv(self, name: str, *, with_packages: bool) -> Path:
        """A virtual environment with or without fakes of NumPy and Matplotlib."""
        place = self.folder / name
        command = [sys.executable, "-m", "venv", "--without-pip", str(place)]
        subprocess.run(command, check=True, timeout=120)
        for package in ("numpy", "matplotlib") if with_packages else ():
            site = next(place.glob("lib/python3*/site-packages"))
            (site / package).mkdir()
            (site / package / "__init__.py").write_text("")
        return place / "bin"

    def find_numpy(self, path: Path) -> str:
        """The module that .venv imports as NumPy after ./run setup, with `path` first on the
        PATH."""
        variables = os.environ | {"PATH": f"{path}:/usr/bin:/bin", "MESHPOST_OFFLINE": "1"}
        variables.pop("PYTHONPATH", None)
        command = ["bash", str(self.checkout / "run"), "setup"]
        said = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=300)
        self.assertEqual(said.returncode, 0, said.stdout + said.stderr)
        python = self.checkout / ".venv" / "bin" / "python"
        command = [python, "-c", "import matplotlib, numpy; print(numpy.__file__)"]
        found = subprocess.run(command, env=variables, capture_output=True, text=True, timeout=60)
        self.assertEqual(found.returncode, 0, found.stderr + said.stderr)
        return found.stdout.strip()

    def test_takes_those_of_a_virtual_environment_that_python3_is(self):
        tools = self.make_venv("own", with_packages=True)
        self.assertTrue(self.find_numpy(tools).startswith(str(self.folder / "own")))

    def test_looks_further_where_python3_is_a_virtual_environment_that_has_none(self):
        tools = self.make_venv("bare", with_packages=False)
        other = self.make_venv("other", with_packages=True)
        (tools / "python3.13").write_text(f'#!/bin/sh\nexec "{other}/python" "$@"\n')
        (tools / "python3.13").chmod(0o755)
        self.find_numpy(tools)  # this one's, or those of /usr/bin/python3

    def test_keeps_one_that_a_user_made(self):
        self.make_venv(str((self.checkout / ".venv").relative_to(self.folder)), with_packages=True)
        bare = self.make_venv("bare", with_packages=False)
        self.assertTrue(self.find_numpy(bare).startswith(str(self.checkout / ".venv")))


if __name__ == "__main__":
    unittest.main()
