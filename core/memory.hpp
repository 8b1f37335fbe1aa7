// How the process treats memory that is freed.
#pragma once

namespace moelab {

// Freed memory stays with the process and is given out again. Training frees and allocates the same large
// matrices in every step; by default each of them would come from the system as new pages, which are cleared
// and mapped one by one. For programs, at their start; libraries do not call it. No effect where the C
// library has no such setting.
void keep_freed_memory();

}  // namespace moelab
