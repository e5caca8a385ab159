package host

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/child"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// fleet is one plugin: its processes and what is known of it.
type fleet struct {
	host     *Host
	config   Config
	settings Settings
	home     string
	log      *slog.Logger
	breaker  *breaker
	// limits says how those of the configuration are enforced.
	limits []Enforcement

	mu   sync.Mutex
	live []*process
	// alone counts the attempts that have, or wait for, a process of their
	// own.
	alone     int
	manifest  *manifest
	restarts  int
	crashes   int
	lastError string
}

// keepOneUp launches a process and serves it, again and again, until the host
// closes. Each process slot has its own.
func (f *fleet) keepOneUp() {
	closing := f.host.draining
	for f.breaker.admit(closing) == nil {
		p, err := f.launch(closing)
		if err != nil {
			f.launchFailed(err)
			f.breaker.release()
			continue
		}
		f.add(p)
		f.breaker.release()
		f.ended(p, p.serve())
	}
}

func (f *fleet) launchFailed(err error) {
	if f.host.draining.Err() != nil {
		return
	}
	if errors.As(err, new(refusal)) || errors.Is(err, child.ErrChecksum) {
		f.breaker.refuse()
	} else {
		f.breaker.fail()
	}
	f.log.Warn("plugin did not come up", "error", err, "broken", f.breaker.broken())
	f.note(err)
}

func (f *fleet) ended(p *process, cause error) {
	up := time.Since(p.upSince)
	log := f.log.With("pid", p.child.PID(), "up", up)
	if cause == nil || errors.Is(cause, errClosing) {
		log.Info("plugin process stopped")
		return
	}
	if up >= f.settings.Backoff.StableAfter {
		f.breaker.forgive()
	}
	if errors.Is(cause, errKilled) {
		f.breaker.pause()
	} else {
		f.breaker.fail()
		f.crashed()
	}
	log.Warn("plugin process ended", "error", cause, "broken", f.breaker.broken())
	f.note(fmt.Errorf("pid %d: %w", p.child.PID(), cause))
}

func (f *fleet) crashed() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.crashes++
}

func (f *fleet) note(err error) {
	f.mu.Lock()
	f.restarts++
	f.lastError = err.Error()
	f.mu.Unlock()
	f.host.signal()
}

func (f *fleet) add(p *process) {
	f.mu.Lock()
	f.live = append(f.live, p)
	f.mu.Unlock()
	f.log.Info("plugin process up", "pid", p.child.PID(), "version", p.manifest.version, "concurrency", p.capacity)
	f.host.signal()
}

func (f *fleet) remove(p *process) {
	f.mu.Lock()
	f.live = slices.DeleteFunc(f.live, func(other *process) bool { return other == p })
	f.mu.Unlock()
	f.host.signal()
}

// reserve takes a slot for an attempt of the type, of the process that has the
// fewest attempts; nil when none is free.
func (f *fleet) reserve(jobType string) *process {
	f.mu.Lock()
	defer f.mu.Unlock()
	var least *process
	for _, p := range f.live {
		if p.hasRoom(jobType) && (least == nil || p.inFlight < least.inFlight) {
			least = p
		}
	}
	if least != nil {
		least.take(jobType)
	}
	return least
}

// release frees a slot that was reserved and not used.
func (f *fleet) release(p *process, jobType string) {
	f.mu.Lock()
	p.free(jobType)
	f.mu.Unlock()
	f.host.signal()
}

// settle frees the slots of attempts that have ended.
func (f *fleet) settle(p *process, endings []ending) {
	if len(endings) == 0 {
		return
	}
	f.mu.Lock()
	for _, e := range endings {
		p.free(e.attempt.jobType)
	}
	f.mu.Unlock()
	f.host.signal()
}

// pool is the fleet's room; false when no process is up.
func (f *fleet) pool() (job.Pool, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.live) == 0 {
		return job.Pool{}, false
	}
	pool := job.Pool{Plugin: f.config.Name, Version: f.manifest.version, Types: slices.Clone(f.manifest.types)}
	for _, p := range f.live {
		p.addRoom(&pool)
	}
	if !f.breaker.holding() {
		pool.FreeAlone = maxAlone - f.alone
	}
	return pool, true
}

// agree takes the manifest for the fleet's own. As long as processes are up with
// another one it is refused: what a plugin serves would depend on the process.
func (f *fleet) agree(m *manifest) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.manifest != nil && f.manifest.equal(m) {
		return nil
	}
	if len(f.live) > 0 {
		return errors.New("its manifest differs from the one of the plugin's processes that are up")
	}
	f.manifest = m
	return nil
}

func (f *fleet) declared() *manifest {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.manifest
}
