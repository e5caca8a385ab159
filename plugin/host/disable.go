package host

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/binary"
)

// disable stops the plugin. Its conductor does it.
func (f *fleet) disable() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disabled = true
	if f.current.role != serving {
		return
	}
	if f.rested = f.keptLocked(); f.rested == nil { // The one before it is still the last that served.
		f.rested, f.before = f.before, nil
	}
	f.retire(f.current, retired)
	f.log.Info("plugin disabled")
	f.host.signal()
}

// enable starts what stands under the configured path now; in the place of a
// version that was rolled back or refused, and without force, the one that served
// before. What served before is started though a swap of it to itself has failed. A
// version that is another than that one is on probation. Its conductor does it.
func (f *fleet) enable(force bool) error {
	f.mu.Lock()
	config, serves := f.config, f.current.role == serving
	f.mu.Unlock()
	if serves {
		return nil
	}
	pinned, err := binary.Pin(config.Path)
	if err != nil {
		return fmt.Errorf("plugin %s: %w", f.name, err)
	}
	f.passOver(nil)
	watched, spurned, leftOut := binary.NewWatch(config.Path, pinned.Info()), "", ""
	bad := pinned.Digest == f.spurned && config.launchesLike(f.spurnedAs)
	if bad && !force && !f.rested.is(pinned.Digest, config) {
		pinned.Close()
		if err := f.rested.stands(); err != nil {
			return fmt.Errorf("plugin %s: its file is %s, and %w; enable it by force to take it all the same", f.name, spurnedFile, err)
		}
		config, pinned = f.rested.config, f.rested.binary.Share()
		spurned, leftOut = f.spurned, "it is "+spurnedFile
		f.log.Warn("plugin file passed over; the version that served before is enabled", "error", leftOut)
	}
	f.watched, f.spurned = watched, spurned
	if f.rested != nil && !f.rested.is(pinned.Digest, config) {
		f.before, f.rested = f.rested, f.before
		f.before.until = time.Now().Add(f.settings.Probation)
	}
	f.rested.forget()
	f.rested = nil
	f.mu.Lock()
	defer f.mu.Unlock()
	f.disabled, f.leftOut = false, leftOut
	f.current = f.newGeneration(config, pinned, serving)
	f.current.enabled = true
	f.current.start()
	f.log.Info("plugin enabled", "digest", pinned.Digest)
	f.host.signal()
	return nil
}

// spurnedFile is what a file is that enable leaves out.
const spurnedFile = "the version that was rolled back or refused"

// is reports whether the version is the one with the digest, launched as the
// configuration says.
func (p *predecessor) is(digest string, config Config) bool {
	return p != nil && p.binary.Digest == digest && p.config.launchesLike(config)
}

// stands says why the version cannot serve again; nil when it can.
func (p *predecessor) stands() error {
	if p == nil {
		return errors.New("none has served before")
	}
	if _, err := p.binary.ToExecute(""); err != nil {
		return fmt.Errorf("the one before cannot be launched: %w", err)
	}
	return nil
}
