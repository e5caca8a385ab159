package conformance

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host"
	"github.com/holdfast-jobs/holdfast/plugin/internal/executable"
	"github.com/holdfast-jobs/holdfast/plugin/internal/handlerv1"
	"github.com/holdfast-jobs/holdfast/plugin/internal/mtls"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// Sample is a job that a check may run.
type Sample struct {
	// Type may be empty if the plugin has one handler.
	Type string
	// Payload is JSON; nil if there is no such job.
	Payload json.RawMessage
	// refused is why such a job cannot be submitted; empty if it can.
	refused string
}

func (s Sample) given() bool { return s.Payload != nil }

// Options say what to check.
type Options struct {
	// Path is the plugin's file, Args its arguments, Env its whole environment.
	Path string
	Args []string
	Env  []string
	// Work is a job that soon succeeds. It is run several times.
	Work Sample
	// Slow is a job that runs for at least 30 seconds unless it is stopped. As
	// many are started at once as the plugin accepts.
	Slow Sample
	// Fail is a job that fails. Without it, a payload that the schema refuses is
	// tried.
	Fail Sample
	// StartTimeout bounds a launch; 10 s when it is 0.
	StartTimeout time.Duration
	// Grace is how long a handler may take to stop, and a process to exit;
	// 5 s when it is 0.
	Grace time.Duration
	// Patience is how long Work and Fail may take; 20 s when it is 0.
	Patience time.Duration
	// Only names the checks to make; empty for all. The manifest is always
	// checked.
	Only []string
	// Begin and End, if set, are called for each check.
	Begin func(name string)
	End   func(Check)
}

const (
	defaultGrace    = 5 * time.Second
	defaultPatience = 20 * time.Second
	// settle is how long a job gets to begin.
	settle = 400 * time.Millisecond
)

// check is one rule.
type check struct {
	name, expected, fix string
	// needs says what the check needs and does not have; empty for nothing. It is nil
	// for checks that do without a manifest.
	needs func(Options) string
	// run makes the check on a new process. A check that starts no process, or its
	// own, has runAlone instead.
	run      func(ctx context.Context, k *kit, s *session) finding
	runAlone func(ctx context.Context, k *kit) finding
}

// finding is the result of a check.
type finding struct {
	status   Status
	happened string
}

func passed(format string, values ...any) finding {
	return finding{Passed, fmt.Sprintf(format, values...)}
}

func failed(format string, values ...any) finding {
	return finding{Failed, fmt.Sprintf(format, values...)}
}

func skipped(format string, values ...any) finding {
	return finding{Skipped, fmt.Sprintf(format, values...)}
}

// kit is one run of all checks.
type kit struct {
	Options
	id mtls.Identity
	// manifest is nil until the plugin has sent one that can be used.
	manifest *handlerv1.DescribeResponse
	// wrong collects what any process has sent against the protocol, and left
	// the processes that any has left behind.
	wrong, left []string
	// schemas: the check of schemas is among those to make.
	schemas bool
	// hopeless is why no check can be made; nil if they can.
	hopeless error
	// started: a process has been started before.
	started bool
}

// OptionsError says that the options do not fit the plugin.
type OptionsError struct{ text string }

func (e OptionsError) Error() string { return e.text }

// Run checks the plugin. A check that fails is in the report. An error means that
// the checks could not be made: an OptionsError, a plugin that cannot be started, or
// a payload that its schema refuses although that check was not asked for. When the
// context ends, the remaining checks are skipped.
func Run(ctx context.Context, options Options) (Report, error) {
	id, err := mtls.New()
	if err != nil {
		return Report{}, fmt.Errorf("certificate: %w", err)
	}
	options.StartTimeout = cmp.Or(options.StartTimeout, host.DefaultStartTimeout)
	options.Grace = cmp.Or(options.Grace, defaultGrace)
	options.Patience = cmp.Or(options.Patience, defaultPatience)
	chosen, err := choose(options.Only)
	if err != nil {
		return Report{}, err
	}
	if err := executable.Check(options.Path); err != nil {
		return Report{}, err
	}
	defer adoptOrphans()()
	k := &kit{Options: options, id: id}
	k.schemas = slices.ContainsFunc(chosen, func(c check) bool { return c.name == schemaCheck })
	report := Report{}
	for _, c := range chosen {
		done := k.do(ctx, c)
		if k.hopeless != nil {
			return Report{}, k.hopeless
		}
		report.Checks = append(report.Checks, done)
		if k.End != nil {
			k.End(done)
		}
	}
	report.Version = k.manifest.GetVersion()
	for _, declared := range k.manifest.GetJobTypes() {
		report.Types = append(report.Types, declared.GetName())
	}
	return report, nil
}

// Names are the names of all checks, in order.
func Names() []string {
	var names []string
	for _, c := range checks() {
		names = append(names, c.name)
	}
	return names
}

// choose returns the checks with these names; all if there are none.
func choose(only []string) ([]check, error) {
	for _, name := range only {
		if !slices.Contains(Names(), name) {
			return nil, OptionsError{fmt.Sprintf("there is no check %q; there are %s", name, strings.Join(Names(), ", "))}
		}
	}
	var chosen []check
	for _, c := range checks() {
		if len(only) == 0 || c.name == manifestCheck || slices.Contains(only, c.name) {
			chosen = append(chosen, c)
		}
	}
	return chosen, nil
}

func (k *kit) do(ctx context.Context, c check) Check {
	if k.Begin != nil {
		k.Begin(c.name)
	}
	begun := time.Now()
	found := k.find(ctx, c)
	done := Check{Name: c.name, Status: found.status, Expected: c.expected, Happened: found.happened, Took: time.Since(begun)}
	if found.status == Failed {
		done.Fix = c.fix
	}
	return done
}

func (k *kit) find(ctx context.Context, c check) finding {
	if ctx.Err() != nil {
		return skipped("the checks were stopped")
	}
	if c.needs != nil {
		if k.manifest == nil {
			return skipped("the plugin has no manifest that can be used")
		}
		if missing := c.needs(k.Options); missing != "" {
			return skipped("%s", missing)
		}
	}
	var found finding
	if c.run != nil {
		found = k.with(ctx, func(ctx context.Context, s *session) finding { return c.run(ctx, k, s) })
	} else {
		found = c.runAlone(ctx, k)
	}
	if ctx.Err() != nil {
		return skipped("the checks were stopped")
	}
	return found
}

// fork starts a process. If the first one cannot start, there is nothing to check.
func (k *kit) fork(cookie bool) (*process, error) {
	p, err := fork(k.Options, cookie, k.id)
	k.started = k.started || err == nil
	if !k.started {
		k.hopeless = fmt.Errorf("%s cannot be started: %w", k.Path, err)
	}
	return p, err
}

// with runs a check on a new process, and ends it.
func (k *kit) with(ctx context.Context, do func(context.Context, *session) finding) finding {
	p, err := k.fork(true)
	if err != nil {
		return failed("%v", err)
	}
	defer context.AfterFunc(ctx, p.kill)()
	defer func() {
		k.left = append(k.left, p.end()...)
		for _, s := range p.sessions {
			k.wrong = append(k.wrong, s.complaints()...)
		}
	}()
	starting, cancel := context.WithTimeout(ctx, k.StartTimeout)
	defer cancel()
	if err := p.connect(starting, k.id); err != nil {
		return failed("%v", err)
	}
	// Describe comes before Work.
	if p.manifest, err = p.handler.Describe(starting, &handlerv1.DescribeRequest{
		MaxProgressBytes: protocol.DefaultMaxProgressBytes, MaxCheckpointBytes: protocol.DefaultMaxCheckpointBytes,
		MaxResultBytes: protocol.DefaultMaxResultBytes,
		MaxFollowUps:   protocol.DefaultMaxFollowUps, MaxFollowUpBytes: protocol.DefaultMaxFollowUpBytes,
	}); err != nil {
		return failed("Describe: %v%s", err, p.out.said())
	}
	s, err := p.work()
	if err != nil {
		return failed("%v", err)
	}
	return do(ctx, s)
}

func anything(Options) string { return "" }

func needsWork(o Options) string {
	if !o.Work.given() {
		return "it needs a job that succeeds: --payload, and --type"
	}
	return o.Work.refused
}

func needsSlow(o Options) string {
	if !o.Slow.given() {
		return "it needs a job that runs for 30 s or more: --slow-payload, and --slow-type"
	}
	return o.Slow.refused
}

// unanswered says why there is no outcome.
func unanswered(s *session, within time.Duration) finding {
	if why := s.broken(); why != "" {
		return failed("%s", why)
	}
	return failed("no outcome came within %s", within)
}

// few joins some of the texts.
func few(texts []string) string {
	const most = 3
	if len(texts) > most {
		return strings.Join(texts[:most], "; ") + fmt.Sprintf("; and %d more", len(texts)-most)
	}
	return strings.Join(texts, "; ")
}
