//go:build linux

package census

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-jobs/holdfast/test/chaos/history"
	"github.com/holdfast-jobs/holdfast/test/chaos/stage"
	"github.com/holdfast-jobs/holdfast/test/rig"
)

// answersWithin is how long an orchestrator may take to answer, until it is asked again.
const answersWithin = 10 * time.Second

// Usage counts what each orchestrator and its plugins use, besides the orchestrators' sessions of
// the database, whose number is given. It fails if an orchestrator does not say how many
// goroutines and connections it has.
func (c *Census) Usage(ctx context.Context, sessions int) ([]history.Usage, error) {
	all := []history.Usage{{Name: history.DatabaseUsage, Connections: sessions}}
	var problems error
	for _, o := range c.orchestrators {
		u := history.Usage{Name: o.Name, Files: files(o.Process().PID)}
		var err error
		if u.Goroutines, u.Connections, err = measured(ctx, o); err != nil {
			problems = errors.Join(problems, fmt.Errorf("metrics of %s: %w", o.Name, err))
		}
		for _, p := range rig.Descendants(o.Process().PID) {
			if p.Alive() {
				u.Descendants++
			}
		}
		all = append(all, u)
		for _, plugin := range o.Plugins {
			for _, p := range o.Processes(plugin) {
				all = append(all, history.Usage{Name: o.Name + " " + plugin, Files: files(p.PID), Descendants: len(rig.Descendants(p.PID))})
			}
		}
	}
	return all, problems
}

// Connections are the sessions that the database has of the orchestrators, and how many
// connections these have.
func Connections(all []history.Usage) (sessions, pooled int) {
	for _, u := range all {
		if u.Name == history.DatabaseUsage {
			sessions += u.Connections
		} else {
			pooled += u.Connections
		}
	}
	return sessions, pooled
}

// listeners are connections of an orchestrator that are in no pool: one listens.
const listeners = 1

// measured asks the orchestrator for its metrics: how many goroutines it has, and how many
// connections in all of its pools and beside them.
func measured(ctx context.Context, o *stage.Orchestrator) (goroutines, connections int, err error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+o.Address+"/metrics", nil)
	if err != nil {
		return 0, 0, err
	}
	request.Header.Set("Accept", "text/plain")
	request.SetBasicAuth("admin", o.Password)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, 0, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, 0, err
	}
	for line := range bytes.Lines(text) {
		name, number, _ := strings.Cut(string(bytes.TrimSpace(line)), " ")
		count, wrong := 0, error(nil)
		switch {
		case name == "go_goroutines":
			goroutines, wrong = strconv.Atoi(number)
		case strings.HasPrefix(name, "holdfast_pool_connections{"):
			count, wrong = strconv.Atoi(number)
			connections += count
		}
		if wrong != nil {
			return 0, 0, fmt.Errorf("metric %s: %w", name, wrong)
		}
	}
	if goroutines == 0 || connections == 0 {
		return 0, 0, fmt.Errorf("metrics answered %s, with %d goroutines and %d connections", answer.Status, goroutines, connections)
	}
	return goroutines, connections + listeners, nil
}

func files(pid int) int {
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return 0
	}
	return len(entries)
}

// Sockets lists directories of plugins' sockets below the directory for temporary files
// that no process uses any more.
func Sockets(temporary string, orchestrators []*stage.Orchestrator) ([]string, error) {
	found, err := filepath.Glob(filepath.Join(temporary, "hf-*"))
	if err != nil {
		return nil, err
	}
	var used []string
	for _, o := range orchestrators {
		for _, keeper := range o.Keepers("") {
			used = append(used, keeper.Args()...)
		}
	}
	return slices.DeleteFunc(found, func(dir string) bool {
		return slices.ContainsFunc(used, func(arg string) bool { return strings.HasPrefix(arg, dir) })
	}), nil
}

// Strays lists processes of handlers, and what these have started, wherever they are by now:
// all have inherited where to leave their effects.
func Strays(effects string) []rig.Process {
	var found []rig.Process
	environments, _ := filepath.Glob("/proc/[0-9]*/environ") // only a bad pattern is an error
	for _, path := range environments {
		text, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(text, []byte("EFFECTS="+effects+"/")) {
			continue
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			continue
		}
		if p, err := rig.ProcessOf(pid); err == nil && p.Alive() {
			found = append(found, p)
		}
	}
	return found
}

// Doctor runs the product's own diagnosis.
func Doctor(ctx context.Context, binary string, o *stage.Orchestrator) (findings []string, code int) {
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, "doctor")
	cmd.Dir = o.Dir
	cmd.Env = append(os.Environ(), "HOLDFAST_SERVER=http://"+o.Address, "HOLDFAST_USER=admin", "HOLDFAST_PASSWORD="+o.Password)
	said, err := cmd.CombinedOutput()
	for line := range bytes.Lines(said) {
		if text := strings.TrimSpace(string(line)); text != "" && !strings.HasPrefix(text, "ok ") && !strings.HasPrefix(text, "SEVERITY") {
			findings = append(findings, text)
		}
	}
	if cmd.ProcessState == nil {
		return append(findings, err.Error()), -1
	}
	return findings, cmd.ProcessState.ExitCode()
}

// AwaitPlugins waits until every plugin of the orchestrator is up.
func AwaitPlugins(ctx context.Context, o *stage.Orchestrator) error {
	for {
		one, cancel := context.WithTimeout(ctx, answersWithin)
		var found struct {
			Plugins []struct{ Name, State string }
		}
		err := o.Call(one, http.MethodGet, "/debug/plugins", nil, http.StatusOK, &found)
		cancel()
		up := func(p struct{ Name, State string }) bool { return p.State != "up" }
		if err == nil && len(found.Plugins) == len(o.Plugins) && !slices.ContainsFunc(found.Plugins, up) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("plugins of %s are not up: %w (%v)", o.Name, ctx.Err(), found.Plugins)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
