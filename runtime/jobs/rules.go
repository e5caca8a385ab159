package jobs

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-jobs/holdfast/internal/loop"
	"github.com/holdfast-jobs/holdfast/runtime/job"
	"github.com/holdfast-jobs/holdfast/runtime/metrics"
)

const (
	// rulesInterval bounds how stale the rules are when hints are lost: a pause is in
	// force everywhere within a second, or in a crowd within seconds.
	rulesInterval = 800 * time.Millisecond
	// rulesTimeout bounds one try to read them.
	rulesTimeout = 10 * time.Second
)

// rules are the limits and pauses as this process knows them.
type rules struct {
	store   Store
	cfg     Config
	metrics *metrics.Metrics
	hints   *Hints
	changed loop.Signal // others than the ones before are known
	pace    *Pace

	known   atomic.Pointer[job.Rules]
	loading sync.Mutex // so that what was read earlier never replaces what was read later
}

// Rules are the limits and pauses; nil before anything is known.
func (s *Service) Rules() *job.Rules { return s.rules.known.Load() }

// RulesChanged is the signal of the one loop in this process that acts on other rules. It
// is raised once they are in force.
func (s *Service) RulesChanged() loop.Signal { return s.rules.changed }

// LoadRules reads the limits and pauses, so that they are known before Run. It ends the
// pauses that are over.
func (s *Service) LoadRules(ctx context.Context) error {
	_, err := s.rules.load(ctx)
	return err
}

// FreshRules are the rules as the database has them now.
func (s *Service) FreshRules(ctx context.Context) (*job.Rules, error) {
	_, err := s.rules.load(ctx)
	return s.Rules(), err
}

// SlotsUsed returns how many jobs hold a slot of each of the gates: they run, or are about
// to.
func (s *Service) SlotsUsed(ctx context.Context, gates []job.Gate) (map[job.Gate]int, error) {
	return s.store.SlotsUsed(ctx, gates)
}

// load reads the rules, and reports whether others than before are known.
func (r *rules) load(ctx context.Context) (changed bool, err error) {
	r.loading.Lock()
	defer r.loading.Unlock()
	found, expired, err := r.store.Rules(ctx)
	if err != nil {
		return false, err
	}
	if changed = !found.Equal(r.known.Swap(found)); changed {
		r.changed.Raise()
		r.hints.Heard(job.GatesChanged).Raise()
	}
	if !expired {
		return changed, nil
	}
	ended, err := r.store.EndExpiredPauses(ctx)
	for _, pause := range ended {
		r.cfg.Log.Info("pause is over", slog.String("paused", pause.Scope.Of(pause.Name)))
	}
	if len(ended) > 0 {
		r.announce()
	}
	return changed, err
}

// announce tells others that the rules have changed, and whoever admits jobs that lanes
// were woken.
func (r *rules) announce() {
	r.hints.Send(job.RulesChanged)
	r.hints.Announce(job.GatesChanged)
}

// run reads the rules again when others have changed them, and every rulesInterval: a crowd
// takes turns, and whoever finds a change tells the others, in case nobody has.
func (r *rules) run(ctx context.Context, heard loop.Signal) {
	interval := min(r.cfg.PollInterval, rulesInterval)
	for ok := true; ok; ok = heard.Wait(ctx, r.pause(interval)) {
		try, cancel := context.WithTimeout(ctx, rulesTimeout)
		changed, err := r.load(try)
		cancel()
		if changed && r.pace.crowded() {
			r.hints.Send(job.RulesChanged)
		}
		r.metrics.Failed(metrics.OpRules, err)
		if err != nil && ctx.Err() == nil {
			r.cfg.Log.Warn("limits and pauses could not be read; those known stay in force", slog.Any("error", err))
			loop.Pause(ctx, loop.Jittered(interval))
		}
	}
}

// pause is the interval, or longer in a crowd that tells each other.
func (r *rules) pause(interval time.Duration) time.Duration {
	if r.pace.crowded() {
		return r.pace.Pause(job.RoleAPI, interval)
	}
	return interval
}

// changedHere puts a change that this process has just made in force here, and announces it.
// The change is stored: if it cannot be read back now, the loop does so later.
func (r *rules) changedHere(ctx context.Context) {
	if _, err := r.load(ctx); err != nil {
		r.hints.Heard(job.RulesChanged).Raise()
	}
	r.announce()
}

// SetLimit sets a limit, which is in force here when it returns, and elsewhere within a
// second. Errors: job.ErrConfigured if the configuration has set it.
func (s *Service) SetLimit(ctx context.Context, limit job.Limit) (job.Limit, error) {
	set, err := s.store.SetLimit(ctx, limit)
	if err == nil {
		s.rules.changedHere(ctx)
	}
	return set, err
}

// DeleteLimit deletes a limit. Errors: job.ErrConfigured if the configuration has set it,
// job.ErrNoLimit if there is none.
func (s *Service) DeleteLimit(ctx context.Context, scope job.LimitScope, name string) error {
	err := s.store.DeleteLimit(ctx, scope, name)
	if err == nil {
		s.rules.changedHere(ctx)
	}
	return err
}

// SyncLimits makes these limits the ones that the configuration sets. It logs each that this
// sets, changes or deletes.
func (s *Service) SyncLimits(ctx context.Context, limits []job.Limit) error {
	changed, err := s.store.SyncLimits(ctx, limits)
	if len(changed) > 0 {
		s.rules.changedHere(ctx)
	}
	if err != nil {
		return err
	}
	for _, limit := range changed {
		done := "limit set"
		if limit.Removed {
			done = "limit deleted"
		}
		s.cfg.Log.InfoContext(ctx, done, slog.String("limit", string(limit.Scope)+" "+limit.Name), slog.String("by", "configuration"))
	}
	return nil
}

// SetPause begins a pause, until its end or, if lasts is above zero, for that long from
// now. A pause of the same is replaced.
func (s *Service) SetPause(ctx context.Context, pause job.Pause, lasts time.Duration) (job.Pause, error) {
	set, err := s.store.SetPause(ctx, pause, lasts)
	if err == nil {
		s.rules.changedHere(ctx)
	}
	return set, err
}

// EndPause ends a pause. If there is none, the error is job.ErrNoPause.
func (s *Service) EndPause(ctx context.Context, scope job.PauseScope, name string) error {
	err := s.store.EndPause(ctx, scope, name)
	if err == nil {
		s.rules.changedHere(ctx)
	}
	return err
}

// DrainWorker asks a worker to take no more jobs. Errors: job.ErrNoWorker.
func (s *Service) DrainWorker(ctx context.Context, worker string) error {
	err := s.store.DrainWorker(ctx, worker)
	if err == nil {
		s.rules.changedHere(ctx)
	}
	return err
}

// ResumeWorker lets a worker take jobs again. Errors: job.ErrNoWorker.
func (s *Service) ResumeWorker(ctx context.Context, worker string) error {
	err := s.store.ResumeWorker(ctx, worker)
	if err == nil {
		s.rules.changedHere(ctx)
	}
	return err
}
