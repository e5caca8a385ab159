package config

import "strings"

// renamedKeys are the keys of earlier versions. A star stands for a name or an
// index. The lines apply one after the other.
var renamedKeys = []struct{ was, is string }{
	{"handlers", "plugins"},
	{"plugins.*.alone", "plugins.*.isolated"},
	{"worker.claim_ahead", "worker.prefetch"},
	{"worker.after_crash", "worker.crash_policy"},
	{"worker.poll", "worker.poll_interval"},
	{"worker.drain", "worker.drain_timeout"},
	{"worker.handlers_cgroup", "worker.plugins_cgroup"},
	{"jobs.default.retry.base", "jobs.default.retry.initial_delay"},
	{"jobs.default.retry.cap", "jobs.default.retry.max_delay"},
	{"jobs.default.retry.at_once_after_timeout", "jobs.default.retry.immediate_after_timeout"},
	{"jobs.types.*.retry.base", "jobs.types.*.retry.initial_delay"},
	{"jobs.types.*.retry.cap", "jobs.types.*.retry.max_delay"},
	{"jobs.types.*.retry.at_once_after_timeout", "jobs.types.*.retry.immediate_after_timeout"},
	{"tracing.link", "tracing.trace_url_template"},
	{"tracing.handlers", "tracing.plugins"},
}

// renamed returns the present name of a key of an earlier version.
func renamed(k key) (now key, found bool) {
	now = k
	for _, r := range renamedKeys {
		if next, ok := now.replaced(strings.Split(r.was, "."), strings.Split(r.is, ".")); ok {
			now, found = next, true
		}
	}
	return now, found
}

// replaced returns the key with is in place of was, if it begins with was.
func (k key) replaced(was, is []string) (key, bool) {
	if len(k) < len(was) {
		return nil, false
	}
	now := append(key{}, is...)
	for i, part := range was {
		switch {
		case part == "*":
			now[i] = k[i]
		case !strings.EqualFold(part, k[i]):
			return nil, false
		}
	}
	return append(now, k[len(was):]...), true
}
