package main

import (
	"slices"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// noLeaks is V12.
func noLeaks(r *record, f *findings) {
	evidence := []string{history.LeaksFile}
	for i, p := range r.processes {
		f.look()
		if p.Ended == 0 {
			f.add("", []string{processLine(i)}, "the process %s (%d) was never ended", p.Name, p.PID)
		}
	}
	for _, orphan := range r.leaks.Orphans {
		f.add("", evidence, "orphan: %s", orphan)
	}
	for _, socket := range r.leaks.Sockets {
		f.add("", evidence, "socket without a process: %s", socket)
	}
	if r.leaks.DoctorExit != 0 {
		f.add("", evidence, "doctor exits with %d: %v", r.leaks.DoctorExit, r.leaks.Doctor)
	}
	if len(r.leaks.Healed) == 0 || len(r.leaks.Baseline) == 0 {
		f.add("", evidence, "nobody has looked at what is left, or at what was there before")
		return
	}
	for _, before := range r.leaks.Baseline {
		if _, ok := named(r.leaks.Healed, before.Name); !ok {
			f.add("", evidence, "nobody knows what %s uses in the end", before.Name)
		}
	}
	for _, now := range r.leaks.Healed {
		r.grown(f, now)
	}
	r.sessions(f)
}

func named(all []history.Usage, name string) (history.Usage, bool) {
	i := slices.IndexFunc(all, func(u history.Usage) bool { return u.Name == name })
	if i < 0 {
		return history.Usage{}, false
	}
	return all[i], true
}

// grown compares what a process uses in the end with what it used at the baseline.
func (r *record) grown(f *findings, now history.Usage) {
	f.look()
	evidence, allowed := []string{history.LeaksFile}, r.run.Bounds.Growth
	base, ok := named(r.leaks.Baseline, now.Name)
	if !ok {
		f.add("", evidence, "%s has no baseline", now.Name)
		return
	}
	for _, used := range []struct {
		what               string
		before, now, allow int
	}{
		{"descendants", base.Descendants, now.Descendants, allowed.Descendants},
		{"files", base.Files, now.Files, allowed.Files},
		{"goroutines", base.Goroutines, now.Goroutines, allowed.Goroutines},
	} {
		if used.now > used.before+used.allow {
			f.add("", evidence, "%s has %d %s, and had %d", now.Name, used.now, used.what, used.before)
		}
	}
}

// sessions judges the connections to the database: it has none that no orchestrator has.
func (r *record) sessions(f *findings) {
	f.look()
	evidence := []string{history.LeaksFile}
	database, ok := named(r.leaks.Healed, history.DatabaseUsage)
	if !ok || database.Connections == 0 {
		f.add("", evidence, "nobody has counted the sessions of the database")
		return
	}
	pooled := 0
	for _, now := range r.leaks.Healed {
		if now.Name != history.DatabaseUsage {
			pooled += now.Connections
		}
	}
	if database.Connections > pooled {
		f.add("", evidence, "the database has %d sessions, and all orchestrators together %d connections", database.Connections, pooled)
	}
}
