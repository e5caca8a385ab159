package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/holdfast-jobs/holdfast/api"
	"github.com/holdfast-jobs/holdfast/cmd/orchestrator/internal/config"
	"github.com/holdfast-jobs/holdfast/runtime/job"
)

// reloading is a program whose handlers are a stand-in: each configuration that is
// put into effect is sent.
func reloading(t *testing.T, directory string, starting func()) (*serving, <-chan config.Config) {
	t.Helper()
	reloaded := make(chan config.Config, 1)
	s := serveAssembled(t, directory, func(closed chan struct{}) (*assembly, error) {
		starting()
		return &assembly{
			api:    api.Config{Jobs: pingable{}, Roles: job.AllRoles()},
			run:    func(ctx, _ context.Context) error { <-ctx.Done(); return nil },
			reload: func(cfg config.Config) error { reloaded <- cfg; return nil },
			close:  func(context.Context) { close(closed) },
		}, nil
	})
	t.Cleanup(func() {
		s.cancel()
		s.exit(t)
	})
	return s, reloaded
}

func next(t *testing.T, s *serving, reloaded <-chan config.Config) config.Config {
	t.Helper()
	select {
	case cfg := <-reloaded:
		return cfg
	case <-time.After(longWait):
		t.Fatalf("no configuration is put into effect:\n%s", s.log)
		return config.Config{}
	}
}

const oneHandler = "plugins: [{name: one, path: bin/one}]\n"

func TestAHangupDuringTheStartTakesEffectAfterIt(t *testing.T) {
	s, reloaded := reloading(t, t.TempDir(), func() { signalSelf(t, syscall.SIGHUP) })
	require.Empty(t, next(t, s, reloaded).Plugins)
}

func TestAMissingConfigurationChangesNoPlugin(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"no longer exists":                       os.Remove,
		"no longer has a plugins section; write": func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"no longer has a plugins section":        func(file string) error { return os.WriteFile(file, []byte("plugins:\n"), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			directory := t.TempDir()
			file := filepath.Join(directory, "config.yaml")
			require.NoError(t, os.WriteFile(file, []byte(oneHandler), 0o600))
			s, reloaded := reloading(t, directory, func() {})
			s.log.await(t, "listening")
			require.NoError(t, spoil(file))
			signalSelf(t, syscall.SIGHUP)
			record := s.log.await(t, "the configuration was not reloaded; everything stays as it is")
			require.Contains(t, record["error"], name)

			require.NoError(t, os.WriteFile(file, []byte("plugins: []\n"), 0o600))
			signalSelf(t, syscall.SIGHUP)
			require.Empty(t, next(t, s, reloaded).Plugins, "that is a wish")
		})
	}
}

func TestAHangupNamesKeysThatNeedARestart(t *testing.T) {
	directory := t.TempDir()
	file := filepath.Join(directory, "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(oneHandler), 0o600))
	s, reloaded := reloading(t, directory, func() {})
	s.log.await(t, "listening")
	signalSelf(t, syscall.SIGHUP)
	require.Len(t, next(t, s, reloaded).Plugins, 1)
	s.log.await(t, "configuration reloaded")
	require.NoError(t, os.WriteFile(file, []byte(oneHandler+"worker: {concurrency: 7, ageing: 5m}\njobs: {types: {A: {timeout: 1s}}}\n"), 0o600))
	signalSelf(t, syscall.SIGHUP)
	next(t, s, reloaded)
	const told = "changed settings take effect only after a restart"
	require.Equal(t, "worker.concurrency, worker.ageing, jobs.types", s.log.await(t, told)["keys"])
	require.Equal(t, 1, strings.Count(s.log.String(), told), "none at the first")
}

func TestAnotherFileIsNoReplacement(t *testing.T) {
	require.ErrorContains(t, mayFollow(config.Config{Source: "/a"}, config.Config{Source: "/b"}), "would be /b, and was /a")
	require.NoError(t, mayFollow(config.Config{}, config.Config{Source: "/b"}))
}
