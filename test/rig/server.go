package rig

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/holdfast-jobs/holdfast/test/loopback"
)

// server is one process of an orchestrator.
type server struct {
	Client
	name        string // for errors
	binary, dir string
	settings    []string
	log         io.Writer
	// besides says that another process serves the API, which accepts jobs before the
	// plugins of this one are up.
	besides bool

	cmd   *exec.Cmd
	ended chan error
}

// settle gives the process an address of its own, and the operator's password unless the
// settings have one.
func (s *server) settle(ctx context.Context, password string) error {
	address, err := loopback.FreeAddress(ctx)
	if err != nil {
		return err
	}
	s.Client = Client{Address: address, Password: password}
	for _, setting := range s.settings {
		if given, ok := strings.CutPrefix(setting, "security.password="); ok {
			s.Password = given
		}
	}
	s.settings = append([]string{
		"server.address=" + address, "security.user=" + operator, "security.password=" + s.Password,
	}, s.settings...)
	return nil
}

func (s *server) start() error {
	args := []string{"serve"}
	for _, setting := range s.settings {
		args = append(args, "--set", setting)
	}
	// Not bound to a context: ShutDown or Kill end it.
	cmd := exec.Command(s.binary, args...) //nolint:noctx // see above
	cmd.Dir = s.dir
	cmd.Stdout, cmd.Stderr = s.log, s.log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	s.cmd, s.ended = cmd, ended
	go func() { ended <- cmd.Wait() }()
	return nil
}

func (s *server) pid() int { return s.cmd.Process.Pid }

func (s *server) awaitReady(ctx context.Context) error {
	for !s.ready(ctx) {
		select {
		case err := <-s.ended:
			s.cmd = nil
			return fmt.Errorf("%s ended at once: %w", s.name, err)
		case <-ctx.Done():
			return fmt.Errorf("%s did not become ready", s.name)
		case <-time.After(glance):
		}
	}
	return nil
}

// ready reports whether the process is ready, or waits only for its plugins besides another
// that serves the API.
func (s *server) ready(ctx context.Context) bool {
	err := s.Call(ctx, http.MethodGet, "/readyz", nil, http.StatusOK, nil)
	return err == nil || s.besides && strings.Contains(err.Error(), "the worker waits for its plugins")
}

// awaitKilled waits until the process has ended by a signal.
func (s *server) awaitKilled() error {
	err := <-s.ended
	s.cmd = nil
	if killed := new(exec.ExitError); !errors.As(err, &killed) {
		return fmt.Errorf("%s had ended before it was killed: %w", s.name, err)
	}
	return nil
}

// awaitEnd waits until the process has ended, and returns an error unless it exited with 0.
func (s *server) awaitEnd(ctx context.Context) error {
	select {
	case err := <-s.ended:
		s.cmd = nil
		if err != nil {
			return fmt.Errorf("%s: %w", s.name, err)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s did not end", s.name)
	}
}
