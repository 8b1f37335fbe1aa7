#include "moe/experts/ffn_options.hpp"

#include "core/ops/activation.hpp"
#include "moe/experts/ffn.hpp"

namespace moelab::moe {

void FfnExpertOptions::fields(FieldVisitor& v) {
  v("activation", activation,
    {.help = "Activation; the gated ones have three matrices",
     .choices = ops::activation_names(),
     .required = true});
  v("d_ff", d_ff, {.help = "Width inside the FFN", .min = 1, .max = 1e6, .required = true});
  v("bias", bias, {.help = "Bias on every linear map"});
  v("dropout", dropout,
    {.help = "Probability of dropping, in training only", .min = 0, .max = 1, .max_exclusive = true});
  v("dropout_position", dropout_position,
    {.help = "After the activation (original Transformer) or on the output (GPT)",
     .choices = {"activation", "output"}});
}

std::unique_ptr<Expert> FfnExpertOptions::make(const ExpertShape& shape) const {
  return std::make_unique<FfnExpert>(*this, shape);
}

bool FfnExpertOptions::divide(Index factor) {
  if (d_ff % factor != 0) return false;
  d_ff /= factor;
  return true;
}

}  // namespace moelab::moe
