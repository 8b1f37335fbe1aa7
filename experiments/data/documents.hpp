// The documents of a domain, one after another.
#pragma once

#include "experiments/data/data_config.hpp"

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace moelab {

// A domain of a resolved config and the files that it stands for, in their order.
struct DomainFiles {
  TextDomain config;
  std::vector<std::string> files;
};

// Lists the files. Error for a path that leads to none, which names its package.
DomainFiles list_files(const TextDomain& domain);

// Calls body with what is trained on and what is held out of each document. One file at a time is looked at,
// so a domain may be larger than memory. Error for a file that cannot be read or holds a zero byte.
void for_each_document(const DomainFiles& domain, double eval_fraction,
                       const std::function<void(std::string_view train, std::string_view eval)>& body);

// 64 hexadecimal digits that name what for_each_document gives: a hash of the files' contents and of how they
// are cut. Where the files lie and what they are called plays no part.
std::string hash_of_documents(const DomainFiles& domain, double eval_fraction);

}  // namespace moelab
