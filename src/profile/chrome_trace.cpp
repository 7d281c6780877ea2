#include "batchrpc/profile/chrome_trace.hpp"

#include <algorithm>
#include <ostream>
#include <string_view>
#include <vector>

#include "base/hex.hpp"
#include "base/json_writer.hpp"
#include "batchrpc/base/version.hpp"
#include "batchrpc/profile/call_phases.hpp"
#include "profile/trace_layout.hpp"
#include "profile/walk.hpp"

namespace batchrpc {
namespace {

using profile::TraceLayout;

constexpr std::size_t kBlock = std::size_t{1} << 16;

class ChromeTrace {
 public:
  // Writes to `stream`, one block at a time; null: all of it stays in `out`.
  ChromeTrace(const Recording& recording, std::string& out, std::ostream* stream)
      : recording_(recording),
        clocks_(recording),
        layout_(recording, clocks_),
        out_(out),
        stream_(stream),
        json_(out) {}

  void write() {
    json_.begin_object();
    json_.member("displayTimeUnit", "ns");
    for (const char* key : {"metadata", "otherData"}) {
      json_.key(key);
      write_metadata();
    }
    json_.key("traceEvents");
    json_.begin_array();
    write_names();
    for (const TraceLayout::Call& call : layout_.calls) {
      if (call.row != TraceLayout::kNone) write_call(call);
    }
    for (const TraceLayout::Run& run : layout_.runs) {
      if (run.kind == TraceLayout::Run::Kind::handler) {
        write_handler(layout_.calls[run.index]);
      } else {
        write_operator(layout_.operators[run.index]);
      }
    }
    for (const TraceLayout::Batch& batch : layout_.batches)
      write_batch(batch);
    // After all slices: an arrow binds to the slice that has begun.
    for (std::size_t i = 0; i < layout_.calls.size(); ++i)
      write_flow(layout_.calls[i], i + 1);
    json_.end_array();
    json_.end_object();
    out_ += '\n';
    flush();
  }

 private:
  void flush() {
    if (stream_ == nullptr) return;
    stream_->write(out_.data(), static_cast<std::streamsize>(out_.size()));
    out_.clear();
  }

  void write_metadata() {
    json_.begin_object();
    json_.member("batchrpc", version());
    json_.member("node", recording_.node);
    json_.member("sampled", recording_.sampled);
    json_.member("left_out", profile::left_out(recording_));
    json_.key("clocks");
    json_.begin_array();
    for (const ClockOffset& clock : clocks_.offsets()) {
      json_.begin_object();
      json_.member("node", clock.node);
      json_.member("known", clock.known);
      json_.member("offset_ns", clock.offset.count());
      json_.member("error_ns", clock.error.count());
      json_.member("samples", clock.samples);
      json_.end_object();
    }
    json_.end_array();
    json_.end_object();
  }

  std::size_t pid(std::size_t node) const { return node + 1; }
  // No thread's number may equal a process's: it would be shown as that process's main thread.
  std::size_t tid(std::size_t row) const { return layout_.nodes.nodes().size() + row + 1; }

  void write_names() {
    const auto& nodes = layout_.nodes.nodes();
    const auto name = [&](std::string_view what, std::size_t node, std::size_t thread,
                          std::string_view key, const auto& value) {
      begin_event("M", what);
      json_.member("pid", pid(node));
      json_.member("tid", thread);
      json_.key("args");
      json_.begin_object();
      json_.member(key, value);
      json_.end_object();
      end_event();
    };
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const std::string rank =
          nodes[i].rank < 0 ? "" : " (rank " + std::to_string(nodes[i].rank) + ")";
      name("process_name", i, 0, "name", nodes[i].name + rank);
      name("process_sort_index", i, 0, "sort_index", i);
      if (nodes[i].process != 0) {
        name("process_labels", i, 0, "labels", "process " + std::to_string(nodes[i].process));
      }
    }
    for (std::size_t i = 0; i < layout_.rows.size(); ++i) {
      name("thread_name", layout_.rows[i].node, tid(i), "name", layout_.rows[i].name);
      name("thread_sort_index", layout_.rows[i].node, tid(i), "sort_index", i);
    }
  }

  void begin_event(std::string_view kind, std::string_view name) {
    json_.begin_object();
    json_.member("ph", kind);
    json_.member("name", name);
  }
  void end_event() {
    json_.end_object();
    out_ += '\n';
    if (out_.size() > kBlock) flush();
  }
  void write_place(std::size_t row, TimePoint time) {
    json_.member("pid", pid(layout_.rows[row].node));
    json_.member("tid", tid(row));
    json_.key("ts");
    json_.thousandths(Duration(time - layout_.origin).count());
  }
  void begin_slice(std::string_view category, std::string_view name, std::size_t row,
                   TimePoint begin, TimePoint end) {
    begin_event("X", name);
    json_.member("cat", category);
    write_place(row, begin);
    json_.key("dur");
    json_.thousandths(Duration(end - begin).count());
  }
  void begin_arguments() {
    json_.key("args");
    json_.begin_object();
  }
  void end_slice_with_arguments() {
    json_.end_object();
    end_event();
  }

  // Writes everything known about a call except its phases and its batch.
  void write_arguments(const CallRecord& record) {
    json_.member("function", record.function);
    json_.member("caller", record.caller.node);
    json_.member("callee", record.callee.node);
    json_.member("bytes_out", record.bytes_out);
    json_.member("bytes_in", record.bytes_in);
    if (!record.error.empty()) json_.member("error", record.error);
    json_.member("trace_id", hex(record.span.trace_id));
    json_.member("span_id", hex(record.span.span_id));
    if (record.parent != 0) json_.member("parent_id", hex(record.parent));
    if (record.left_out != 0) json_.member("left_out", record.left_out);
  }

  void write_call(const TraceLayout::Call& call) {
    const CallRecord& record = *call.record;
    const CallPhases phases = CallPhases::of(call.times);
    begin_slice("call", record.function, call.row, call.times.called, call.times.ended);
    begin_arguments();
    write_arguments(record);
    json_.key("phases");
    json_.begin_object();
    for (const CallPhase& phase : kCallPhases) {
      json_.key(phase.name);
      json_.thousandths((phases.*phase.field).count());
    }
    json_.end_object();
    if (record.batch.number != 0) {
      json_.key("batch");
      json_.begin_object();
      json_.member("number", record.batch.number);
      json_.member("rows", record.batch.rows);
      json_.end_object();
    }
    end_slice_with_arguments();

    TimePoint begin = call.times.called;
    for (const CallPhase& phase : kCallPhases) {
      const TimePoint end = begin + phases.*phase.field;
      if (begin < end) {
        begin_slice("phase", phase.name, call.row, begin, end);
        end_event();
      }
      begin = end;
    }
  }

  void write_handler(const TraceLayout::Call& call) {
    const CallRecord& record = *call.record;
    begin_slice("handler", record.function, call.handler_row, call.times.callee.begun,
                call.times.callee.finished);
    begin_arguments();
    if (call.row == TraceLayout::kNone) {  // no other slice has them
      write_arguments(record);
    } else {
      json_.member("function", record.function);
      json_.member("caller", record.caller.node);
      json_.member("span_id", hex(record.span.span_id));
    }
    if (record.batch.number != 0) json_.member("batch", record.batch.number);
    end_slice_with_arguments();
  }

  void write_operator(const TraceLayout::Operator& run) {
    const CallRecord& call = *layout_.calls[run.call].record;
    begin_slice("operator", run.record->name, run.row, run.begin, run.end);
    begin_arguments();
    if (run.record->shared && call.batch.number != 0) {
      json_.member("batch", call.batch.number);
    } else {
      json_.member("span_id", hex(call.span.span_id));
    }
    json_.member("function", call.function);
    end_slice_with_arguments();
  }

  void write_batch(const TraceLayout::Batch& batch) {
    const CallRecord& first = *layout_.calls[batch.calls.front()].record;
    begin_slice("batch", "batch of " + first.function, batch.row, batch.begin, batch.end);
    begin_arguments();
    json_.member("function", first.function);
    json_.member("number", first.batch.number);
    json_.member("rows", first.batch.rows);
    json_.key("span_ids");
    json_.begin_array();
    for (const std::size_t call : batch.calls)
      json_.value(hex(layout_.calls[call].record->span.span_id));
    json_.end_array();
    end_slice_with_arguments();
  }

  void write_arrow(std::string_view kind, std::size_t id, std::size_t row, TimePoint time) {
    begin_event(kind, "call");
    json_.member("cat", "flow");
    json_.member("id", id);
    json_.member("bp", "e");
    write_place(row, time);
    end_event();
  }

  // Arrows never go back in time. Each end is where its slice has not ended yet, if the slice has a
  // length. There is no arrow back to a call that ended before its handler.
  void write_flow(const TraceLayout::Call& call, std::size_t id) {
    if (call.row == TraceLayout::kNone || call.handler_row == TraceLayout::kNone) return;
    const CallTimes& times = call.times;
    const auto within = [](TimePoint time, TimePoint begin, TimePoint end) {
      return std::clamp(time, begin, std::max(begin, end - Duration(1)));
    };
    const bool comes_back = times.callee.finished <= times.replied;
    struct End {
      std::size_t row;
      TimePoint time;
    };
    std::vector<End> ends{{call.row, within(times.sent, times.called, times.ended)},
                          {call.handler_row, times.callee.begun}};
    if (call.batch != TraceLayout::kNone) {
      const TraceLayout::Batch& batch = layout_.batches[call.batch];
      const TimePoint in_batch = within(times.handled, batch.begin, batch.end);
      if (in_batch >= ends.back().time && (in_batch <= times.replied || !comes_back)) {
        ends.push_back({batch.row, in_batch});
      }
    }
    if (comes_back) {
      const TimePoint replied = within(times.replied, times.called, times.ended);
      ends.push_back({call.row, std::max(ends.back().time, replied)});
    }
    for (std::size_t i = 0; i < ends.size(); ++i) {
      write_arrow(i == 0 ? "s" : i + 1 < ends.size() ? "t" : "f", id, ends[i].row, ends[i].time);
    }
  }

  const Recording& recording_;
  ClockAlignment clocks_;
  TraceLayout layout_;
  std::string& out_;
  std::ostream* stream_;
  JsonWriter json_;
};

}  // namespace

std::string chrome_trace(const Recording& recording) {
  std::string out;
  ChromeTrace(recording, out, nullptr).write();
  return out;
}

void chrome_trace(const Recording& recording, std::ostream& out) {
  std::string block;
  ChromeTrace(recording, block, &out).write();
}

}  // namespace batchrpc
