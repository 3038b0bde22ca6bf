#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

namespace plait::detail {

class message;

/// Finds asks that can never end: an exclusive section holds back a message, or a method that would go on, while the
/// method that holds it waits, through other methods and other sections, for just that. Who waits for whom is known
/// exactly: an ask waits until what it asks has ended, and what is held back waits until the holder has.
///
/// A method that would let go of its section from a task beside the one that asks, or that gives up by a timeout, is
/// told of a cycle all the same. From any thread.
class ask_cycles {
public:
    /// `held`, queued or running, is held back by `holder`, another method of its actor. Describes the cycle that this
    /// closes, if it does; otherwise an empty text.
    std::string hold(message const& held, message const& holder);
    /// `held` is taken, refused, or goes on.
    void release(message const& held) noexcept;
    /// `holder` has let go of its section: what it held back waits for it no more.
    void let_go(message const& holder) noexcept;

private:
    void forget(message const& held) noexcept;

    std::mutex mutex_;
    std::map<message const*, std::vector<message const*>> held_by_; ///< by holder
    std::map<message const*, message const*> holder_of_;
};

} // namespace plait::detail
