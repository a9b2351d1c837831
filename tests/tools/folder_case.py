"""Code that tests of tools share: a folder of their own."""

import shutil
import tempfile
import unittest
from pathlib import Path


class FolderCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)


class CheckoutCase(FolderCase):
    """Makes a checkout in it that has only ./run, and an empty folder of tools."""

    def setUp(self):
        super().setUp()
        self.checkout = self.folder / "checkout"
        (self.checkout / "tools").mkdir(parents=True)
        shutil.copy(Path(__file__).resolve().parents[2] / "run", self.checkout)
