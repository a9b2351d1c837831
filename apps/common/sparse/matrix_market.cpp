#include "matrix_market.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iterator>
#include <limits>
#include <meshpost/base/error.hpp>

namespace meshpost::apps::sparse {
namespace {

struct Format {
  bool pattern, integer, symmetric, skew;
};

class Parser {
 public:
  Parser(std::string_view text, std::string const& name) : rest_(text), name_(name) {}

  Csr parse() {
    auto const format = header();
    u64 const rows = size_line(), columns = sizes_[1], stated = sizes_[2];
    std::vector<Entry> entries;
    entries.reserve(std::min<u64>(stated, rest_.size() / 4 + 1));  // a line has four bytes or more
    u64 found = 0;
    for (; next_line(); ++found) {
      if (found == stated)
        fail("there are more entries than the " + std::to_string(stated) + " of the size line");
      add_entry(entries, format, rows, columns);
    }
    if (found < stated)
      fail("the file ends after " + std::to_string(found) + " of " + std::to_string(stated) +
           " entries");
    return from_entries(static_cast<u32>(rows), static_cast<u32>(columns), std::move(entries));
  }

 private:
  [[noreturn]] void fail(std::string const& what) const {
    throw Error(Kind::bad_argument, name_ + ", line " + std::to_string(number_), what,
                "name a Matrix Market file of coordinates");
  }

  bool take_line() {
    if (rest_.empty()) return false;
    auto const end = rest_.find('\n');
    line_ = rest_.substr(0, end);
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
    if (text.empty()) fail(std::string("there is no ") + what);
    if (error != std::errc{} || stop != end)
      fail("\"" + std::string(text.substr(0, 40)) + "\" is no " + what);
    return value;
  }
  void end_of_line() {
    if (auto const more = word(); !more.empty())
      fail("\"" + std::string(more.substr(0, 40)) + "\" follows the last number of the line");
  }

  Format header() {
    number_ = 0;
    if (!take_line() || lower_word() != "%%matrixmarket") {
      number_ = 1;
      fail("it does not begin with %%MatrixMarket");
    }
    if (auto const object = lower_word(); object != "matrix")
      fail("\"" + object + "\" is no matrix");
    if (auto const layout = lower_word(); layout != "coordinate")
      fail("\"" + layout + "\" is no format that is read here; coordinate is");
    auto const field = lower_word(), symmetry = lower_word();
    if (field != "real" && field != "integer" && field != "pattern")
      fail("\"" + field + "\" is no field that is read here; real, integer and pattern are");
    if (symmetry != "general" && symmetry != "symmetric" && symmetry != "skew-symmetric")
      fail("\"" + symmetry +
           "\" is no symmetry that is read here; general, symmetric and skew-symmetric are");
    if (field == "pattern" && symmetry == "skew-symmetric")
      fail("a pattern can't be skew-symmetric");
    return {field == "pattern", field == "integer", symmetry != "general",
            symmetry == "skew-symmetric"};
  }

  u64 size_line() {
    if (!next_line()) fail("there is no line with the sizes");
    sizes_[0] = number<u64>("number of rows");
    sizes_[1] = number<u64>("number of columns");
    sizes_[2] = number<u64>("number of entries");
    end_of_line();
    u64 const most = std::numeric_limits<std::int32_t>::max();
    if (sizes_[0] > most || sizes_[1] > most)
      fail(std::to_string(sizes_[0]) + " x " + std::to_string(sizes_[1]) +
           " is too large; at most " + std::to_string(most) + " rows and columns");
    // Here a row takes 8 bytes, in vectors of programs some more.
    require_memory(48.0 * static_cast<double>(sizes_[0]),
                   name_ + ", line " + std::to_string(number_),
                   std::to_string(sizes_[0]) + " rows");
    return sizes_[0];
  }

  u32 index(char const* what, u64 limit) {
    u64 const value = number<u64>(what);
    if (value < 1 || value > limit)
      fail(std::string(what) + " " + std::to_string(value) + " is not from 1 to " +
           std::to_string(limit));
    return static_cast<u32>(value - 1);
  }

  void add_entry(std::vector<Entry>& entries, Format const& format, u64 rows, u64 columns) {
    u32 const row = index("row", rows), column = index("column", columns);
    double value = 1;
    if (format.integer) value = static_cast<double>(number<std::int64_t>("integer"));
    else if (!format.pattern) value = number<double>("number");
    if (!std::isfinite(value)) fail("the value is not finite");
    end_of_line();
    entries.push_back({row, column, value});
    if (!format.symmetric) return;
    if (rows != columns)
      fail(std::to_string(rows) + " x " + std::to_string(columns) + " can't be symmetric");
    if (row != column) entries.push_back({column, row, format.skew ? -value : value});
    else if (format.skew) fail("a skew-symmetric matrix has no entries on its diagonal");
  }

  std::string_view rest_, line_;
  std::string const& name_;
  u64 number_ = 0;
  u64 sizes_[3] = {};
};

}  // namespace

Csr parse_matrix_market(std::string_view text, std::string const& name) {
  return Parser(text, name).parse();
}

Csr read_matrix_market(std::string const& file) {
  std::string text;
  try {
    std::ifstream in;
    in.exceptions(std::ios::failbit | std::ios::badbit);
    in.open(file, std::ios::binary);
    text.assign(std::istreambuf_iterator<char>(in), {});
  } catch (std::ios_base::failure const&) {  // also if it is a folder
    throw Error(Kind::bad_argument, file, "it can't be read", "name a Matrix Market file");
  }
  return parse_matrix_market(text, file);
}

}  // namespace meshpost::apps::sparse
