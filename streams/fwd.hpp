#pragma once

namespace plait {

class buffer;
class collective;
class communicator;
class device;
class flow;
class gpu;
class stream;
class ticket;
class trace;
class trace_part;
class weave;
struct collective_call;
struct operation_info;
struct rank_groups;
struct share;

} // namespace plait
