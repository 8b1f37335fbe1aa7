#include "experiments/config/kind_sources.hpp"

namespace moelab {

namespace {

constexpr KindSource kSources[] = {
    {"loss", "load_balance", "",
     "Switch Transformers, Fedus et al. 2021, equations 4 to 6, over k choices; sequence: DeepSeek-V3, "
     "equation 17; global: Qiu et al. 2025"},
    {"loss", "z", "", "ST-MoE, Zoph et al. 2022, equation 5"},
    {"loss", "importance_cv2", "", "Shazeer et al. 2017, equation 7"},
    {"loss", "load_cv2", "", "Shazeer et al. 2017, appendix A, equations 8 to 11"},
    {"loss", "entropy", "", "Mod-Squad, Chen et al. 2022 (marginal entropy)"},
    {"loss", "expert_diversity", "", "after OMoE, Liu et al. 2023, which makes experts orthogonal"},

    {"activation", "relu", "max(x, 0)", "Vaswani et al. 2017, equation 2"},
    {"activation", "gelu", "x Phi(x), exact", "Hendrycks and Gimpel 2016"},
    {"activation", "gelu_tanh", "GELU by tanh", "Hendrycks and Gimpel 2016, section 2"},
    {"activation", "silu", "x sigmoid(x)", "Elfwing et al. 2017; Ramachandran et al. 2017"},
    {"activation", "relu_squared", "max(x, 0)^2", "Primer, So et al. 2021"},
    {"activation", "swiglu", "silu(gate) up", "Shazeer 2020, equation 6"},
    {"activation", "geglu", "gelu(gate) up", "Shazeer 2020, equation 6"},
    {"activation", "geglu_tanh", "gelu_tanh(gate) up", "Shazeer 2020; Gemma"},
    {"activation", "reglu", "relu(gate) up", "Shazeer 2020, equation 6"},
    {"activation", "swiglu_clamped", "g sigmoid(1.702 g) (u + 1) of clamped gate and factor",
     "gpt-oss, 2025"},

    {"score", "softmax", "softmax(z) over all experts", "Shazeer et al. 2017"},
    {"score", "sigmoid", "sigmoid(z)", "DeepSeek-V3, equation 15; BASE layers"},
    {"score", "sqrt_softplus", "sqrt(softplus(z)), which has no upper bound", "a variant of sigmoid scores"},

    {"projection", "linear", "x W^T + b", "Shazeer et al. 2017"},
    {"projection", "cosine", "tau normalise(P x) . normalise(e)", "X-MoE, Chi et al. 2022, equation 4"},
    {"projection", "mlp", "W2 tanh(W1 x + b1) + b2", "a two-layer router"},

    {"drop", "position", "All first choices before any second, in token order",
     "GShard, Lepikhin et al. 2020, algorithm 1"},
    {"drop", "probability", "Each expert keeps its largest weights", "Megatron Core (drop policy probs)"},
    {"drop", "batch_priority", "Tokens in falling order of their best score",
     "V-MoE, Riquelme et al. 2021, section 4"},
    {"drop", "random", "A seeded random order", "control"},

    {"ffn", "dense", "One FFN for every token", "Vaswani et al. 2017, section 3.3"},
    {"ffn", "moe", "Experts that a router chooses from", "Shazeer et al. 2017"},

    {"model", "decoder", "Causal Transformer", "GPT, Radford et al. 2018"},
    {"model", "encoder", "Bidirectional Transformer",
     "BERT, Devlin et al. 2019; ViT, Dosovitskiy et al. 2021"},
    {"model", "ffn", "FFNs alone, on features", "regression with known clusters"},

    {"data", "text", "Text by domain", "files, folders and globs"},
    {"data", "synthetic", "Regression with known clusters", "a mixture of linear maps, drawn from a seed"},

    {"data", "images", "Images with a class each, cut into patches",
     "MNIST, LeCun et al. 1998; Fashion-MNIST, "
     "Xiao et al. 2017"},

    {"tokenizer", "byte", "One of the 256 bytes", "ByT5, Xue et al. 2021"},
    {"tokenizer", "bpe", "Byte pairs, learnt from the training text",
     "Sennrich et al. 2016; GPT-2, Radford et al. 2019"},

    {"optimizer", "adamw", "Adam with decoupled weight decay", "Loshchilov and Hutter 2019, algorithm 2"},
    {"optimizer", "sgd", "Gradient descent, with momentum", "Sutskever et al. 2013"},

    {"schedule", "cosine", "Half a cosine to min_lr_ratio", "Loshchilov and Hutter 2017"},
    {"schedule", "linear", "A straight line to min_lr_ratio", "Devlin et al. 2019"},
    {"schedule", "constant", "The peak rate to the end", "no decay"},
    {"schedule", "wsd", "Constant, then linear over the last decay_tokens",
     "MiniCPM, Hu et al. 2024, section 4"},
};

}  // namespace

std::span<const KindSource> kind_sources() { return kSources; }

}  // namespace moelab
