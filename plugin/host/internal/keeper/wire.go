package keeper

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Launch is what a keeper is to start. Standard files come with it.
type Launch struct {
	Path string
	Args []string
	Env  []string
	// Credential is whom it runs as; nil for the orchestrator's user.
	Credential *syscall.Credential
	// Cgroup is the path of the cgroup that is for it alone; empty for none.
	Cgroup string
	// Open says that the file to execute comes with the launch, open.
	Open bool
}

// order is what the orchestrator says after the launch: the time on the monotonic
// clock, in nanoseconds, at which the family is to be killed, or one of these.
type order int64

const (
	// stay takes back the time that was named.
	stay order = 0
	// collect allows that the id of the exited process is given to another.
	collect order = -1

	orderBytes = 8
)

func (o order) bytes() []byte { return binary.LittleEndian.AppendUint64(nil, uint64(o)) }

func orderOf(bytes []byte) order { return order(binary.LittleEndian.Uint64(bytes)) }

// report is what the keeper says; exactly one field is set.
type report struct {
	// Started is the process id.
	Started int `json:",omitempty"`
	// Failed is why nothing was started.
	Failed *failure `json:",omitempty"`
	// Exited says that the process has exited; its id is still its own.
	Exited bool `json:",omitempty"`
	// Ended is the end of the process and of all its family.
	Ended *Ending `json:",omitempty"`
}

// Ending is how a process has ended.
type Ending struct {
	// Status is what waiting for the process has returned.
	Status syscall.WaitStatus
	// Late says that it was killed at the time named to KillAt.
	Late bool
}

// failure is an error on its way between processes; who gets it can compare it as
// if it were its own.
type failure struct {
	Text     string
	Op, Path string        `json:",omitempty"`
	Errno    syscall.Errno `json:",omitempty"`
}

func failureOf(err error) *failure {
	f := &failure{Text: err.Error()}
	var path *os.PathError
	if errors.As(err, &path) && errors.As(path.Err, &f.Errno) {
		f.Op, f.Path = path.Op, path.Path
	}
	return f
}

func (f *failure) err() error {
	if f.Errno != 0 {
		return &os.PathError{Op: f.Op, Path: f.Path, Err: f.Errno}
	}
	return errors.New(f.Text)
}

// maxLaunch is more than a system takes as arguments and environment.
const maxLaunch = 64 << 20

func writeLaunch(w io.Writer, l *Launch) error {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	_, err = w.Write(append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...))
	return err
}

// readLaunch reads no byte more than the launch has.
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

// Patience bounds how long a keeper tries to kill what the kernel does not let
// die.
const Patience = 2 * time.Second

// ExecOpen makes cmd execute the open file instead of whatever is found under its
// path by then.
func ExecOpen(cmd *exec.Cmd, binary *os.File) {
	cmd.ExtraFiles = []*os.File{binary}
	cmd.Path = "/proc/self/fd/3"
}
