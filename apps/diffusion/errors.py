"""The two ways in which the app ends without a result."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "common"))
from front import Failure, Misuse

__all__ = ["Failure", "Misuse"]
