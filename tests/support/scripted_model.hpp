#pragma once

#include <plait/tests/support/gguf_writer.hpp>

#include <cstddef>
#include <string>
#include <vector>

namespace plait::test {

/// What a scripted model writes from one position on: each piece is one token, and `<|im_end|>` follows unless the last
/// piece ends an answer by itself.
struct scripted_answer {
    std::size_t at; ///< of its first token, the prompt counted; 1 at least
    std::vector<std::string> pieces;
};

struct scripted_model_options {
    std::vector<scripted_answer> answers; ///< by position, apart
    std::vector<std::string> control;     ///< control tokens beside `<|endoftext|>`, `<|im_start|>` and `<|im_end|>`
    std::string chat_template;            ///< empty: none
};

/// A model that writes what it is told to, greedily, whatever it is asked: the next token follows from the position
/// alone. Where no answer has its place it writes `<|im_start|>`, a control token without text, so a prompt that ends
/// before an answer's place leads to that answer. Architecture `gpt2`, bytes as tokens, a context of 1024.
gguf_writer scripted_model(scripted_model_options const& options);

} // namespace plait::test
