// What tells a file that is damaged from one that cannot be read now.
#pragma once

#include "core/error.hpp"

#include <utility>

namespace moelab {

// A file was read, and what it holds is not what it should be: it is cut, its checksum is wrong, or it is
// another kind of file. Only then may something else serve in its place. A file that cannot be read now (a
// lock, a permission, a disk) is an Error of another type: it may be whole.
class DamagedFile : public Error {
 public:
  using Error::Error;
};

// Checks what a file holds: throws DamagedFile with the formatted message when the condition does not hold.
template <class... Args>
void require_whole(bool condition, fmt::format_string<Args...> format, Args&&... args) {
  if (!condition) throw DamagedFile(fmt::format(format, std::forward<Args>(args)...));
}

}  // namespace moelab
