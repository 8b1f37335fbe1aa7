// What a process used, as the operating system counts it.
#pragma once

namespace moelab {

// Largest resident memory of this process so far, in bytes.
double peak_resident_bytes();

// Memory of the machine, or of the control group where that grants less, in bytes. Infinite where the system
// does not say.
double memory_of_machine();

// Memory that this process can still get without pushing anything out, in bytes: what the system has
// available, within the limit of its control group where there is one. Infinite where the system does not
// say.
double available_memory();

}  // namespace moelab
