#pragma once

namespace plait {

class buffer;
class device;
class flow;
class gpu;
class stream;
class ticket;
struct share;

} // namespace plait
