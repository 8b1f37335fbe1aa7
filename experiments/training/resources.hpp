// What a process used, as the operating system counts it.
#pragma once

namespace moelab {

// Largest resident memory of this process so far, in bytes.
double peak_resident_bytes();

}  // namespace moelab
