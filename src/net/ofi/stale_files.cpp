#include "net/ofi/stale_files.hpp"

#include <fcntl.h>
#include <sys/mman.h>

#include "meshpost/base/held.hpp"

namespace meshpost::net::ofi {

std::string shared_memory_of(std::string const& native) {
  std::string const text = native.c_str();  // up to the zero byte; "fi_shm://" and the name
  auto const prefix = text.find("://");
  return "/" + (prefix == std::string::npos ? text : text.substr(prefix + 3));
}

Descriptor hold_shared_memory(std::string const& name) {
  Descriptor file(shm_open(name.c_str(), O_RDONLY, 0));
  hold(file);
  return file;
}

void remove_stale_files() noexcept { remove_unheld(shared_memory_folder); }

}  // namespace meshpost::net::ofi
