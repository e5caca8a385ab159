package host

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	v1 "github.com/holdfast-jobs/holdfast/api/v1"
	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// versioned is a plugin whose binary can be replaced.
type versioned struct {
	t    *testing.T
	path string
}

func newVersioned(t *testing.T) *versioned {
	return &versioned{t: t, path: filepath.Join(t.TempDir(), "plugin")}
}

// install renames a version with the flags to the path, as a deployment does.
func (v *versioned) install(flags ...string) {
	v.t.Helper()
	text, err := os.ReadFile(hostile)
	require.NoError(v.t, err)
	text = fmt.Appendf(text, "\nhostile flags: %s", strings.Join(flags, " "))
	v.write(text)
}

// script puts a script at the path that executes the test plugin.
func (v *versioned) script(flags ...string) {
	v.t.Helper()
	v.write(fmt.Appendf(nil, "#!/bin/sh\nexec %s %s\n", hostile, strings.Join(flags, " ")))
}

func (v *versioned) write(text []byte) {
	v.t.Helper()
	// A child that is forked during the write has the file open until it executes, and
	// then the file is busy.
	syscall.ForkLock.RLock()
	err := os.WriteFile(v.path+".new", text, 0o755)
	syscall.ForkLock.RUnlock()
	require.NoError(v.t, err)
	require.NoError(v.t, os.Rename(v.path+".new", v.path))
}

// config watches the file and tries new versions for a moment.
func (v *versioned) config() Config {
	config := misbehaving("plugin")
	config.Path, config.Watch = v.path, true
	config.Canary = Canary{Share: 0.3, Period: 300 * time.Millisecond}
	return config
}

// serve starts a host in which the version that is installed serves.
func (v *versioned) serve(change ...func(*Config)) *testHost {
	v.t.Helper()
	config := v.config()
	for _, c := range change {
		c(&config)
	}
	h := startHost(v.t, nil, config)
	h.awaitUp("plugin", 1)
	return h
}

// versionOne starts a host in which version 1 of a plugin serves.
func versionOne(t *testing.T, change ...func(*Config)) (*versioned, *testHost) {
	t.Helper()
	v := newVersioned(t)
	v.install("-version", "1")
	return v, v.serve(change...)
}

// promoting lets new versions serve without a trial.
func promoting(c *Config) { c.Canary.Period = 0 }

// awaitSwap waits for the end of a swap that began after the previous one.
func (h *testHost) awaitSwap(before *v1.PluginSwap) v1.PluginSwap {
	h.t.Helper()
	var last *v1.PluginSwap
	h.eventually(func() bool {
		last = h.status("plugin").LastSwap
		return last != nil && last.Result != "" && (before == nil || last.BegunAt.After(before.BegunAt))
	}, "a swap ends")
	return *last
}

func (h *testHost) swap(force bool) v1.PluginSwap {
	h.t.Helper()
	s, err := h.Swap(h.t.Context(), "plugin", force)
	require.NoError(h.t, err)
	return s
}

// load keeps attempts running until it is stopped.
type load struct {
	started, succeeded, onTrial atomic.Int64
	mu                          sync.Mutex
	others                      []job.Outcome
	stop                        chan struct{}
	workers                     sync.WaitGroup
}

func (h *testHost) load(workers int) *load {
	l := &load{stop: make(chan struct{})}
	for worker := range workers {
		random := rand.New(rand.NewPCG(uint64(worker), 1))
		l.workers.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				r := newReport()
				if _, err := h.Start("plugin", assignment(fmt.Sprintf(`{"do":"sleep","ms":%d}`, random.IntN(4))), r); err != nil {
					time.Sleep(time.Millisecond)
					continue
				}
				l.started.Add(1)
				l.count(<-r.done)
			}
		})
	}
	return l
}

func (l *load) count(outcome job.Outcome) {
	switch {
	case outcome.Kind == job.Success:
		l.succeeded.Add(1)
	case outcome.Kind == job.Released && outcome.Code == message.CodeCanary:
		l.onTrial.Add(1)
	default:
		l.mu.Lock()
		defer l.mu.Unlock()
		l.others = append(l.others, outcome)
	}
}

// end stops the load, and checks that every attempt succeeded or was not charged.
func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.workers.Wait()
	require.Empty(t, l.others, "an attempt was charged for a swap")
	require.Equal(t, l.started.Load(), l.succeeded.Load()+l.onTrial.Load())
}
