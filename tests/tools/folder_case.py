"""What tests of tools share: a folder of their own."""

import tempfile
import unittest
from pathlib import Path


class FolderCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
