#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace plait {

/// Which replica of an engine takes the next request: the one with the fewest choices that are not over. A request
/// counts from the moment at which it is given its replica, before that one has heard of it, so that requests which
/// come at once are spread as those that come one by one. Any thread may use it.
class load_balance {
public:
    explicit load_balance(std::size_t replicas)
        : replicas_(replicas)
    {
    }

    /// Choices of a request that count; each is given back once, the rest by the destructor.
    class place {
    public:
        place() = default;
        place(place&& other) noexcept
            : of_(std::move(other.of_))
            , replica_(other.replica_)
            , choices_(std::exchange(other.choices_, 0))
        {
        }
        place& operator=(place&& other) noexcept
        {
            std::swap(of_, other.of_);
            std::swap(replica_, other.replica_);
            std::swap(choices_, other.choices_);
            return *this;
        }
        ~place() { give_back(choices_); }

        std::size_t replica() const noexcept { return replica_; }
        void give_back(std::int64_t choices) noexcept;

    private:
        friend load_balance;
        place(std::shared_ptr<load_balance> of, std::size_t replica, std::int64_t choices) noexcept
            : of_(std::move(of))
            , replica_(replica)
            , choices_(choices)
        {
        }

        std::shared_ptr<load_balance> of_;
        std::size_t replica_ = 0;
        std::int64_t choices_ = 0;
    };

    /// Of the replicas that take requests, or of all where none does, the first of those with the least to do.
    static place take(std::shared_ptr<load_balance> const& from, std::int64_t choices);

    /// A replica takes no more.
    void close(std::size_t replica) noexcept;

private:
    struct one {
        std::int64_t choices = 0; ///< given to it and not over
        bool closed = false;
    };

    std::mutex mutex_;
    std::vector<one> replicas_;
};

} // namespace plait
