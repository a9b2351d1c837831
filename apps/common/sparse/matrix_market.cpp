#include "matrix_market.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <meshpost/base/error.hpp>

namespace meshpost::apps::sparse {
namespace {

struct Format {
  bool pattern, integer, symmetric, skew;
};

class Parser {
 public:
  Parser(std::string_view text, std::string const& name) : rest_(text), name_(name) {}

  Csr parse(Shape shape) {
    auto const format = header();
    u64 const rows = size_line(), columns = sizes_[1], stated = sizes_[2];
    check_shape(format, shape);
    u64 const size_line = number_;
    std::vector<Entry> entries;
    entries.reserve(std::min<u64>(stated, rest_.size() / 4 + 1));  // a line has four bytes or more
    auto const begin = rest_;
    u64 found = 0;
    for (; next_line(); ++found) {
      if (found == stated)
        fail("there are more entries than the " + std::to_string(stated) + " of the size line",
             "correct the number of entries in line " + std::to_string(size_line));
      add_entry(entries, format, rows, columns);
    }
    if (found < stated)
      fail("the file ends after " + std::to_string(found) + " of " + std::to_string(stated) +
               " entries",
           "it may be cut: get it again, or correct the number of entries in line " +
               std::to_string(size_line));
    rest_ = begin, number_ = size_line;
    if (lower_ && upper_) check_triangles();
    return from_entries(static_cast<u32>(rows), static_cast<u32>(columns), std::move(entries));
  }

 private:
  [[noreturn]] void fail(std::string const& what, std::string const& remedy) const {
    throw Error(Kind::bad_argument, name_ + ", line " + std::to_string(number_), what, remedy);
  }

  void check_shape(Format const& format, Shape shape) const {
    u64 const rows = sizes_[0], columns = sizes_[1];
    if (format.symmetric && rows != columns)
      fail(std::to_string(rows) + " x " + std::to_string(columns) + " can't be symmetric",
           "give as many rows as columns, or 'general' in line 1");
    if (shape == Shape::any) return;
    if (rows != columns)
      fail(std::to_string(rows) + " rows and " + std::to_string(columns) +
               " columns are no square matrix",
           "name a square one");
    if (rows == 0) fail("it has no rows", "name a larger matrix");
  }

  // Reads the entries of a symmetric file again, because both its triangles have some. An entry
  // that is given in both would count twice.
  void check_triangles() {
    std::map<std::pair<u64, u64>, u64> lines;  // of those below the diagonal, then of those above
    for (bool const below : {true, false}) {
      auto const begin = rest_;
      auto const at = number_;
      while (next_line()) {
        auto const row = number<u64>("row"), column = number<u64>("column");
        if (row == column || (row > column) != below) continue;
        if (below) lines.emplace(std::pair(row, column), number_);
        else if (auto const there = lines.find({column, row}); there != lines.end())
          fail("entry (" + std::to_string(row) + ", " + std::to_string(column) +
                   ") is the mirror of (" + std::to_string(column) + ", " + std::to_string(row) +
                   ") in line " + std::to_string(there->second),
               "give one of the two in a symmetric file, or 'general' in line 1");
      }
      rest_ = begin, number_ = at;
    }
  }

  bool take_line() {
    if (rest_.empty()) return false;
    auto const end = rest_.find('\n');
    whole_ = line_ = rest_.substr(0, end);
    if (whole_.ends_with('\r')) whole_.remove_suffix(1);
    rest_ = end == std::string_view::npos ? std::string_view{} : rest_.substr(end + 1);
    ++number_;
    return true;
  }
  // The next line that is neither empty nor a comment.
  bool next_line() {
    while (take_line()) {
      auto const first = line_.find_first_not_of(" \t\r");
      if (first != std::string_view::npos && line_[first] != '%') return true;
    }
    return false;
  }
  std::string_view word() {
    auto const first = std::min(line_.find_first_not_of(" \t\r"), line_.size());
    line_.remove_prefix(first);
    auto const size = std::min(line_.find_first_of(" \t\r"), line_.size());
    auto const found = line_.substr(0, size);
    line_.remove_prefix(size);
    return found;
  }
  std::string lower_word() {
    std::string text(word());
    std::ranges::transform(text, text.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    return text;
  }
  template <class Number>
  Number number(char const* what) {
    auto const text = word();
    Number value{};
    auto const* const begin = text.data() + (text.starts_with('+') ? 1 : 0);
    auto const* const end = text.data() + text.size();
    auto const [stop, error] = std::from_chars(begin, end, value);
    if (text.empty())
      fail(std::string("there is no ") + what + in_line(), expected_ + "; the file may be cut");
    if (error != std::errc{} || stop != end)
      fail("\"" + std::string(text.substr(0, 40)) + "\" is no " + what + in_line(), expected_);
    return value;
  }
  void end_of_line() {
    if (auto const more = word(); !more.empty())
      fail("\"" + std::string(more.substr(0, 40)) + "\" follows the last number" + in_line(),
           expected_);
  }

  std::string in_line() const { return " in \"" + std::string(whole_.substr(0, 60)) + "\""; }

  Format header() {
    std::string const form =
        "begin the file with \"%%MatrixMarket matrix coordinate real symmetric\"; real may be "
        "integer or pattern, and symmetric may be general or skew-symmetric";
    number_ = 1;
    if (rest_.empty()) fail("the file is empty", form);
    number_ = 0;
    take_line();
    if (lower_word() != "%%matrixmarket")
      fail("it does not begin with %%MatrixMarket" + printable(), form);
    if (auto const object = lower_word(); object != "matrix")
      fail("\"" + object + "\" is no matrix", form);
    if (auto const layout = lower_word(); layout != "coordinate")
      fail("\"" + layout + "\" is no format that is read here; coordinate is", form);
    auto const field = lower_word(), symmetry = lower_word();
    if (field != "real" && field != "integer" && field != "pattern")
      fail("\"" + field + "\" is no field that is read here", form);
    if (symmetry != "general" && symmetry != "symmetric" && symmetry != "skew-symmetric")
      fail("\"" + symmetry + "\" is no symmetry that is read here", form);
    if (field == "pattern" && symmetry == "skew-symmetric")
      fail("a pattern can't be skew-symmetric", form);
    return {field == "pattern", field == "integer", symmetry != "general",
            symmetry == "skew-symmetric"};
  }
  // The line, unless it is binary.
  std::string printable() const {
    bool const text = std::ranges::all_of(whole_, [](char c) { return c >= ' ' && c <= '~'; });
    return text ? ", but with \"" + std::string(whole_.substr(0, 60)) + "\"" : std::string();
  }

  u64 size_line() {
    expected_ = "give a line of rows, columns and entries, such as \"3 3 7\"";
    if (!next_line()) fail("there is no line with the sizes behind it", expected_);
    sizes_[0] = number<u64>("number of rows");
    sizes_[1] = number<u64>("number of columns");
    sizes_[2] = number<u64>("number of entries");
    end_of_line();
    u64 const most = std::numeric_limits<std::int32_t>::max();
    if (sizes_[0] > most || sizes_[1] > most)
      fail(std::to_string(sizes_[0]) + " x " + std::to_string(sizes_[1]) + " is too large",
           "choose a matrix of at most " + std::to_string(most) + " rows and columns");
    // Here a row takes 8 bytes, in vectors of programs some more.
    require_memory(48.0 * static_cast<double>(sizes_[0]),
                   name_ + ", line " + std::to_string(number_),
                   std::to_string(sizes_[0]) + " rows");
    return sizes_[0];
  }

  u32 index(char const* what, u64 limit) {
    u64 const value = number<u64>(what);
    if (value < 1 || value > limit)
      fail(std::string(what) + " " + std::to_string(value) + in_line() + " is not from 1 to " +
               std::to_string(limit),
           "numbers of rows and columns begin with 1: correct the entry, or the sizes above it");
    return static_cast<u32>(value - 1);
  }

  void add_entry(std::vector<Entry>& entries, Format const& format, u64 rows, u64 columns) {
    expected_ = format.pattern ? "give each entry a row and a column, such as \"2 1\""
                : format.integer
                    ? "give each entry a row, a column and an integer, such as \"2 1 -5\""
                    : "give each entry a row, a column and a value, such as \"2 1 -0.5\"";
    u32 const row = index("row", rows), column = index("column", columns);
    double value = 1;
    if (format.integer) value = static_cast<double>(number<std::int64_t>("integer"));
    else if (!format.pattern) value = number<double>("number");
    if (!std::isfinite(value))
      fail("the value is not finite" + in_line(), "give finite numbers: correct the entry");
    end_of_line();
    entries.push_back({row, column, value});
    if (!format.symmetric) return;
    if (row != column) (row > column ? lower_ : upper_) = true;
    if (row != column) entries.push_back({column, row, format.skew ? -value : value});
    else if (format.skew)
      fail("a skew-symmetric matrix has no entries on its diagonal" + in_line(),
           "leave the entry out, or write 'general' in line 1");
  }

  std::string_view rest_, line_, whole_;  // line_: what has not been read of whole_
  std::string const& name_;
  std::string expected_;  // of the kind of line
  u64 number_ = 0;
  bool lower_ = false, upper_ = false;  // where a symmetric file has entries
  u64 sizes_[3] = {};
};

}  // namespace

Csr parse_matrix_market(std::string_view text, std::string const& name, Shape shape) {
  return Parser(text, name).parse(shape);
}

Csr read_matrix_market(std::string const& file, Shape shape) {
  std::string text;
  try {
    std::ifstream in;
    in.exceptions(std::ios::failbit | std::ios::badbit);
    in.open(file, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  } catch (std::ios_base::failure const&) {  // also if it is a folder
    throw Error(Kind::bad_argument, file, "it can't be read", "name a Matrix Market file");
  }
  return parse_matrix_market(text, file, shape);
}

}  // namespace meshpost::apps::sparse
