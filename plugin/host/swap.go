package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// plan is a swap that somebody wants.
type plan struct {
	trigger job.SwapTrigger
	config  Config
	// binary is what to start; nil for what stands under the path.
	binary *binary.File
	// force leaves the manifests uncompared.
	force bool
	// reason is why, for SwapByFailure.
	reason string
	// begun gets the swap when it begins; nil when nobody asks.
	begun chan<- job.PluginSwap
}

// Why a new version does not serve. Anything else is a fault of its own, for
// which it is rolled back.
type (
	// refused says that it may not.
	refused struct{ error }
	// abandoned says that it could not be found out.
	abandoned struct{ error }
)

func (r refused) Unwrap() error   { return r.error }
func (a abandoned) Unwrap() error { return a.error }

// swap starts another version beside the one that serves, and puts it in its
// place if it proves itself. It returns when that is decided; the one that has
// lost drains after that. Only the conductor calls it.
func (f *fleet) swap(p plan) job.PluginSwap {
	ctx, breakOff := context.WithCancelCause(f.quitting)
	defer breakOff(nil)
	s := f.beginSwap(p, breakOff)
	g, err := f.nominate(p, &s)
	if err == nil {
		err = f.prove(ctx, g, p)
	}
	if err == nil {
		before := f.keep(p.trigger)
		if err = f.takeOver(ctx, g); err == nil && p.trigger != job.SwapByRestart {
			before, f.before = f.before, before
		}
		before.forget()
	}
	if err != nil && g != nil {
		f.reject(g)
	}
	s = f.endSwap(p, s, g, err)
	switch {
	case s.Result == job.SwapAbandoned:
		f.lookAfter = time.Now().Add(lookAgainAfter)
	case errors.Is(err, errDisabled):
		// Nothing was found out.
	case g != nil && p.trigger != job.SwapByRestart:
		f.watched.Know(g.binary.Info())
		f.spurned = ""
		if err != nil {
			f.spurn(g)
		}
	}
	return s
}

// errDisabled refuses a swap of a plugin that does not serve.
var errDisabled = errors.New("the plugin is disabled")

// spurn notes that the version is not to be tried again by itself.
func (f *fleet) spurn(g *generation) {
	f.spurned, f.spurnedMode, f.spurnedAs = g.binary.Digest, g.binary.Info().Mode(), g.config
}

func (f *fleet) brokenOff(ctx context.Context) error {
	if f.quitting.Err() != nil {
		return abandoned{errors.New("the plugin is being stopped")}
	}
	return abandoned{context.Cause(ctx)}
}

func (f *fleet) beginSwap(p plan, breakOff context.CancelCauseFunc) job.PluginSwap {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.breakOff = breakOff
	s := job.PluginSwap{Trigger: p.trigger, From: f.current.version(), BegunAt: time.Now()}
	f.lastSwap = &s
	if p.binary == nil {
		f.leftOut = ""
	}
	if p.begun != nil {
		p.begun <- s
	}
	return s
}

// nominate pins the new version and begins to launch it.
func (f *fleet) nominate(p plan, s *job.PluginSwap) (*generation, error) {
	pinned := p.binary
	if pinned == nil {
		var err error
		if pinned, err = binary.Pin(p.config.Path); err != nil {
			return nil, refused{err}
		}
	}
	s.To.Digest = pinned.Digest
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.newGeneration(p.config, pinned, candidate)
	f.next = g
	shown := *s
	f.lastSwap = &shown
	f.log.Info("plugin swap begins", "trigger", string(p.trigger), "from_digest", s.From.Digest, "digest", pinned.Digest)
	switch {
	case f.disabled && f.current.role == serving:
		return g, abandoned{errDisabling}
	case f.disabled:
		return g, refused{errDisabled}
	case p.config.Checksum != "" && !strings.EqualFold(p.config.Checksum, pinned.Digest):
		return g, refused{fmt.Errorf("%w: it is %s", binary.ErrChecksum, pinned.Digest)}
	}
	g.start()
	return g, nil
}

// prove finds out whether the candidate can serve: whether it starts, whether it
// takes what its predecessor has accepted, and whether it does on trial as well
// as that one. A plugin that is down has nothing to lose by a version that starts.
func (f *fleet) prove(ctx context.Context, g *generation, p plan) error {
	if err := f.await(ctx, g, 1); err != nil {
		return err
	}
	f.mu.Lock()
	before, now := f.manifest, g.manifest
	f.mu.Unlock()
	if !p.force && before != nil {
		bounded, cancel := context.WithTimeout(ctx, compareWithin)
		err := compare(bounded, f.settings.Ledger, before, now)
		cancel()
		if err != nil {
			return err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, compareWithin)
	err := f.host.claim(bounded, g)
	cancel()
	switch {
	case err != nil && isRefusal(err):
		return err
	case err != nil:
		return abandoned{err}
	}
	if err := f.await(ctx, g, g.config.Processes); err != nil {
		return err
	}
	if p.trigger == job.SwapByRestart || p.trigger == job.SwapByFailure || p.config.Canary.Period <= 0 || !f.up() {
		return nil
	}
	return f.try(ctx, g, p.config.Canary.Period)
}

func (f *fleet) up() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current.role == serving && len(f.current.live) > 0
}

// await waits until so many processes of the candidate are up. It returns what
// speaks against the candidate as soon as anything does.
func (f *fleet) await(ctx context.Context, g *generation, processes int) error {
	for {
		f.mu.Lock()
		fault, up := g.fault, len(g.live)
		f.mu.Unlock()
		switch {
		case fault != nil:
			return fault
		case up >= processes:
			return nil
		}
		select {
		case <-g.news:
		case <-ctx.Done():
			return f.brokenOff(ctx)
		}
	}
}

// compareWithin bounds the questions to the ledger. When they cannot be answered,
// the file is looked at again after lookAgainAfter.
const (
	compareWithin  = 10 * time.Second
	lookAgainAfter = 10 * time.Second
)

// takeOver promotes the candidate as soon as all its processes are up.
func (f *fleet) takeOver(ctx context.Context, g *generation) error {
	for {
		if err := f.await(ctx, g, g.config.Processes); err != nil {
			return err
		}
		if promoted, err := f.promote(g); promoted || err != nil {
			return err
		}
	}
}

// promote lets the candidate serve, in one step with the retirement of its
// predecessor; not while a process of it is missing.
func (f *fleet) promote(g *generation) (promoted bool, err error) {
	h := f.host
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.fault != nil {
		return false, g.fault
	}
	if len(g.live) < g.config.Processes {
		return false, nil
	}
	if f.current.role == serving {
		f.retire(f.current, retired)
	}
	g.role = serving
	f.current, f.next, f.manifest = g, nil, g.manifest
	h.claimTypes(f)
	return true, nil
}

// reject has a candidate finish what it has.
func (f *fleet) reject(g *generation) {
	h := f.host
	h.mu.Lock()
	defer h.mu.Unlock()
	f.mu.Lock()
	defer f.mu.Unlock()
	f.next = nil
	f.retire(g, rejected)
	h.claimTypes(f)
}

// endSwap records how it went.
func (f *fleet) endSwap(p plan, s job.PluginSwap, g *generation, err error) job.PluginSwap {
	s.EndedAt, s.Result, s.Reason = time.Now(), job.SwapPromoted, p.reason
	if err != nil {
		s.Result, s.Reason = job.SwapRolledBack, err.Error()
	}
	switch {
	case errors.As(err, new(refused)):
		s.Result = job.SwapRefused
	case errors.As(err, new(abandoned)):
		s.Result = job.SwapAbandoned
	}
	f.mu.Lock()
	if g != nil {
		s.To = g.version()
		if g.tried.candidate.Ended > 0 {
			s.Trial = new(g.tried.shown())
		}
	}
	shown := s
	f.lastSwap, f.breakOff = &shown, nil
	f.mu.Unlock()
	log := f.log.With("trigger", string(p.trigger), "swap", string(s.Result), "took", s.EndedAt.Sub(s.BegunAt),
		"from_version", s.From.Version, "from_digest", s.From.Digest, "plugin_version", s.To.Version, "digest", s.To.Digest)
	if err != nil {
		log.Warn("plugin swap ended; the version that served stays", "reason", s.Reason)
	} else {
		log.Info("plugin swap ended; the new version serves", "reason", s.Reason)
	}
	f.host.signal()
	return s
}
