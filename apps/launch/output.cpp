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

Output::Output(u32 processes, bool label)
    : errors_(same_place(1, 2) ? &out_ : &err_),
      width_(label ? static_cast<int>(std::to_string(processes - 1).size()) : 0) {}

void Output::add(u32 process, Child& child, Fd log) {
  logs_.push_back(std::make_unique<Fd>(std::move(log)));
  auto const label = width_ > 0 ? fmt::format("[{:>{}}] ", process, width_) : "";
  auto const forward = [&](Fd& fd, Sink& sink) {
    streams_.push_back(std::make_unique<Stream>(
        Stream{process, std::move(fd), Lines(label), &sink, logs_.back().get()}));
  };
  forward(child.output, out_);
  forward(child.errors, *errors_);
}

void Output::say(std::string const& line) { errors_->queue() += "meshpost-run: " + line + "\n"; }

void Output::watch(Poller& poller) {
  for (auto const& stream : streams_)
    if (stream->fd && !stream->sink->full())
      poller.watch(stream->fd.get(), POLLIN, [this, one = stream.get()] { read_some(*one); });
  for (auto* const sink : {&out_, &err_})
    if (sink->pending()) poller.watch(sink->fd(), POLLOUT, [sink] { sink->write_some(); });
}

// Returns whether there may be more at once.
bool Output::read_some(Stream& stream) {
  std::array<char, 65536> bytes;
  auto const size = ::read(stream.fd.get(), bytes.data(), bytes.size());
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return false;
  if (size <= 0) {
    stream.lines.end(stream.sink->queue());
    stream.fd.close();
    return false;
  }
  auto const count = static_cast<std::size_t>(size);
  stream.lines.add({bytes.data(), count}, stream.sink->queue());
  write_log(stream, bytes.data(), count);
  return true;
}

void Output::write_log(Stream& stream, char const* bytes, std::size_t size) {
  while (*stream.log && size > 0) {
    auto const done = ::write(stream.log->get(), bytes, size);
    if (done >= 0) {
      bytes += done;
      size -= static_cast<std::size_t>(done);
    } else if (errno != EINTR) {
      say(fmt::format("the log of process {} ends here: {}", stream.process, std::strerror(errno)));
      stream.log->close();
    }
  }
}

void Output::drain(Stream& stream) {
  // Pipes hold 64 KiB; whoever writes faster than this reads must not hold it up for ever.
  for (int i = 0; i < 64 && stream.fd && read_some(stream); ++i) continue;
}

void Output::drain(u32 process) {
  for (auto const& stream : streams_)
    if (stream->process == process) drain(*stream);
}

void Output::close() {
  for (auto const& stream : streams_) {
    if (!stream->fd) continue;
    drain(*stream);
    stream->lines.end(stream->sink->queue());
    stream->fd.close();
  }
}

bool Output::open() const {
  return std::any_of(streams_.begin(), streams_.end(),
                     [](auto const& stream) { return static_cast<bool>(stream->fd); });
}

void Output::discard() {
  out_.discard();
  err_.discard();
}

}  // namespace meshpost::launch
