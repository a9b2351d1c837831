"""Shows apidoc small headers and reads what it writes."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools"))
import apidoc

CLASS = """\
#pragma once
#include <string>

namespace meshpost {

/// Moves.
/// \\throws Error
template <class T>
class Mover : public Base {
 public:
  explicit Mover(int speed) : speed_{speed}, name_("}") {}
  virtual ~Mover() = default;
  Mover(Mover const&) = delete;
  /// Goes there, by default to 0.
  template <class U>
  MESHPOST_FN U go(U there = {}) const { return there < 0 ? U{} : there; }
  int speed() const;  ///< in m/s

 private:
  void hidden();
  int speed_ = 0;
};

namespace detail {
/// Nobody's business.
void secret();
}  // namespace detail

void undocumented();

/// One.
enum class Color : u8 {
  red,   ///< hot
  blue
};
inline constexpr int most = 3;  ///< of them

}  // namespace meshpost
"""


class ApiDoc(unittest.TestCase):
    def setUp(self):
        self.text = apidoc.header_section("meshpost/base/a.hpp", CLASS)

    def test_a_class_shows_its_public_part_without_bodies(self):
        self.assertIn("### `Mover`\n\nMoves.\n\nThrows Error\n", self.text)
        self.assertIn("template <class T>\nclass Mover : public Base {\n", self.text)
        self.assertIn("  explicit Mover(int speed);\n", self.text)
        self.assertIn(
            "  // Goes there, by default to 0.\n"
            "  template <class U>\n"
            "  U go(U there = {}) const;\n",
            self.text,
        )
        self.assertIn("  int speed() const;  // in m/s\n};", self.text)
        self.assertNotIn("hidden", self.text)
        self.assertNotIn("delete", self.text)

    def test_enumerators_and_constants_keep_what_stands_behind_them(self):
        self.assertIn("enum class Color : u8 {\n  red,   // hot\n  blue\n};", self.text)
        self.assertIn("constexpr int most = 3;  // of them", self.text)

    def test_details_and_what_has_no_comment_are_left_out(self):
        self.assertNotIn("secret", self.text)
        self.assertNotIn("undocumented", self.text)

    def test_what_stands_under_a_heading_is_shown(self):
        text = apidoc.header_section("a.h", "// -- time\n\nvoid start(State& s);\nvoid stop();\n")
        self.assertIn("**Time**\n\n### `start`, `stop`", text)

    def test_a_page_that_is_stale_is_found(self):
        with tempfile.TemporaryDirectory() as folder:
            header = Path(folder, "include/meshpost/base/a.hpp")
            header.parent.mkdir(parents=True)
            header.write_text(CLASS)

            def run(*arguments: str) -> int:
                sys.argv = ["apidoc.py", *arguments, folder]
                return apidoc.main()

            self.assertEqual(run("--check"), 1)
            self.assertEqual(run(), 0)
            self.assertEqual(run("--check"), 0)
            header.write_text(CLASS.replace("Moves.", "Rests."))
            self.assertEqual(run("--check"), 1)


if __name__ == "__main__":
    unittest.main()
