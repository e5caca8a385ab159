package host

import (
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// predecessor is a version that has served, kept for as long as its successor is
// on probation. A nil one is none.
type predecessor struct {
	config Config
	binary *binary.File
	until  time.Time
}

func (p *predecessor) forget() {
	if p != nil {
		p.binary.Close()
	}
}

// keep returns the version that serves, for the probation of the one that is about
// to take its place: nil for one that was never up, or is replaced by itself or
// for its failures. It is for whoever calls to forget.
func (f *fleet) keep(trigger job.SwapTrigger) *predecessor {
	f.mu.Lock()
	defer f.mu.Unlock()
	if trigger == job.SwapByRestart || trigger == job.SwapByFailure {
		return nil
	}
	return f.keptLocked()
}

// keptLocked is the version that serves; nil for one that was never up.
func (f *fleet) keptLocked() *predecessor {
	g := f.current
	if g.manifest == nil {
		return nil
	}
	return &predecessor{config: g.config, binary: g.binary.Share(), until: time.Now().Add(f.settings.Probation)}
}

// endProbation forgets the predecessor when its time is over.
func (f *fleet) endProbation() {
	if f.before != nil && time.Now().After(f.before.until) {
		f.before.forget()
		f.before = nil
	}
}

// reconsider goes back to the predecessor of a version that does not stay up. What
// no trial has shown, for want of work, shows soon after.
func (f *fleet) reconsider() {
	f.endProbation()
	f.mu.Lock()
	g := f.current
	fails := g.keepsFailing()
	version, lastError := g.version(), f.lastError
	since := "its promotion"
	if g.enabled {
		since = "it was enabled"
	}
	f.mu.Unlock()
	if f.before == nil || !fails {
		return
	}
	f.swap(plan{
		trigger: job.SwapByFailure, config: f.before.config, binary: f.before.binary.Share(), force: true,
		reason: fmt.Sprintf("%s kept failing soon after %s: %s", inShort(version), since, lastError),
	})
	f.spurn(g)
}

// inShort names a version, by its digest when it was never up to tell another name.
func inShort(v job.PluginVersion) string {
	if v.Version == "" {
		return fmt.Sprintf("the version with the SHA-256 %.12s…", v.Digest)
	}
	return fmt.Sprintf("version %q", v.Version)
}
