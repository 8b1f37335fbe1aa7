// TensorBoard's event files: TFRecord framing (length, masked CRC-32C, data, masked CRC-32C) around Event
// messages in protocol-buffer wire format, of which two kinds are written: the file version and scalars.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace moelab::tensorboard {

std::string file_version_record(double wall_time);
std::string scalar_record(double wall_time, std::int64_t step, std::string_view tag, float value);

// Castagnoli's polynomial, as in iSCSI (RFC 3720).
std::uint32_t crc32c(std::string_view bytes);

}  // namespace moelab::tensorboard
