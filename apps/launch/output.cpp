#include "output.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>

namespace meshpost::launch {
namespace {

constexpr std::size_t piece =
    4096;  // PIPE_BUF: bytes that a pipe takes at once after poll() reported it writable

bool takes_more(int fd) {
  pollfd one{fd, POLLOUT, 0};
  return ::poll(&one, 1, 0) == 1;
}

bool same_place(int a, int b) {
  struct stat one{}, other{};
  return ::fstat(a, &one) == 0 && ::fstat(b, &other) == 0 && one.st_dev == other.st_dev &&
         one.st_ino == other.st_ino;
}

}  // namespace

void Sink::write_some() {
  while (failure_ == 0 && pending() && takes_more(fd_)) {
    auto const size = std::min(piece, queue_.size() - written_);
    auto const done = ::write(fd_, queue_.data() + written_, size);
    if (done >= 0) written_ += static_cast<std::size_t>(done);
    else if (errno == EAGAIN) return;
    else if (errno != EINTR) failure_ = errno;
  }
  if (failure_ != 0 || !pending()) {
    discard();
  } else if (written_ > (std::size_t{1} << 20)) {
    queue_.erase(0, written_);
    written_ = 0;
  }
}

void Sink::discard() {
  queue_.clear();
  written_ = 0;
}

Output::Output(u32 processes, bool label, std::vector<Fd> logs)
    : errors_(same_place(1, 2) ? &out_ : &err_) {
  auto const digits = std::to_string(processes - 1).size();
  for (u32 k = 0; k < processes; ++k) {
    Lines const lines(label ? fmt::format("[{:>{}}] ", k, digits) : "");
    printed_.push_back({{lines, lines}, logs.empty() ? Fd() : std::move(logs[k])});
  }
}

void Output::add(u32 process, int stream, std::string_view bytes) {
  printed_[process].lines[static_cast<std::size_t>(stream - 1)].add(bytes, sink(stream).queue());
  write_log(process, bytes);
}

void Output::end(u32 process, int stream) {
  printed_[process].lines[static_cast<std::size_t>(stream - 1)].end(sink(stream).queue());
}

void Output::say(std::string const& line) { errors_->queue() += "meshpost-run: " + line + "\n"; }

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

std::vector<Fd> open_logs(std::string const& folder, u32 processes) {
  if (folder.empty()) return {};
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    throw Error(Kind::bad_argument, fmt::format("make the folder {} of --logs", folder),
                error.message(), "name another folder");
  std::vector<Fd> logs;
  for (u32 k = 0; k < processes; ++k) {
    auto const path = fmt::format("{}/process-{}.log", folder, k);
    logs.emplace_back(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
    if (!logs.back())
      throw Error(Kind::bad_argument, fmt::format("write {}", path), std::strerror(errno),
                  "name another folder with --logs");
  }
  return logs;
}

}  // namespace meshpost::launch
