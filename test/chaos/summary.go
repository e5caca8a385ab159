//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
)

// summarize prints what the run did.
func (r *run) summarize() {
	jobs, claims := 0, 0
	err := history.EachLine(filepath.Join(r.dir, history.WitnessFile), func(_ int, c history.Change) error {
		switch {
		case c.Op == history.Insert && c.Table == "jobs":
			jobs++
		case c.Op == history.Insert && c.Table == "leases":
			claims++
		}
		return nil
	})
	if err != nil {
		fmt.Println("note: no count of jobs:", err)
	}
	kinds := make(map[string]int)
	failed, done := 0, 0
	for _, f := range r.injected {
		if f.Error != "" {
			failed++
			continue
		}
		done++
		kinds[f.Kind]++
	}
	fmt.Printf("%d jobs, %d claims, %d submissions accepted\n", jobs, claims, r.load.Accepted())
	fmt.Printf("%d faults of %d kinds (%d could not be injected), %d failovers\n", done, len(kinds), failed, failovers(r.injected))
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		fmt.Printf("  %-24s %d\n", kind, kinds[kind])
	}
	took := make(map[string][]time.Duration)
	for _, reclaim := range r.timings.Reclaims {
		where := " (elsewhere)"
		if reclaim.SameHost {
			where = " (same host)"
		}
		took[reclaim.Case+where] = append(took[reclaim.Case+where], time.Duration(reclaim.Reclaimed-reclaim.Lost))
	}
	for _, of := range slices.Sorted(maps.Keys(took)) {
		all := took[of]
		p99 := short(history.Percentile99(all))
		fmt.Printf("reclaimed after %s: %d jobs, p50 %s, p99 %s\n", of, len(all), short(all[len(all)/2]), p99)
	}
	for _, f := range r.timings.Failovers {
		fmt.Printf("%s: first 202 after %s%s, first claim after %s%s\n", f.Kind, after(f.Answers, f.FirstAccept), despite(f.AcceptDisturbed),
			after(f.Answers, f.FirstClaim), despite(f.ClaimDisturbed))
	}
	if len(r.timings.Failovers) > 0 {
		accepts, acceptsDespite := longest(r.timings.Failovers, func(f history.Failover) (history.Nanos, []string) { return f.FirstAccept, f.AcceptDisturbed })
		claims, claimsDespite := longest(r.timings.Failovers, func(f history.Failover) (history.Nanos, []string) { return f.FirstClaim, f.ClaimDisturbed })
		fmt.Printf("after failovers that nothing disturbed: first 202 within %s, first claim within %s; after the others %s and %s\n",
			accepts, claims, acceptsDespite, claimsDespite)
	}
	fmt.Printf("doctor: exit %d %q; orphans: %d; sockets: %d\n", r.leaks.DoctorExit, r.leaks.Doctor, len(r.leaks.Orphans), len(r.leaks.Sockets))
}

// despite says which faults were there meanwhile.
func despite(kinds []string) string {
	if len(kinds) == 0 {
		return ""
	}
	return " (despite " + strings.Join(kinds, ", ") + ")"
}

// longest says how long something took at most after failovers, those apart that other faults
// have disturbed.
func longest(failovers []history.Failover, of func(history.Failover) (history.Nanos, []string)) (undisturbed, disturbed string) {
	undisturbed, disturbed = "–", "–"
	var longest, despite time.Duration
	for _, f := range failovers {
		at, kinds := of(f)
		most, says := &longest, &undisturbed
		if len(kinds) > 0 {
			most, says = &despite, &disturbed
		}
		took := time.Duration(at - f.Answers)
		if at == 0 {
			took = math.MaxInt64
		}
		if took >= *most {
			*most, *says = took, after(f.Answers, at)
		}
	}
	return undisturbed, disturbed
}

func after(from, to history.Nanos) string {
	if to == 0 {
		return "never"
	}
	return short(time.Duration(to - from))
}

func short(d time.Duration) string { return d.Round(time.Millisecond).String() }

// check starts the checker, if it was built.
func (r *run) check(ctx context.Context) error {
	checker := filepath.Join(r.programs, "checker")
	if _, err := os.Stat(checker); errors.Is(err, os.ErrNotExist) {
		fmt.Println("note: no checker at", checker)
		return nil
	}
	cmd := exec.CommandContext(ctx, checker, r.dir)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("the checker: %w; the record is in %s", err, r.dir)
	}
	return nil
}
