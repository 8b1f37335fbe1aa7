// What the sanitizers are told, in builds with MOELAB_SANITIZE only. Every program links this file.

extern "C" {

// TBB frees what it keeps of an observer when its last thread leaves the arena, which at exit may be never:
// 40 bytes for each number of threads that was asked for (libtbb 2021.8, r1::observe). fontconfig keeps the
// configuration that it has read; cairo, which asks for it, has no call that gives it back.
const char* __lsan_default_suppressions() { return "leak:tbb::detail::r1::observe\nleak:libfontconfig\n"; }

// A list of what was passed over would stand in what commands print.
const char* __lsan_default_options() { return "print_suppressions=0"; }

// An error that is only printed would let a test pass.
const char* __ubsan_default_options() { return "halt_on_error=1:print_stacktrace=1"; }

// oneDNN is not built with the thread sanitizer, which then does not see the locks of its cache of programs:
// it takes a program that one thread made and another uses for a race (libdnnl 2.6 and 3.2). What our threads
// do to each other outside of the library is still found.
const char* __tsan_default_suppressions() { return "race:libdnnl.so\n"; }

}  // extern "C"
