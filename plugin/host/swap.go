package host

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/connection"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// plan is a swap to carry out.
type plan struct {
	trigger job.SwapTrigger
	config  Config
	// binary is what to start; nil for the file at the path. The swap closes it.
	binary *binary.File
	// force skips the comparison of the manifests.
	force bool
	// reason says why the plugin swaps, for SwapByFailure; plainReason does without what a
	// process has printed.
	reason, plainReason string
	// actor is who asked for the swap; empty if nobody did, or if that is not known.
	actor string
	// begun receives the swap when it begins; nil if nobody waits for that.
	begun chan<- v1.PluginSwap
}

// These errors say why a new version does not serve. Any other error is the version's
// own fault, and the swap is rolled back.
type (
	// refused: it may not serve.
	refused struct{ error }
	// abandoned: it is not known whether it can serve.
	abandoned struct{ error }
)

func (r refused) Unwrap() error   { return r.error }
func (a abandoned) Unwrap() error { return a.error }

var (
	errDisabled  = errors.New("the plugin is disabled")
	errDisabling = errors.New("the plugin was disabled")
	errNewer     = errors.New("its file has changed again while it was starting")
)

// An abandoned swap is tried again after swapAgainAfter if the file differs, and at once if it
// was abandoned for a newer file. compareTimeout bounds each query to the ledger.
const (
	compareTimeout = 10 * time.Second
	swapAgainAfter = 10 * time.Second
)

// swap starts another version beside the serving one, and promotes it if it proves
// itself. It returns when that is decided; the loser drains after that.
func (c *conductor) swap(p plan) v1.PluginSwap {
	ctx, stop := context.WithCancelCause(c.quitting)
	defer stop(nil)
	s := c.beginSwap(p, stop)
	file, err := p.file()
	var g *generation
	if err == nil {
		s.To.SHA256 = file.Digest
		g, err = c.nominate(p, file, s)
	}
	if err == nil {
		err = c.prove(ctx, g, p)
	}
	if err == nil {
		err = c.takeOver(ctx, g, p.trigger)
	}
	if err != nil && g != nil {
		c.reject(g)
	}
	s = c.endSwap(p, s, g, err)
	switch {
	case errors.Is(err, errNewer):
	case s.Result == job.SwapAbandoned:
		c.watchAgain = time.Now().Add(swapAgainAfter)
	case errors.Is(err, errDisabled) || file == nil || p.trigger == job.SwapByRestart:
		// The result says nothing about the file.
	default:
		c.watch.Know(file.Info())
		c.rejected = version{}
		if err != nil {
			c.rejected = version{config: p.config, digest: file.Digest, mode: file.Info().Mode()}
		}
	}
	if g == nil && file != nil {
		file.Close()
	}
	return s
}

// file is what the swap starts.
func (p plan) file() (*binary.File, error) {
	if p.binary != nil {
		return p.binary, nil
	}
	file, err := binary.Pin(p.config.Path)
	if err != nil {
		return nil, refused{err}
	}
	return file, nil
}

func (c *conductor) beginSwap(p plan, stop context.CancelCauseFunc) v1.PluginSwap {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stopSwap = stop
	s := v1.PluginSwap{Trigger: p.trigger, From: c.current.version(), BegunAt: time.Now().UTC()}
	c.lastSwap, c.plainReason = &s, ""
	if p.binary == nil {
		c.skipReason = ""
	}
	if p.begun != nil {
		p.begun <- s
	}
	return s
}

// nominate makes the file the candidate and begins to launch it.
func (c *conductor) nominate(p plan, file *binary.File, s v1.PluginSwap) (*generation, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.lastSwap = &s
	c.log.Info("plugin swap begins", "trigger", string(p.trigger), "from_digest", s.From.SHA256, "digest", file.Digest)
	c.record(job.PluginEvent{Event: job.PluginSwapBegan, Digest: file.Digest, Trigger: p.trigger, Actor: p.actor, Reason: p.plainReason}, v1.PluginSwap{
		Trigger: s.Trigger, From: s.From, To: s.To, BegunAt: s.BegunAt,
	})
	switch {
	case c.deploy.state == stateDisabling:
		return nil, abandoned{errDisabling}
	case c.deploy.state == stateDisabled:
		return nil, refused{errDisabled}
	case p.config.Checksum != "" && !strings.EqualFold(p.config.Checksum, file.Digest):
		return nil, refused{fmt.Errorf("%w: it is %s", binary.ErrChecksum, file.Digest)}
	}
	if err := c.deploy.fire(eventSwap); err != nil {
		return nil, abandoned{err}
	}
	c.next = c.newGeneration(p.config, file, candidate)
	c.next.start()
	return c.next, nil
}

// prove finds out whether the candidate can serve: it must start, accept the jobs that
// the serving version has accepted, and do as well as that version in a trial. There is
// no trial if no process of the serving version is up.
func (c *conductor) prove(ctx context.Context, g *generation, p plan) error {
	// A candidate that hangs may take minutes; do not wait for it once its file is replaced. With
	// a checksum, no other file may serve.
	var watch *binary.Watch
	if p.config.Watch && p.config.Checksum == "" && p.binary == nil {
		watch = binary.NewWatch(p.config.Path, g.binary.Info())
	}
	if err := c.await(ctx, g, 1, watch); err != nil {
		return err
	}
	c.mu.Lock()
	before, now := c.manifest, g.manifest
	c.mu.Unlock()
	if !p.force && before != nil {
		bounded, cancel := context.WithTimeout(ctx, compareTimeout)
		err := compare(bounded, c.settings.Ledger, before, now)
		cancel()
		if err != nil {
			return err
		}
	}
	bounded, cancel := context.WithTimeout(ctx, compareTimeout)
	err := c.host.claim(bounded, g)
	cancel()
	switch {
	case err != nil && connection.IsRefusal(err):
		return err
	case err != nil:
		return abandoned{err}
	}
	if err := c.await(ctx, g, g.config.Processes, watch); err != nil {
		return err
	}
	tried := p.trigger != job.SwapByRestart && p.trigger != job.SwapByFailure && p.config.Canary.Period > 0
	if tried && c.current.hasProcess() {
		if err := c.try(ctx, g, p.config.Canary.Period); err != nil {
			return err
		}
	}
	c.mu.Lock()
	err = c.deploy.fire(eventPass)
	c.mu.Unlock()
	return c.orWhyStopped(ctx, err)
}

// await waits until that many processes of the candidate are up. It returns the
// candidate's fault as soon as there is one, and abandons the candidate if the watch finds
// a file to try instead; the watch may be nil.
func (c *conductor) await(ctx context.Context, g *generation, processes int, watch *binary.Watch) error {
	looks := time.NewTicker(c.settings.WatchPeriod)
	defer looks.Stop()
	for {
		c.mu.Lock()
		fault, up := g.fault, len(g.live)
		c.mu.Unlock()
		switch {
		case fault != nil:
			return fault
		case up >= processes:
			return nil
		}
		select {
		case <-g.news:
		case now := <-looks.C:
			if watch != nil && c.isReplaced(g, watch, now) {
				return abandoned{errNewer}
			}
		case <-ctx.Done():
			return c.whyStopped(ctx)
		}
	}
}

// isReplaced reports whether another file than the candidate's is there, and would be tried.
func (c *conductor) isReplaced(g *generation, watch *binary.Watch, now time.Time) bool {
	if changed, err := watch.Changed(now, c.settings.WatchStable); !changed || err != nil {
		return false
	}
	digest, err := binary.Digest(watch.Path)
	if err != nil {
		return false
	}
	if digest == g.binary.Digest || c.wasRejected(digest, watch.Seen().Mode()) {
		watch.Know(watch.Seen())
		return false
	}
	return true
}

// orWhyStopped replaces the error by why the swap was stopped, if it was: a plugin that
// was disabled in the meantime takes no events of its swap.
func (c *conductor) orWhyStopped(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return c.whyStopped(ctx)
	}
	return err
}

func (c *conductor) whyStopped(ctx context.Context) error {
	if c.quitting.Err() != nil {
		return abandoned{errors.New("the plugin is being stopped")}
	}
	return abandoned{context.Cause(ctx)}
}

// takeOver promotes the candidate as soon as all its processes are up.
func (c *conductor) takeOver(ctx context.Context, g *generation, trigger job.SwapTrigger) error {
	for {
		if err := c.await(ctx, g, g.config.Processes, nil); err != nil {
			return err
		}
		promoted, err := c.promote(g, trigger)
		if promoted || err != nil {
			return c.orWhyStopped(ctx, err)
		}
	}
}

// promote makes the candidate the serving version and retires its predecessor, in one
// step. It does nothing while not all of the candidate's processes are up.
func (c *conductor) promote(g *generation, trigger job.SwapTrigger) (promoted bool, err error) {
	h := c.host
	h.mu.Lock()
	defer h.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	if g.fault != nil {
		return false, g.fault
	}
	if len(g.live) < g.config.Processes {
		return false, nil
	}
	if err := c.firePromotion(trigger); err != nil {
		return false, err
	}
	c.retire(c.current, retired)
	g.role, g.promoted = serving, true
	c.current, c.next, c.manifest = g, nil, g.manifest
	h.claimTypes(c.fleet)
	return true, nil
}

// firePromotion moves on to serving or probation, and keeps the serving version if
// there is a probation. The fleet is locked.
func (c *conductor) firePromotion(trigger job.SwapTrigger) error {
	if trigger == job.SwapByRestart {
		return c.deploy.fire(eventRestart)
	}
	event, kept := eventReplace, (*keptVersion)(nil)
	if trigger != job.SwapByFailure {
		kept = c.keepCurrent()
	}
	if kept != nil {
		event = eventPromote
	}
	if err := c.deploy.fire(event); err != nil {
		kept.close()
		return err
	}
	c.predecessor.close()
	c.predecessor, c.probationEnds = kept, time.Now().Add(c.settings.Probation)
	return nil
}

// reject removes the candidate, which gets time to finish its attempts.
func (c *conductor) reject(g *generation) {
	h := c.host
	h.mu.Lock()
	defer h.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.expect(c.deploy.fire(eventReject))
	c.next = nil
	c.retire(g, rejected)
	h.claimTypes(c.fleet)
}

// endSwap records the result.
func (c *conductor) endSwap(p plan, s v1.PluginSwap, g *generation, err error) v1.PluginSwap {
	ended := time.Now().UTC()
	s.EndedAt, s.Result, s.Reason = &ended, job.SwapPromoted, p.reason
	if err != nil {
		s.Result, s.Reason = job.SwapRolledBack, err.Error()
	}
	switch {
	case errors.As(err, new(refused)):
		s.Result = job.SwapRefused
	case errors.As(err, new(abandoned)):
		s.Result = job.SwapAbandoned
	}
	c.mu.Lock()
	if g != nil {
		s.To = g.version()
		if g.result.candidate.Ended > 0 {
			s.Trial = new(g.result.summary())
		}
	}
	shown := s
	c.lastSwap, c.stopSwap, c.plainReason = &shown, nil, p.plainReason
	if err != nil {
		c.plainReason = connection.WithoutOutput(err)
	}
	c.recordSwap(p, s, c.plainReason)
	c.mu.Unlock()
	log := c.log.With("trigger", string(p.trigger), "swap", string(s.Result), "took", ended.Sub(s.BegunAt),
		"from_version", s.From.Version, "from_digest", s.From.SHA256, "plugin_version", s.To.Version, "digest", s.To.SHA256)
	if err != nil {
		log.Warn("plugin swap ended; the version that served stays", "reason", s.Reason)
	} else {
		log.Info("plugin swap ended; the new version serves", "reason", s.Reason)
	}
	c.host.changed.Raise()
	return s
}
