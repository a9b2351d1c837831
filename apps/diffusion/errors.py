"""The two ways in which the app ends without a result."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
from front import Misuse

__all__ = ["Failure", "Misuse"]


class Failure(Exception):
    """The program ran, or tried to, and gave no result."""
