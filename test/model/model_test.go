package model

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/runtime/job"
)

var update = flag.Bool("update", false, "write states.pml anew")

// The models have the states and transitions of package job.
func TestTheModelHasTheTransitionsOfThePackage(t *testing.T) {
	want := statesFile()
	if *update {
		require.NoError(t, os.WriteFile("states.pml", []byte(want), 0o644))
	}
	have, err := os.ReadFile("states.pml")
	require.NoError(t, err)
	require.Equal(t, want, string(have), "go test ./test/model -update writes it anew")
}

func statesFile() string {
	var b strings.Builder
	b.WriteString("/* The states of package job, and what each can become. Written by go test ./test/model -update. */\n\n")
	name := func(s job.State) string { return strings.ToUpper(string(s)) }
	var final, legal []string
	for i, from := range job.States() {
		fmt.Fprintf(&b, "#define %s %d\n", name(from), i)
		if from.Final() {
			final = append(final, "(s) == "+name(from))
		}
		for _, to := range job.States() {
			if from.CanBecome(to) {
				legal = append(legal, fmt.Sprintf("(from) == %s && (to) == %s", name(from), name(to)))
			}
		}
	}
	fmt.Fprintf(&b, "\n#define FINAL(s) (%s)\n", strings.Join(final, " || "))
	fmt.Fprintf(&b, "\n#define LEGAL(from, to) ( \\\n\t%s)\n", strings.Join(legal, " || \\\n\t"))
	return b.String()
}

// check is one run of Spin.
type check struct {
	file string
	// live checks that jobs end, instead of that nothing forbidden happens.
	live bool
	// faults bounds what goes wrong.
	faults int
	// mutant is the guard that is missing, and violates the property without which the model
	// is wrong: of a MUST, or ends. Both are empty for Holdfast as it is.
	mutant, violates string
}

func (c check) String() string {
	what := "safety"
	if c.live {
		what = "liveness"
	}
	return strings.TrimSuffix(fmt.Sprintf("%s %s with %d faults %s", strings.TrimSuffix(c.file, ".pml"), what, c.faults, c.mutant), " ")
}

func TestHoldfastKeepsItsPromises(t *testing.T) {
	checks := []check{
		{file: "lease.pml", faults: 2},
		{file: "lease.pml", faults: 1, live: true},
		{file: "submission.pml", faults: 4},
		{file: "submission.pml", faults: 2, live: true},
		{file: "admission.pml", faults: 2},
		{file: "admission.pml", faults: 1, live: true},
	}
	if !testing.Short() {
		checks = append(checks, check{file: "lease.pml", faults: 4}, check{file: "lease.pml", faults: 2, live: true}, check{file: "admission.pml", faults: 4})
	}
	for _, c := range checks {
		t.Run(c.String(), func(t *testing.T) {
			t.Parallel()
			r := c.run(t)
			require.Zero(t, r.errors, "%s\n%s", r.output, r.trail)
			require.NotContains(t, r.output, "Search not completed")
		})
	}
}

// ends is the property that every job ends, and every client is answered. It takes a search for
// cycles: such mutants break no other rule, but something waits for ever.
const ends = "ends"

// mutants are what each missing guard violates.
var mutants = map[string]map[string]string{
	"lease.pml": {
		"ASK_WITHOUT_BARRIER":        "WHAT_IS_TOLD_IS_SAFE",
		"CANCELED_WAIT_IS_SUCCESS":   "WHAT_IS_TOLD_IS_SAFE",
		"CANCEL_WITHOUT_BARRIER":     "CANCELS_ARE_KEPT",
		"CLAIM_KEEPS_FENCE":          "NO_FENCE_TWICE",
		"CLAIM_STAYS_READY":          "ONE_LEASE",
		"FAILURE_IS_FREE":            "FAILURES_ARE_CHARGED",
		"GIVEN_BACK_IS_NOT_READY":    ends,
		"POSTPONE_RUNNING":           "ONE_LEASE",
		"PROMOTE_WITHOUT_TIMER":      "TRANSITIONS_ARE_LEGAL",
		"PROVE_FROM_THE_ANSWER":      "ONE_HANDLER",
		"REAPED_NEVER_EXPIRES":       ends,
		"REAP_KEEPS_LEASE_ID":        "ONLY_THE_OWNER_RENEWS",
		"REAP_WITHOUT_LOOKING_AGAIN": "WHAT_IS_RENEWED_IS_KEPT",
		"RENEW_BY_FENCE":             "ONLY_THE_OWNER_RENEWS",
		"RENEW_UNANSWERED":           "ONE_HANDLER",
		"RENEW_WHAT_HAS_EXPIRED":     "WHAT_HAS_EXPIRED_STAYS_EXPIRED",
		"RENEW_WITHOUT_LEASE_ID":     "ONLY_THE_OWNER_RENEWS",
		"REQUEUE_WHATEVER_IT_IS":     "TRANSITIONS_ARE_LEGAL",
		"RETRY_FORGETS_CANCEL":       "CANCELS_ARE_KEPT",
		"RETRY_WITHOUT_END":          "ATTEMPTS_ARE_LIMITED",
		"SETTLE_BY_FENCE":            "ONLY_THE_OWNER_SETTLES",
		"SETTLE_KEEPS_FENCE":         "NO_FENCE_TWICE",
		"SETTLE_WITHOUT_LEASE_ID":    "ONLY_THE_OWNER_SETTLES",
		"START_UNANSWERED":           "WHAT_IS_TOLD_IS_SAFE",
	},
	"submission.pml": {
		"CANCELED_WAIT_IS_SUCCESS": "WHAT_IS_TOLD_IS_SAFE",
		"LOOK_THEN_STORE":          "ONE_JOB_FOR_A_KEY",
		"LOOK_UP_WITHOUT_BARRIER":  "WHAT_IS_TOLD_IS_SAFE",
		"REPLAY_SUBMITS_AGAIN":     "ONE_JOB_FOR_A_KEY",
		"REPLAY_WITHOUT_BARRIER":   "WHAT_IS_TOLD_IS_SAFE",
	},
	"admission.pml": {
		"ADMIT_WITHOUT_COUNTING":         "COUNTERS_ARE_RIGHT",
		"ADMIT_WITHOUT_LOCK":             "COUNTERS_ARE_RIGHT",
		"DRAIN_COMMITS_AT_ONCE":          "COUNTERS_ARE_RIGHT",
		"DRAIN_WHAT_CAME_LATER":          "COUNTERS_ARE_RIGHT",
		"FREE_IN_A_STATEMENT_OF_ITS_OWN": "COUNTERS_ARE_RIGHT",
		"OWNER_AND_REAPER_BOTH_FREE":     "COUNTERS_ARE_RIGHT",
		"PARK_WITHOUT_WAKE":              ends,
		"WAIT_IN_THE_FIRST_LANE":         ends,
	},
}

func TestEveryGuardIsNeeded(t *testing.T) {
	for file, properties := range mutants {
		found := make(map[string]bool)
		for _, name := range regexp.MustCompile(`\bMUTANT_([A-Z_]+)\b`).FindAllStringSubmatch(source(t, file), -1) {
			found[name[1]] = true
		}
		require.ElementsMatch(t, slices.Collect(maps.Keys(found)), slices.Collect(maps.Keys(properties)), "the mutants of %s", file)
		for mutant, property := range properties {
			c := check{file: file, faults: 2, mutant: mutant, violates: property, live: property == ends}
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				require.Equal(t, c.violates, c.run(t).violated)
			})
		}
	}
}

// source is a model, with what it includes.
func source(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	return regexp.MustCompile(`(?m)^#include "(.+)"$`).ReplaceAllStringFunc(string(text), func(line string) string {
		return source(t, strings.Split(line, `"`)[1])
	})
}

// result is what Spin found.
type result struct {
	errors        int
	violated      string // the property
	output, trail string
}

// checkWithin bounds a run. The slowest takes some seconds.
const checkWithin = 5 * time.Minute

// run translates the model to C, compiles that, and lets it look at every state.
func (c check) run(t *testing.T) result {
	t.Helper()
	needSpin(t)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, c.file), []byte(source(t, c.file)), 0o600))
	defines := []string{fmt.Sprintf("-DFAULTS=%d", c.faults)}
	// VECTORSZ and NFAIR are room for the state and for the fairness of all processes.
	compile := []string{"-w", "-DCOLLAPSE", "-DVECTORSZ=2048", "-DNFAIR=4", "-o", "pan", "pan.c"}
	search := []string{"-m1000000", "-w22"}
	if c.live {
		defines = append(defines, "-DLIVENESS")
		search = append(search, "-a", "-f") // acceptance cycles, with weak fairness
	} else {
		compile = append(compile, "-DSAFETY")
	}
	if c.mutant != "" {
		defines = append(defines, "-DMUTANT_"+c.mutant)
	} else {
		compile = append(compile, "-O1") // which takes longer than a mutant does to fail
	}
	command(t, dir, "spin", append(slices.Clone(defines), "-a", c.file)...)
	command(t, dir, "gcc", compile...)
	r := result{output: command(t, dir, "./pan", search...)}
	found := regexp.MustCompile(`errors: (\d+)`).FindStringSubmatch(r.output)
	require.NotNil(t, found, r.output)
	_, err := fmt.Sscan(found[1], &r.errors)
	require.NoError(t, err)
	require.NotContains(t, r.output, "max search depth too small")
	if r.errors > 0 {
		r.violated = violated(r.output)
	}
	if r.errors > 0 && c.mutant == "" {
		r.trail = command(t, dir, "spin", append(slices.Clone(defines), "-t", "-p", "-g", c.file)...)
	}
	return r
}

// violated is the property that does not hold by Spin's output, or whatever else is wrong. The
// search stops at the first error.
func violated(output string) string {
	found := regexp.MustCompile(`(?m)^pan:1: (.+) \(at depth \d+\)$`).FindStringSubmatch(output)
	if found == nil {
		return output
	}
	if property := regexp.MustCompile(`^assertion violated \(([A-Z_]+)\|\|.*\)$`).FindStringSubmatch(found[1]); property != nil {
		return property[1]
	}
	if found[1] == "acceptance cycle" && strings.Contains(output, "never claim         \t+ ("+ends+")") {
		return ends
	}
	return found[1]
}

func command(t *testing.T, dir, name string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), checkWithin)
	defer cancel()
	run := exec.CommandContext(ctx, name, args...)
	run.Dir = dir
	output, err := run.CombinedOutput()
	require.NoError(t, err, "%s %s: %s", name, strings.Join(args, " "), output)
	return string(output)
}

// needSpin skips a test unless make test-model runs it, which installs Spin.
func needSpin(t *testing.T) {
	t.Helper()
	if os.Getenv("HOLDFAST_TEST_MODEL") != "1" {
		t.Skip("make test-model runs it")
	}
}
