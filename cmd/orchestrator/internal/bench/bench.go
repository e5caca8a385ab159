package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/show"
)

// Config says what to measure, and where.
type Config struct {
	// Program is the orchestrator's binary, and Version its version.
	Program, Version string
	// URL is a PostgreSQL server whose user may create databases.
	URL string
	// Settings are further settings of the orchestrator, as key=value.
	Settings []string
	// Runs is the number of measured runs, and WarmUps that of unmeasured ones before.
	Runs, WarmUps int
	// Jobs is the number of jobs in a run; 0 for the scenario's own.
	Jobs int
	// Batch is the number of jobs in a batch of the scenarios submit and e2e.
	Batch int
	// Keys are the concurrency keys of the jobs in the scenarios workoff, single, submit and
	// e2e.
	Keys     Keys
	Fleet    Fleet
	Profiles Profiles
	// Fresh leaves the planner without statistics, as on the first day.
	Fresh bool
	// Notes shows the progress.
	Notes show.Screen
}

// ErrNoScenario says that no scenario has a name.
var ErrNoScenario = errors.New("no such scenario")

// Names lists the scenarios, each with what it measures.
func Names() []string {
	names := make([]string, len(scenarios))
	for i, s := range scenarios {
		names[i] = fmt.Sprintf("%-9s %s", s.name, s.about)
	}
	return names
}

// Check returns ErrNoScenario if one of the names is none.
func Check(names []string) error {
	_, err := choose(names)
	return err
}

// choose returns the named scenarios, or without names all that are not long.
func choose(names []string) ([]scenario, error) {
	if len(names) == 0 {
		return slices.DeleteFunc(slices.Clone(scenarios), func(s scenario) bool { return s.long }), nil
	}
	chosen := make([]scenario, len(names))
	for i, name := range names {
		at := slices.IndexFunc(scenarios, func(s scenario) bool { return s.name == name })
		if at < 0 {
			return nil, fmt.Errorf("%w as %q; there are:\n  %s", ErrNoScenario, name, strings.Join(Names(), "\n  "))
		}
		chosen[i] = scenarios[at]
	}
	return chosen, nil
}

// lab runs scenarios.
type lab struct {
	Config
	cluster *cluster
	line    *show.Line
	// now describes the present run.
	now string
}

// Run measures the named scenarios, or without names all that are not long. After an
// error, which may be ErrNoScenario, it returns what it has measured until then.
func Run(ctx context.Context, cfg Config, names []string) (*Report, error) {
	chosen, err := choose(names)
	if err != nil {
		return nil, err
	}
	if err := cfg.Profiles.prepare(); err != nil {
		return nil, err
	}
	cluster, err := openCluster(ctx, cfg.URL)
	if err != nil {
		return nil, err
	}
	l := &lab{Config: cfg, cluster: cluster, line: show.NewLine(cfg.Notes)}
	defer l.line.Clear()
	report := &Report{Machine: l.machine(), Began: time.Now(), Runs: cfg.Runs}
	for _, s := range chosen {
		measured := Scenario{Name: s.name, About: s.about}
		err := l.measure(ctx, s, &measured)
		report.Scenarios = append(report.Scenarios, measured)
		if err != nil {
			return report, fmt.Errorf("%s: %w", s.name, err)
		}
	}
	return report, nil
}

func (l *lab) measure(ctx context.Context, s scenario, measured *Scenario) error {
	jobs := s.jobs
	if l.Jobs > 0 {
		jobs = l.Jobs
	}
	warmUps := l.WarmUps
	if s.long {
		warmUps = 0
	}
	for i := range warmUps + l.Runs {
		number := i + 1 - warmUps
		l.now = fmt.Sprintf("%s, run %d of %d", s.name, number, l.Runs)
		r := &run{lab: l, record: measured.add, name: fmt.Sprintf("%s, run %d", s.name, number)}
		if number < 1 {
			l.now = s.name + ", warming up"
			r.record, r.name = func(string, string, string, float64) {}, ""
		}
		if err := l.once(ctx, s, jobs, r); err != nil {
			return err
		}
	}
	return nil
}

func (l *lab) once(ctx context.Context, s scenario, jobs int, r *run) (err error) {
	l.say("preparing")
	db, err := l.cluster.create(ctx)
	if err != nil {
		return err
	}
	r.db = db
	defer func() { err = errors.Join(err, r.end(ctx)) }()
	return s.do(ctx, r, jobs)
}

func (l *lab) say(what string) { l.line.Set(l.now + "  " + what) }

func (l *lab) machine() Machine {
	m := Machine{
		CPUs: runtime.NumCPU(), System: runtime.GOOS + "/" + runtime.GOARCH, Go: runtime.Version(),
		Holdfast: l.Version, PostgreSQL: l.cluster.version, Settings: l.cluster.settings,
	}
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.System += " " + strings.TrimSpace(string(release))
	}
	if cpus, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		_, rest, _ := strings.Cut(string(cpus), "model name\t: ")
		m.CPU, _, _ = strings.Cut(rest, "\n")
	}
	return m
}
