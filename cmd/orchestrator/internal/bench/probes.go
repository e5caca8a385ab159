package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
)

// allocated is what processes have taken from Go's heap since their start.
type allocated struct {
	Objects, Bytes float64
}

func (a allocated) since(before allocated) allocated {
	return allocated{a.Objects - before.Objects, a.Bytes - before.Bytes}
}

// allocatedIn adds up what the processes of a kind, whose probes are in the directory, have
// allocated.
func allocatedIn(ctx context.Context, directory, of string) (allocated, error) {
	return tell(ctx, directory, of, report)
}

// tell orders something of all probes in the directory of processes of a kind.
func tell(ctx context.Context, directory, of string, asked order) (sum allocated, err error) {
	sockets, err := filepath.Glob(filepath.Join(directory, of+"-*"+socketEnding))
	if err != nil {
		return sum, err
	}
	for _, socket := range sockets {
		answer, err := ask(ctx, socket, asked)
		if errors.Is(err, syscall.ECONNREFUSED) {
			continue // The process has not begun to listen, or has ended.
		}
		if err == nil && answer.Error != "" {
			err = errors.New(answer.Error)
		}
		if err != nil {
			return sum, fmt.Errorf("%s: %w", of, err)
		}
		sum.Objects += answer.Objects
		sum.Bytes += answer.Bytes
	}
	return sum, nil
}

func ask(ctx context.Context, socket string, asked order) (answer reply, err error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return answer, err
	}
	defer conn.Close()
	if err := json.NewEncoder(conn).Encode(asked); err != nil {
		return answer, err
	}
	return answer, json.NewDecoder(conn).Decode(&answer)
}

// Profiles are the directories that get profiles for pprof, of each measured phase and process;
// empty for none.
type Profiles struct {
	CPU, Memory string
}

// prepare makes the directories.
func (p Profiles) prepare() error {
	for _, directory := range []string{p.CPU, p.Memory} {
		if directory == "" {
			continue
		}
		if err := os.MkdirAll(directory, 0o755); err != nil { //nolint:gosec // profiles are no secret
			return err
		}
	}
	return nil
}

var notInNames = regexp.MustCompile(`[^a-z0-9]+`)

// collect moves the profiles of all processes that have ended them out of the directory of their
// probes. The name says what was measured, such as "workoff, backlog of 1000, run 2".
func (p Profiles) collect(directory, name string) error {
	name = strings.Trim(notInNames.ReplaceAllString(strings.ToLower(name), "-"), "-")
	for _, of := range []string{ofOrchestrator, ofHandlers} {
		for ending, to := range map[string]string{cpuEnding: p.CPU, memoryEnding: p.Memory} {
			if to == "" {
				continue
			}
			made, err := filepath.Glob(filepath.Join(directory, of+"-*"+ending))
			if err != nil {
				return err
			}
			for i, from := range made {
				process := of
				if i > 0 {
					process += strconv.Itoa(i + 1)
				}
				if err := move(from, filepath.Join(to, name+"-"+process+ending)); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// move also works between file systems.
func move(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	if err := os.WriteFile(to, content, 0o644); err != nil { //nolint:gosec // profiles are no secret
		return err
	}
	return os.Remove(from)
}
