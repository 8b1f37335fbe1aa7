#include "core/memory.hpp"

#include "core/tensor.hpp"
#include "tests/support/catch.hpp"
#include "tests/support/page_faults.hpp"

#include <cstdint>

using namespace moelab;

// Sanitizers bring an allocator of their own, which has no such setting.
#ifndef MOELAB_SANITIZED

TEST_CASE("memory that is freed is given out again without new pages", "[memory]") {
  keep_freed_memory();
  const auto use = [] {
    const Matrix large = Matrix::Constant(4096, 1024, 1);  // 16 MB
    return large(4095, 1023);
  };
  // The checks allocate too, and may take from the first block that was freed.
  for (int i = 0; i < 3; ++i) CHECK(use() == 1);
  const std::int64_t before = test::page_faults();
  for (int i = 0; i < 20; ++i) CHECK(use() == 1);
  // 20 mappings of 16 MB would be 80,000 pages.
  CHECK(test::page_faults() - before < 1000);
}

#endif
