#include <plait/kernels/host/gumbel.hpp>
#include <plait/kernels/host/sample.hpp>

#include <algorithm>
#include <array>
#include <functional>
#include <span>
#include <utility>

namespace plait::host {

namespace {

constexpr std::int64_t block = 64;
constexpr float not_a_number = std::numeric_limits<float>::quiet_NaN();
constexpr draw_range everything = {std::numeric_limits<float>::max(), 1, std::numeric_limits<float>::lowest(),
                                   std::numeric_limits<std::int32_t>::max()};

// Unsigned integers in the order of the logits; both zeros are one.
std::uint32_t key_of(float logit) noexcept
{
    auto bits = std::bit_cast<std::uint32_t>(logit + 0.0f);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

float logit_of(std::uint32_t key) noexcept
{
    return std::bit_cast<float>(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

/// One row on its way to a token. Every filter keeps a prefix of the ranking, so what is kept is one `draw_range`.
/// Works in the worker's scratch: block maxima, and raw logits of what penalties and biases change.
class row_sampler {
public:
    row_sampler(sample_kernels const& kernels, float* logits, std::int64_t vocabulary, std::span<std::byte> scratch)
        : kernels_(kernels)
        , logits_(logits)
        , vocabulary_(vocabulary)
        , blocks_((vocabulary + block - 1) / block)
        , maxima_(reinterpret_cast<float*>(scratch.data()))
        , sorted_maxima_(maxima_ + blocks_)
        , raw_(sorted_maxima_ + blocks_)
    {
    }

    /// Finds the maxima. False if there is nothing to draw from.
    bool scan()
    {
        if (!kernels_.block_maxima(logits_, vocabulary_, maxima_)) return false;
        max_ = *std::max_element(maxima_, maxima_ + blocks_);
        return max_ < math::infinity && max_ > -math::infinity;
    }

    /// The log-softmax of a logit, as long as the row is as it was scanned first.
    void prepare_logprobs()
    {
        raw_max_ = max_;
        log_sum_ = log(kernels_.exp_sum(logits_, vocabulary_, max_));
    }
    float logprob(float raw_logit) const noexcept { return raw_logit - raw_max_ - log_sum_; }

    void write_best(std::int64_t count, token_logprob* out) const;
    void adjust(sample_params const& params, bool remember);
    std::int32_t draw(sample_params const& params) const;
    float raw_logit(sample_params const& params, std::int32_t token) const;

private:
    template<class Visit>
    void visit(draw_range const& range, float highest, Visit visit) const;
    template<class Units>
    void keep(draw_range& range, std::int64_t count, float top_p, Units units) const;
    void keep_count(draw_range& range, std::int64_t count) const;
    void keep_mass(draw_range& range, float top_p, float inverse_temperature) const;
    void keep_weight(draw_range& range, float min_p, float inverse_temperature) const;
    std::int32_t argmax() const;

    sample_kernels const& kernels_;
    float* logits_;
    std::int64_t vocabulary_;
    std::int64_t blocks_;
    float* maxima_;
    float* sorted_maxima_;
    float* raw_;
    float max_ = 0;
    float raw_max_ = 0;
    float log_sum_ = 0;
};

// Calls `visit(first token, tokens, bits)` for each block with tokens in the range and not above `highest`, a bit for
// each.
template<class Visit>
void row_sampler::visit(draw_range const& range, float highest, Visit visit) const
{
    for (std::int64_t b = 0; b < blocks_; ++b) {
        if (!(maxima_[b] >= range.lowest)) continue;
        auto first = b * block;
        auto tokens = std::min(block, vocabulary_ - first);
        auto bits = kernels_.match(logits_ + first, tokens, range.lowest, highest);
        if (first + tokens - 1 > range.last_token)
            for (auto rest = bits; rest != 0; rest &= rest - 1) {
                auto i = std::countr_zero(rest);
                if (!range.keeps(logits_[first + i], static_cast<std::int32_t>(first + i)))
                    bits &= ~(std::uint64_t{1} << i);
            }
        if (bits != 0) visit(first, tokens, bits);
    }
}

// Shortens the range to the shortest prefix with enough units: `count` of them, or the fraction `top_p` of all in the
// range. `units(first, count, out)` gives those of a block. A radix selection, from the high bits of the logit down:
// sums of integers have no order, and nothing is sorted or stored.
template<class Units>
void row_sampler::keep(draw_range& range, std::int64_t count, float top_p, Units units) const
{
    std::int64_t wanted = count;
    std::uint32_t prefix = 0;
    std::int64_t block_units[block];
    auto narrowed = range;
    float highest = everything.max;
    for (auto [shift, bits] : {std::pair{21, 11}, std::pair{10, 11}, std::pair{0, 10}}) {
        std::int64_t buckets[2048] = {};
        auto const digits = (1u << bits) - 1;
        visit(narrowed, highest, [&, shift = shift](std::int64_t first, std::int64_t tokens, std::uint64_t found) {
            units(first, tokens, block_units);
            for (; found != 0; found &= found - 1) {
                auto i = std::countr_zero(found);
                buckets[key_of(logits_[first + i]) >> shift & digits] += block_units[i];
            }
        });
        if (shift == 21) {
            std::int64_t total = 0;
            for (auto bucket : buckets)
                total += bucket;
            if (top_p < 1)
                wanted = std::max<std::int64_t>(
                    1, static_cast<std::int64_t>(std::ceil(static_cast<double>(total) * static_cast<double>(top_p))));
            if (total <= wanted) return;
        }
        auto digit = digits;
        for (; buckets[digit] < wanted; --digit)
            wanted -= buckets[digit];
        prefix |= digit << shift;
        if (logit_of(prefix) > range.lowest) {
            narrowed.lowest = logit_of(prefix);
            narrowed.last_token = everything.last_token;
        }
        highest = logit_of(prefix | ((1u << shift) - 1));
    }
    // What is left are equal logits, lower ids first.
    range = narrowed;
    auto last_token = range.last_token;
    visit(range, highest, [&](std::int64_t first, std::int64_t tokens, std::uint64_t found) {
        if (wanted <= 0) return;
        units(first, tokens, block_units);
        for (; found != 0 && wanted > 0; found &= found - 1) {
            auto i = std::countr_zero(found);
            wanted -= block_units[i];
            last_token = static_cast<std::int32_t>(first + i);
        }
    });
    range.last_token = last_token;
}

// The k-th largest block maximum is no larger than the k-th largest logit, and few blocks reach it.
void row_sampler::keep_count(draw_range& range, std::int64_t count) const
{
    if (count < blocks_) {
        std::copy(maxima_, maxima_ + blocks_, sorted_maxima_);
        std::nth_element(sorted_maxima_, sorted_maxima_ + count - 1, sorted_maxima_ + blocks_, std::greater<>());
        if (sorted_maxima_[count - 1] > range.lowest) {
            range.lowest = sorted_maxima_[count - 1];
            range.last_token = everything.last_token;
        }
    }
    keep(range, count, 1,
         [](std::int64_t, std::int64_t tokens, std::int64_t* out) { std::fill(out, out + tokens, std::int64_t{1}); });
}

void row_sampler::keep_mass(draw_range& range, float top_p, float inverse_temperature) const
{
    keep(range, 0, top_p, [&](std::int64_t first, std::int64_t tokens, std::int64_t* out) {
        kernels_.weigh(logits_ + first, tokens, max_, inverse_temperature, out);
    });
}

// Weights fall with the logit, so the kept ones end at the smallest logit whose weight suffices.
void row_sampler::keep_weight(draw_range& range, float min_p, float inverse_temperature) const
{
    auto enough = [&](float logit) { return logit == max_ || exp((logit - max_) * inverse_temperature) >= min_p; };
    if (enough(range.lowest)) return;
    auto low = key_of(range.lowest); // not enough
    auto high = key_of(max_);        // enough
    while (high - low > 1) {
        auto middle = low + (high - low) / 2;
        (enough(logit_of(middle)) ? high : low) = middle;
    }
    range.lowest = logit_of(high);
    range.last_token = everything.last_token;
}

void row_sampler::write_best(std::int64_t count, token_logprob* out) const
{
    if (count <= 0) return;
    auto range = everything;
    keep_count(range, count);
    std::int64_t found = 0;
    visit(range, everything.max, [&](std::int64_t first, std::int64_t, std::uint64_t bits) {
        for (; bits != 0; bits &= bits - 1) {
            auto token = first + std::countr_zero(bits);
            out[found++] = {static_cast<std::int32_t>(token), logits_[token]};
        }
    });
    std::sort(out, out + found, [](token_logprob const& a, token_logprob const& b) {
        return a.logprob != b.logprob ? a.logprob > b.logprob : a.token < b.token;
    });
    for (std::int64_t i = 0; i < found; ++i)
        out[i].logprob = logprob(out[i].logprob);
}

void row_sampler::adjust(sample_params const& params, bool remember)
{
    float* raw = raw_;
    for (auto const& seen : std::span(params.seen, static_cast<std::size_t>(params.seen_count))) {
        bool inside = seen.token >= 0 && seen.token < vocabulary_;
        if (remember) *raw++ = inside ? logits_[seen.token] : 0;
        if (!inside) continue;
        float& logit = logits_[seen.token];
        if (params.repetition_penalty != 1 && (seen.count > 0 || seen.in_prompt))
            logit = logit > 0 ? logit / params.repetition_penalty : logit * params.repetition_penalty;
        if (seen.count > 0)
            logit = logit - params.frequency_penalty * static_cast<float>(seen.count) - params.presence_penalty;
    }
    for (auto const& entry : std::span(params.biases, static_cast<std::size_t>(params.bias_count))) {
        bool inside = entry.token >= 0 && entry.token < vocabulary_;
        if (remember) *raw++ = inside ? logits_[entry.token] : 0;
        if (inside) logits_[entry.token] += entry.bias;
    }
}

float row_sampler::raw_logit(sample_params const& params, std::int32_t token) const
{
    for (std::int32_t i = 0; i < params.seen_count; ++i)
        if (params.seen[i].token == token) return raw_[i];
    for (std::int32_t i = 0; i < params.bias_count; ++i)
        if (params.biases[i].token == token) return raw_[params.seen_count + i];
    return logits_[token];
}

// The lowest id among the largest.
std::int32_t row_sampler::argmax() const
{
    auto b = std::find(maxima_, maxima_ + blocks_, max_) - maxima_;
    return static_cast<std::int32_t>(std::find(logits_ + b * block, logits_ + vocabulary_, max_) - logits_);
}

std::int32_t row_sampler::draw(sample_params const& params) const
{
    if (!(params.temperature >= 1e-6f)) return argmax();
    float const inverse_temperature = 1.0f / params.temperature;
    float const filter_temperature = params.order == filter_order::temperature_first ? inverse_temperature : 1.0f;
    auto range = everything;
    if (params.top_k > 0 && params.top_k < vocabulary_) keep_count(range, params.top_k);
    if (params.top_p < 1) keep_mass(range, std::max(params.top_p, 0.0f), filter_temperature);
    if (params.min_p > 0) keep_weight(range, params.min_p, filter_temperature);
    range.max = max_;
    range.inverse_temperature = inverse_temperature;
    return kernels_.draw(logits_, vocabulary_, maxima_, range, params);
}

void sample_row(sample_kernels const& kernels, sample_args const& args, std::int64_t row, std::span<std::byte> scratch)
{
    auto const& params = args.params[row];
    row_sampler sampler(kernels, args.logits + row * args.stride, args.vocabulary, scratch);
    auto* top = args.top ? args.top + row * args.top_stride : nullptr;
    auto room = top ? args.top_stride : 0;
    std::fill(top, top + room, token_logprob{-1, not_a_number});
    args.tokens[row] = -1;
    if (args.logprobs) args.logprobs[row] = not_a_number;
    if (!sampler.scan()) return;

    bool const logprobs = params.top_logprobs >= 0;
    if (logprobs) {
        sampler.prepare_logprobs();
        sampler.write_best(std::min<std::int64_t>({params.top_logprobs, max_top_logprobs, room, args.vocabulary}), top);
    }
    std::int64_t const changes = std::int64_t{params.seen_count} + params.bias_count;
    bool const remember = logprobs && changes <= (1 << 17);
    if (changes > 0) {
        sampler.adjust(params, remember);
        if (!sampler.scan()) return;
    }
    auto token = sampler.draw(params);
    args.tokens[row] = token;
    if (args.logprobs && logprobs && token >= 0 && (changes == 0 || remember))
        args.logprobs[row] =
            sampler.logprob(changes == 0 ? args.logits[row * args.stride + token] : sampler.raw_logit(params, token));
}

} // namespace

void sample(sample_kernels const& kernels, sample_args const& args, share part)
{
    auto [first, last] = part.range(args.rows);
    for (auto row = first; row < last; ++row)
        sample_row(kernels, args, row, part.scratch);
}

void score(sample_kernels const& kernels, score_args const& args, share part)
{
    auto [first, last] = part.range(args.rows);
    for (auto row = first; row < last; ++row) {
        auto const* logits = args.logits + row * args.vocabulary;
        float max = -math::infinity;
        bool numbers = true;
        // As many blocks at a time as there is room for their maxima here.
        std::array<float, 64> maxima{};
        constexpr auto most = block * static_cast<std::int64_t>(maxima.size());
        for (std::int64_t at = 0; at < args.vocabulary && numbers; at += most) {
            auto const count = std::min(most, args.vocabulary - at);
            numbers = kernels.block_maxima(logits + at, count, maxima.data());
            max = std::max(max, *std::max_element(maxima.begin(), maxima.begin() + (count + block - 1) / block));
        }
        numbers = numbers && max < math::infinity && max > -math::infinity;
        args.logprobs[row] = numbers
                                 ? logits[args.tokens[row]] - max - log(kernels.exp_sum(logits, args.vocabulary, max))
                                 : not_a_number;
    }
}

} // namespace plait::host
