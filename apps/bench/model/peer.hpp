#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace plait::bench {

/// Another engine to compare with: a folder with the programs `llama-bench` and `llama-batched-bench`, as llama.cpp and
/// its relatives build them. They run by turns with plait's own measurements, one repetition at a time, so that
/// whatever else the machine does meets all of them alike.
struct peer {
    std::string name;
    std::filesystem::path programs;
};

/// "name=folder"; throws error(errc::invalid_argument).
peer parse_peer(std::string_view text);

/// Tokens per second, as decode_rate and prefill_rate give plait's. Throws error(errc::io), naming the program, when it
/// fails or prints no figure.
double peer_prefill_rate(peer const& who, std::filesystem::path const& model, unsigned threads, std::int64_t prompt);
double peer_decode_rate(peer const& who, std::filesystem::path const& model, unsigned threads, std::int64_t sequences,
                        std::int64_t generate);

} // namespace plait::bench
