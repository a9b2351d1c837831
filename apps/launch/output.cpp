#include "output.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

namespace meshpost::launch {
namespace {

bool same_place(int a, int b) {
  struct stat one{}, other{};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace

Output::Output(std::vector<std::string> const& labels, std::vector<Fd> logs)
    : errors_(same_place(1, 2) ? &out_ : &err_) {
  for (std::size_t k = 0; k < labels.size(); ++k)
    printed_.push_back(
        {{Lines(labels[k]), Lines(labels[k])}, logs.empty() ? Fd() : std::move(logs[k])});
}

void Output::add(u32 process, int stream, std::string_view bytes) {
  printed_[process].lines[static_cast<std::size_t>(stream - 1)].add(bytes, sink(stream).queue());
  write_log(process, bytes);
}

void Output::end(u32 process, int stream) {
  printed_[process].lines[static_cast<std::size_t>(stream - 1)].end(sink(stream).queue());
}

void Output::say(std::string const& line) { pass_on("meshpost-run: " + line); }

void Output::pass_on(std::string const& line) { errors_->queue() += line + "\n"; }

void Output::watch(Poller& poller) {
  for (auto* const sink : {&out_, &err_})
    if (sink->pending()) poller.watch(sink->fd(), POLLOUT, [sink] { sink->write_some(); });
}

void Output::write_log(u32 process, std::string_view bytes) {
  auto& log = printed_[process].log;
  while (log && !bytes.empty()) {
    auto const done = ::write(log.get(), bytes.data(), bytes.size());
    if (done >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(done));
    } else if (errno != EINTR) {
      say(fmt::format("the log of process {} ends here: {}", process, std::strerror(errno)));
      log.close();
    }
  }
}

void Output::discard() {
  out_.discard();
  err_.discard();
}

std::vector<std::string> labels(u32 processes, std::vector<std::string> const& hosts) {
  auto const digits = std::to_string(processes - 1).size();
  std::size_t longest = 0;
  for (auto const& host : hosts) longest = std::max(longest, host.size());
  std::vector<std::string> all;
  for (u32 k = 0; k < processes; ++k)
    all.push_back(hosts.empty() ? fmt::format("[{:>{}}] ", k, digits)
                                : fmt::format("[{:>{}} {:<{}}] ", k, digits, hosts[k], longest));
  return all;
}

}  // namespace meshpost::launch
