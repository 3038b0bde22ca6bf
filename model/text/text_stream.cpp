#include <plait/model/text/text_stream.hpp>

#include <plait/model/text/tokenizer.hpp>

#include <algorithm>
#include <utility>

namespace plait {

text_stream::text_stream(tokenizer const& source)
    : text_stream(source, options{})
{
}

text_stream::text_stream(tokenizer const& source, options settings)
    : source_(source)
    , skip_special_(settings.skip_special)
    , shown_special_(std::move(settings.shown))
    , matcher_(settings.stops)
{
}

text_stream::update text_stream::push(std::int32_t id)
{
    auto bytes = source_.piece(id);
    if (stopped()) return {};
    if (skip_special_ && source_.is_special(id) && std::ranges::find(shown_special_, id) == shown_special_.end())
        bytes = {};

    std::string decoded;
    std::size_t const decided = decoder_.push(bytes, decoded);
    if (decided != 0) {
        // The character that the last tokens share has ended, `decided` bytes into this text.
        for (; open_ != 0; --open_)
            ends_[ends_.size() - open_] = decoded_ + decided;
    }
    if (decoder_.holds()) ++open_;
    ends_.push_back(decoded_ + decoded.size());
    return take(decoded);
}

text_stream::update text_stream::flush()
{
    if (stopped()) return {};
    std::string decoded;
    decoder_.finish(decoded);
    for (; open_ != 0; --open_)
        ends_[ends_.size() - open_] = decoded_ + decoded.size();
    auto result = take(decoded);
    if (stopped()) return result;
    matcher_.finish(result.text);
    result.tokens += ends_.size();
    ends_.clear();
    shown_ = counted_ = decoded_;
    return result;
}

text_stream::update text_stream::take(std::string const& decoded)
{
    update result;
    matcher_.push(decoded, result.text);
    decoded_ += decoded.size();
    shown_ += result.text.size();
    while (ends_.size() > open_ && ends_.front() <= shown_) {
        counted_ = ends_.front();
        ends_.pop_front();
        ++result.tokens;
    }
    if (stopped()) {
        if (!ends_.empty() && counted_ < shown_) ++result.tokens; // the stop string begins inside this token
        ends_.clear();
        open_ = 0;
    }
    return result;
}

} // namespace plait
