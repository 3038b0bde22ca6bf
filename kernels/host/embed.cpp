#include <plait/kernels/host/embed.hpp>
#include <plait/kernels/host/pack.hpp>

#include <cstring>

namespace plait::host {

void embed(embed_args const& args, share part)
{
    auto const cols = args.weights.cols;
    auto [first, last] = part.range(args.rows);
    for (auto i = first; i < last; ++i) {
        float* out = args.out + i * cols;
        auto const token = std::int64_t{args.tokens[i]} - args.first_token;
        if (token < 0 || token >= args.weights.rows) {
            std::memset(out, 0, static_cast<std::size_t>(cols) * sizeof(float));
            continue;
        }
        unpack_row(args.weights, token, out);
        if (args.scale != 1)
            for (std::int64_t c = 0; c < cols; ++c)
                out[c] *= args.scale;
    }
}

} // namespace plait::host
