#include <plait/kernels/host/embed.hpp>
#include <plait/kernels/host/pack.hpp>

#include <cstring>

namespace plait::host {

namespace {

/// The positions of rows that are asked for in ascending order.
class row_positions {
public:
    explicit row_positions(embed_args const& args) noexcept
        : args_(args)
    {
    }

    std::int64_t operator()(std::int64_t row) noexcept
    {
        if (args_.position_ids) return args_.position_ids[row];
        auto const& chunks = args_.chunks;
        auto inside = [&] {
            auto const offset = row - chunks[chunk_].first_row;
            return offset >= 0 && offset < chunks[chunk_].rows;
        };
        while (!inside())
            chunk_ = (chunk_ + 1) % chunks.size();
        return chunks[chunk_].first_position + row - chunks[chunk_].first_row;
    }

private:
    embed_args const& args_;
    std::size_t chunk_ = 0;
};

} // namespace

void embed(embed_args const& args, share part)
{
    auto const cols = args.weights.cols;
    row_positions position_of(args);
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
        if (args.positions.panels) {
            auto* position = reinterpret_cast<float*>(part.scratch.data());
            unpack_row(args.positions, args.first_position + position_of(i), position);
            for (std::int64_t c = 0; c < cols; ++c)
                out[c] += position[c];
        }
    }
}

} // namespace plait::host
