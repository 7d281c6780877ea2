#include "batchrpc/profile/profile_table.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <tuple>
#include <utility>

#include "base/time.hpp"
#include "batchrpc/profile/clock_alignment.hpp"
#include "profile/self_times.hpp"
#include "profile/text_table.hpp"
#include "profile/times.hpp"
#include "profile/walk.hpp"

namespace batchrpc {
namespace {

constexpr std::string_view kRemote = "#remote_op: ";

class Rows {
 public:
  explicit Rows(const Recording& recording) : clocks_(recording) {
    for (const CallRecord& call : recording.calls)
      add(call, "");
  }

  std::vector<ProfileRow> rows;
  Duration self_total{};

 private:
  ProfileRow& row(std::string name, int node_id) {
    const auto [known, is_new] = index_.try_emplace({std::move(name), node_id}, rows.size());
    if (is_new) {
      rows.push_back({.name = known->first.first, .node_id = node_id, .first_seen = known->second});
    }
    return rows[known->second];
  }

  void add(const CallRecord& call, const std::string& cause) {
    const bool is_answered = !CallTimes::has_caller(call);
    const std::string name = cause + "rpc_async#" + call.function + "(" + call.caller.node +
                             " -> " + call.callee.node + ")" + (call.shared ? " (shared)" : "") +
                             (is_answered ? " (answered)" : "");
    const CallPhases phases = CallPhases::of(call, clocks_.callee_ahead(call));
    const Duration self = phases.encode + phases.decode;
    ProfileRow& its = row(name, is_answered ? call.callee.rank : call.caller.rank);
    its.is_call = true;
    its.is_answered = is_answered;
    ++its.count;
    its.total = sum(its.total, phases.total());
    its.self_total = sum(its.self_total, self);
    its.bytes_out += call.bytes_out;
    its.bytes_in += call.bytes_in;
    if (!call.error.empty()) ++its.errors;
    if (call.batch.number != 0) {
      ++its.batched;
      its.rows += call.batch.rows;
    }
    for (const CallPhase& phase : kCallPhases) {
      Duration& spent = its.phases.*phase.field;
      spent = sum(spent, phases.*phase.field);
    }
    self_total = sum(self_total, self);
    add_operators(call, name);
    for (const CallRecord& nested : call.calls) {
      if (profile::is_first(nested, shared_calls_)) add(nested, name + std::string(kRemote));
    }
  }

  void add_operators(const CallRecord& call, const std::string& call_name) {
    const std::vector<Duration> self = profile::self_times(call.operators);
    for (std::size_t i = 0; i < self.size(); ++i) {
      const OperatorRecord& run = call.operators[i];
      std::string_view name = run.name;
      if (name.starts_with("aten::")) name.remove_prefix(6);
      std::string full = call_name;
      full.append(kRemote).append(name).append(run.shared ? " (shared)" : "");
      ProfileRow& its = row(std::move(full), call.callee.rank);
      ++its.count;
      its.total = sum(its.total, profile::between(run.begin, run.end));
      its.self_total = sum(its.self_total, self[i]);
      if (!run.shared ||
          shared_.emplace(call.callee.node, run.thread, run.begin, run.end, run.name).second) {
        self_total = sum(self_total, self[i]);
      }
    }
  }

  ClockAlignment clocks_;
  std::map<std::pair<std::string, int>, std::size_t> index_;
  std::set<std::tuple<std::string_view, std::uint64_t, TimePoint, TimePoint, std::string_view>>
      shared_;
  profile::SharedSpans shared_calls_;
};

Duration mean(Duration total, std::uint64_t count) {
  return count == 0 ? Duration::zero() : total / static_cast<std::int64_t>(count);
}

// Whether a row is sorted above another one.
bool is_above(const ProfileRow& a, const ProfileRow& b, ProfileSort order) {
  switch (order) {
    case ProfileSort::first_seen:
      return a.first_seen < b.first_seen;
    case ProfileSort::self_total:
      return a.self_total > b.self_total;
    case ProfileSort::total:
      return a.total > b.total;
    case ProfileSort::mean:
      return mean(a.total, a.count) > mean(b.total, b.count);
    case ProfileSort::count:
      return a.count > b.count;
    case ProfileSort::bytes:
      return a.bytes_out + a.bytes_in > b.bytes_out + b.bytes_in;
    case ProfileSort::errors:
      return a.errors > b.errors;
    case ProfileSort::name:
      return std::tie(a.name, a.node_id) < std::tie(b.name, b.node_id);
  }
  return false;
}

}  // namespace

ProfileTable::ProfileTable(const Recording& recording)
    : left_out_(profile::left_out(recording)), sampled_(recording.sampled) {
  Rows rows(recording);
  rows_ = std::move(rows.rows);
  self_total_ = rows.self_total;
}

ProfileTable& ProfileTable::sort_by(ProfileSort order) & {
  std::stable_sort(rows_.begin(), rows_.end(),
                   [&](const ProfileRow& a, const ProfileRow& b) { return is_above(a, b, order); });
  return *this;
}

std::string ProfileTable::table(const ProfileTableOptions& options) const {
  profile::TextTable text({"Name", "Self CPU total %", "Self CPU total", "CPU total %", "CPU total",
                           "CPU time avg", "Number of Calls", "Node ID", "Bytes out", "Bytes in",
                           "Errors", "Mean batch size"});
  std::size_t shown = 0;
  for (const ProfileRow& row : rows_) {
    if (options.row_limit > 0 && shown == options.row_limit) break;
    ++shown;
    const auto of_calls = [&](std::uint64_t number) {
      return row.is_call ? std::to_string(number) : std::string("-");
    };
    const bool no_share = self_total_ == Duration::zero() && row.is_answered;
    text.add({row.name, row.is_answered ? "-" : profile::share_text(row.self_total, self_total_),
              row.is_answered ? "-" : profile::time_text(row.self_total),
              no_share ? "-" : profile::share_text(row.total, self_total_),
              profile::time_text(row.total), profile::time_text(mean(row.total, row.count)),
              std::to_string(row.count), std::to_string(row.node_id), of_calls(row.bytes_out),
              of_calls(row.bytes_in), of_calls(row.errors),
              row.batched == 0 ? "-" : profile::number_text(row.mean_batch_size(), 1)},
             options.name_width);
  }
  return text.text() + total() + footer(rows_.size() - shown);
}

std::string ProfileTable::phases_table(const ProfileTableOptions& options) const {
  std::vector<std::string> titles{"Name", "Number of Calls", "Node ID"};
  for (const CallPhase& phase : kCallPhases)
    titles.emplace_back(phase.name);
  titles.emplace_back("end to end");
  profile::TextTable text(std::move(titles));
  std::size_t shown = 0;
  std::size_t not_shown = 0;
  for (const ProfileRow& row : rows_) {
    if (!row.is_call) continue;
    if (options.row_limit > 0 && shown == options.row_limit) {
      ++not_shown;
      continue;
    }
    ++shown;
    std::vector<std::string> cells{row.name, std::to_string(row.count),
                                   std::to_string(row.node_id)};
    for (const CallPhase& phase : kCallPhases) {
      const bool is_known = !row.is_answered || phase.field == &CallPhases::waiting ||
                            phase.field == &CallPhases::batch ||
                            phase.field == &CallPhases::handler;
      cells.push_back(is_known ? profile::time_text(mean(row.phases.*phase.field, row.count))
                               : "-");
    }
    cells.push_back(profile::time_text(mean(row.total, row.count)));
    text.add(std::move(cells), options.name_width);
  }
  return text.text() + footer(not_shown);
}

std::string ProfileTable::total() const {
  return "Self CPU time total: " + profile::time_text(self_total_) + "\n";
}

std::string ProfileTable::footer(std::size_t rows_not_shown) const {
  std::string text;
  if (rows_not_shown > 0) {
    text += std::to_string(rows_not_shown) + " more rows (ProfileTableOptions::row_limit)\n";
  }
  if (sampled_ != 1) {
    text += "Sampled: one outgoing call in " + std::to_string(sampled_) + " was recorded\n";
  }
  if (left_out_ != 0) {
    text += "Left out: " + std::to_string(left_out_) +
            " calls and operators for which there was no room (ProfilerOptions::max_events; a "
            "reply has room for 4096, and for eight levels of calls)\n";
  }
  return text;
}

}  // namespace batchrpc
