package model

import (
	"context"
	"flag"
	"fmt"
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
	// mutant is the guard that is missing; empty for none.
	mutant string
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
		})
	}
}

// liveMutants break no rule, but jobs wait for ever.
var liveMutants = []string{"GIVEN_BACK_IS_NOT_READY", "REAPED_NEVER_EXPIRES", "PARK_WITHOUT_WAKE", "WAIT_IN_THE_FIRST_LANE"}

func TestEveryGuardIsNeeded(t *testing.T) {
	enough := 15
	for _, file := range []string{"lease.pml", "admission.pml"} {
		var mutants []string
		for _, found := range regexp.MustCompile(`\bMUTANT_([A-Z_]+)\b`).FindAllStringSubmatch(source(t, file), -1) {
			mutants = append(mutants, found[1])
		}
		slices.Sort(mutants)
		mutants = slices.Compact(mutants)
		enough -= len(mutants)
		for _, mutant := range mutants {
			c := check{file: file, faults: 2, mutant: mutant, live: slices.Contains(liveMutants, mutant)}
			t.Run(c.String(), func(t *testing.T) {
				t.Parallel()
				require.NotZero(t, c.run(t).errors, "Spin finds nothing wrong without this guard")
			})
		}
	}
	require.LessOrEqual(t, enough, 0)
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
	if r.errors > 0 && c.mutant == "" {
		r.trail = command(t, dir, "spin", append(slices.Clone(defines), "-t", "-p", "-g", c.file)...)
	}
	return r
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
