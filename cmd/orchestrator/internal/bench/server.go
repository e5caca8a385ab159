package bench

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// For each orchestrator of the process.
	startWithin = time.Minute
	stopWithin  = 2 * time.Minute
	// keptLines is how many lines of the log an error shows.
	keptLines = 20
	// probesDirectory has the sockets of the probes, and the profiles until they are collected.
	probesDirectory = "probes"
)

// server is a process with one orchestrator, or with several of a fleet.
type server struct {
	process *exec.Cmd
	// directory is its working directory, without a configuration file.
	directory string
	// addresses are those of the orchestrators' APIs.
	addresses []string
	// listening is when all were reachable and work began.
	listening time.Time
	ended     chan error

	mu   sync.Mutex
	tail []string
}

// startServer starts the program with arguments in a directory, which stop removes, and returns
// when so many orchestrators work.
func startServer(ctx context.Context, program, directory string, count int, arguments, settings []string) (*server, error) {
	err := os.Mkdir(filepath.Join(directory, probesDirectory), 0o700)
	var s *server
	if err == nil {
		s, err = launch(ctx, program, directory, count, arguments, settings)
	}
	if err != nil {
		_ = os.RemoveAll(directory)
	}
	return s, err
}

func launch(ctx context.Context, program, directory string, count int, arguments, settings []string) (*server, error) {
	for _, setting := range settings {
		arguments = append(arguments, "--set", setting)
	}
	s := &server{directory: directory, ended: make(chan error, 1)}
	s.process = exec.Command(program, arguments...) //nolint:noctx // ended by stop
	s.process.Dir = directory
	// Without the user's own configuration.
	s.process.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "HOLDFAST_") })
	s.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the bench.
	log, err := s.process.StderrPipe()
	if err != nil {
		return nil, err
	}
	if err := s.process.Start(); err != nil {
		return nil, err
	}
	up := make(chan string, count)
	go func() {
		s.read(log, up)
		s.ended <- s.process.Wait()
	}()
	timeout := time.NewTimer(startWithin * time.Duration(count))
	defer timeout.Stop()
	for len(s.addresses) < count {
		select {
		case address := <-up:
			s.addresses = append(s.addresses, address)
			continue
		case err := <-s.ended:
			s.ended <- err
			return nil, s.failure(errors.New("the orchestrator did not start"))
		case <-timeout.C:
			err = errors.New("the orchestrator did not start in time")
		case <-ctx.Done():
			err = ctx.Err()
		}
		return nil, s.failure(errors.Join(err, s.process.Process.Kill()))
	}
	s.listening = time.Now()
	return s, nil
}

// address is that of the API of the only orchestrator.
func (s *server) address() string { return s.addresses[0] }

// read reads the log, and sends the address of each API when it listens.
func (s *server) read(log io.Reader, up chan<- string) {
	lines := bufio.NewScanner(log)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		s.mu.Lock()
		s.tail = append(s.tail, lines.Text())
		s.tail = s.tail[max(0, len(s.tail)-keptLines):]
		s.mu.Unlock()
		var record struct{ Msg, URL string }
		if json.Unmarshal(lines.Bytes(), &record) == nil && record.Msg == "listening" {
			if found, err := url.Parse(record.URL); err == nil {
				up <- found.Host
			}
		}
	}
	_, _ = io.Copy(io.Discard, log)
}

// failure adds the end of the log to an error.
func (s *server) failure(err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return fmt.Errorf("%w; its log ends with:\n%s", err, strings.Join(s.tail, "\n"))
}

func (s *server) pid() int { return s.process.Process.Pid }

func (s *server) probes() string { return filepath.Join(s.directory, probesDirectory) }

// alive returns an error if the orchestrator has ended by itself.
func (s *server) alive() error {
	select {
	case err := <-s.ended:
		s.ended <- err
		return s.failure(errors.New("the orchestrator has ended"))
	default:
		return nil
	}
}

// stop shuts the orchestrator down cleanly.
func (s *server) stop() error {
	defer func() { _ = os.RemoveAll(s.directory) }()
	if err := s.process.Process.Signal(syscall.SIGTERM); err != nil {
		return s.failure(err)
	}
	select {
	case err := <-s.ended:
		if err != nil {
			return s.failure(fmt.Errorf("the orchestrator: %w", err))
		}
		return nil
	case <-time.After(stopWithin * time.Duration(len(s.addresses))):
		_ = s.process.Process.Kill()
		<-s.ended //nolint:errcheck // it was killed
		return s.failure(errors.New("the orchestrator did not stop"))
	}
}
