#pragma once

#include <string>

namespace plait::test {

/// A tokenizer.json of `tokens` tokens, at most 97, for models whose vocabulary has no room for all bytes: <unk>, <s>,
/// </s>, the space, and printable ASCII from `!` on, in LLaMA's way.
inline std::string small_tokenizer(int tokens)
{
    std::string vocabulary = R"("<unk>": 0, "<s>": 1, "</s>": 2, "▁": 3)";
    for (int id = 4; id < tokens; ++id) {
        auto const c = static_cast<char>('!' + id - 4);
        vocabulary += ", \"";
        if (c == '"' || c == '\\') vocabulary += '\\';
        vocabulary += c;
        vocabulary += "\": " + std::to_string(id);
    }
    return R"({"version": "1.0", "added_tokens": [
        {"id": 0, "content": "<unk>", "special": true}, {"id": 1, "content": "<s>", "special": true},
        {"id": 2, "content": "</s>", "special": true}],
        "normalizer": {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": "▁"},
            {"type": "Replace", "pattern": {"String": " "}, "content": "▁"}]},
        "decoder": {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "▁"}, "content": " "}, {"type": "Fuse"},
            {"type": "Strip", "content": " ", "start": 1, "stop": 0}]},
        "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": true, "byte_fallback": false, "merges": [],
            "vocab": {)" +
           vocabulary + "}}}";
}

} // namespace plait::test
