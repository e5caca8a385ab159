package openapi

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

const (
	operator = "admin"
	// startWithin allows for making the database on a busy machine.
	startWithin = 2 * time.Minute
	// patience bounds every wait for a job.
	patience = 2 * time.Minute
	glance   = 50 * time.Millisecond
)

// server is the orchestrator that all tests talk to, with its embedded PostgreSQL and
// the built-in handlers.
var server struct {
	url      string
	password string
}

func TestMain(m *testing.M) {
	code, err := withServer(m.Run)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(code)
}

// withServer runs the tests with a running server.
func withServer(run func() int) (int, error) {
	bin, err := filepath.Abs("../../bin/openapi")
	if err != nil {
		return 0, err
	}
	build := exec.Command("go", "build", "-C", "../..", "-o", bin+"/", "./cmd/orchestrator", "./cmd/handlers") //nolint:noctx // limited by the test's own deadline
	if output, err := build.CombinedOutput(); err != nil {
		return 0, fmt.Errorf("build: %w\n%s", err, output)
	}
	dir, err := os.MkdirTemp("", "holdfast-openapi-")
	if err != nil {
		return 0, err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	// As root, PostgreSQL runs as another user. If that user cannot enter the directory,
	// the data goes elsewhere and stays.
	if err := os.Chmod(dir, 0o755); err != nil {
		return 0, err
	}
	address, err := freeAddress()
	if err != nil {
		return 0, err
	}
	server.url, server.password = "http://"+address, rand.Text()

	var log bytes.Buffer
	orchestrator := exec.Command(filepath.Join(bin, "orchestrator"), "serve", //nolint:noctx // ended by a signal
		"--set", "server.address="+address, "--set", "security.user="+operator, "--set", "security.password="+server.password,
		"--set", "embedded.data_dir="+filepath.Join(dir, "postgres"),
		"--set", "plugins.0.name=builtin", "--set", "plugins.0.path="+filepath.Join(bin, "handlers"))
	orchestrator.Dir, orchestrator.Stdout, orchestrator.Stderr = dir, &log, &log
	if err := orchestrator.Start(); err != nil {
		return 0, err
	}
	ended := make(chan error, 1)
	go func() { ended <- orchestrator.Wait() }()
	if err := awaitReady(ended); err != nil {
		_ = orchestrator.Process.Kill()
		return 0, fmt.Errorf("start the orchestrator: %w\n%s", err, log.String())
	}
	code := run()
	if err := errors.Join(orchestrator.Process.Signal(syscall.SIGTERM), <-ended); err != nil {
		return 0, fmt.Errorf("stop the orchestrator: %w\n%s", err, log.String())
	}
	return code, nil
}

// freeAddress is one on which a program can listen soon: connections go out from
// 127.0.0.1, so none of them takes a port of 127.0.0.2 before the program does.
func freeAddress() (string, error) {
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.2:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}

func awaitReady(ended <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.url+"/readyz", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(request)
		if err == nil {
			_ = answer.Body.Close()
			if answer.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case err := <-ended:
			return fmt.Errorf("it has ended: %w", err)
		case <-ctx.Done():
			return errors.New("it is not ready in time")
		case <-time.After(glance):
		}
	}
}
