package keeper

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"syscall"
	"time"
)

// Launch is what a keeper starts, besides the Files.
type Launch struct {
	Path string
	Args []string
	Env  []string
	// Credential is the user to run as; nil for the orchestrator's.
	Credential *syscall.Credential
	// Cgroup is the path of its own cgroup; empty for none.
	Cgroup string
	// Open means: execute Files.Binary instead of Path.
	Open bool
}

// order is what the orchestrator sends after the launch: the time to kill the process,
// in nanoseconds on the monotonic clock, or one of the constants.
type order int64

const (
	// never cancels the time to kill the process.
	never order = 0
	// mayCollect allows the exited process to be collected, which frees its id.
	mayCollect order = -1

	orderBytes = 8
)

func (o order) bytes() []byte { return binary.LittleEndian.AppendUint64(nil, uint64(o)) }

func orderOf(bytes []byte) order { return order(binary.LittleEndian.Uint64(bytes)) }

// report is what the keeper sends; exactly one field is set.
type report struct {
	// Started is the process id.
	Started int `json:",omitempty"`
	// Failed is why nothing was started.
	Failed *failure `json:",omitempty"`
	// Exited means that the process has exited, and is not collected yet.
	Exited bool `json:",omitempty"`
	// Ended says how the process ended, when its descendants are gone too.
	Ended *Ending `json:",omitempty"`
}

// Ending is how a process ended.
type Ending struct {
	// Status is the status from wait4.
	Status syscall.WaitStatus
	// Late means that it was killed at the time given to KillAt.
	Late bool
}

// failure is an error on its way to another process, where errors.Is still finds its
// number.
type failure struct {
	Text  string
	Errno syscall.Errno `json:",omitempty"`
}

func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	_ = errors.As(err, &f.Errno)
	return f
}

func (f *failure) Error() string { return f.Text }

func (f *failure) Unwrap() error { return f.Errno }

// maxLaunch is larger than what a system accepts as arguments and environment.
const maxLaunch = 64 << 20

func writeLaunch(w io.Writer, l *Launch) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// readLaunch reads no byte beyond the launch.
func readLaunch(r io.Reader) (*Launch, error) {
	var length [4]byte
	if _, err := io.ReadFull(r, length[:]); err != nil {
		return nil, err
	}
	size := binary.LittleEndian.Uint32(length[:])
	if size > maxLaunch {
		return nil, fmt.Errorf("a launch of %d bytes", size)
	}
	text := make([]byte, size)
	if _, err := io.ReadFull(r, text); err != nil {
		return nil, err
	}
	l := &Launch{}
	return l, json.Unmarshal(text, l)
}

// KillTimeout bounds how long a keeper tries to kill processes.
const KillTimeout = 2 * time.Second
