package bench

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"runtime/pprof"
	"sync"
)

// Probe lets the bench see into one of the processes that it measures.
type Probe struct {
	// Of is what the process is: orchestrator or handlers.
	Of string
	// Directory gets the socket on which the bench asks, and the profiles.
	Directory string
	// CPU and Memory say which profiles are made.
	CPU, Memory bool
}

// What the processes are.
const (
	ofOrchestrator = "orchestrator"
	ofHandlers     = "handlers"
)

// Endings of the names of files that a probe leaves in its directory.
const (
	socketEnding = ".sock"
	cpuEnding    = ".cpu.pprof"
	memoryEnding = ".memory.pprof"
)

// order is what the bench asks of a probe.
type order string

const (
	// report asks what was allocated.
	report order = "report"
	// beginProfiles forgets what the profile of the processor has until then.
	beginProfiles order = "begin"
	// endProfiles ends and writes the profiles.
	endProfiles order = "end"
)

// reply is how a probe answers. Error is empty if it did what it was asked.
type reply struct {
	allocated
	Error string
}

// listening is a Probe that works.
type listening struct {
	Probe
	socket net.Listener

	mu  sync.Mutex
	cpu *os.File // nil while no profile is made
}

// Listen answers the bench until the caller closes it. The profile of the processor begins at
// once, because the bench finds handlers only when they listen.
func (p Probe) Listen() (io.Closer, error) {
	l := &listening{Probe: p}
	began := l.begin()
	socket, err := net.Listen("unix", l.path(socketEnding)) //nolint:noctx // listening does not wait
	if err != nil {
		return nil, errors.Join(err, began)
	}
	l.socket = socket
	go l.serve()
	return socket, began
}

// path is that of a file of this process.
func (l *listening) path(ending string) string {
	return filepath.Join(l.Directory, fmt.Sprintf("%s-%d%s", l.Of, os.Getpid(), ending))
}

func (l *listening) serve() {
	for {
		conn, err := l.socket.Accept()
		if err != nil {
			return
		}
		var asked order
		err = json.NewDecoder(conn).Decode(&asked)
		if err == nil {
			err = l.obey(asked)
		}
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		answer := reply{allocated: allocated{float64(m.Mallocs), float64(m.TotalAlloc)}}
		if err != nil {
			answer.Error = err.Error()
		}
		_ = json.NewEncoder(conn).Encode(answer)
		_ = conn.Close()
	}
}

func (l *listening) obey(asked order) error {
	switch asked {
	case report:
		return nil
	case beginProfiles:
		return errors.Join(l.end(), l.begin())
	case endProfiles:
		return errors.Join(l.end(), l.writeMemory())
	default:
		return fmt.Errorf("asked for %q", asked)
	}
}

func (l *listening) begin() error {
	if !l.CPU {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	file, err := os.Create(l.path(cpuEnding))
	if err != nil {
		return err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return errors.Join(err, file.Close())
	}
	l.cpu = file
	return nil
}

func (l *listening) end() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.cpu == nil {
		return nil
	}
	pprof.StopCPUProfile()
	file := l.cpu
	l.cpu = nil
	return file.Close()
}

// writeMemory writes what was allocated since the process started.
func (l *listening) writeMemory() error {
	if !l.Memory {
		return nil
	}
	file, err := os.Create(l.path(memoryEnding))
	if err != nil {
		return err
	}
	return errors.Join(pprof.Lookup("allocs").WriteTo(file, 0), file.Close())
}
