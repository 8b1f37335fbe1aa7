// Catch2 v2 (Debian 12) and v3 (newer distributions) behind one include, matchers included.
#pragma once

#if __has_include(<catch2/catch.hpp>)
#include <catch2/catch.hpp>
using Catch::Matchers::Contains;
#else
#include <catch2/catch_all.hpp>
inline auto Contains(const std::string& text) { return Catch::Matchers::ContainsSubstring(text); }
#endif
using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;
