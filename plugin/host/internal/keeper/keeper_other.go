//go:build !linux

package keeper

import (
	"errors"
	"os"
	"time"
)

// Supported says whether there are keepers on this system.
const Supported = false

var errUnsupported = errors.New("there are no keepers on this system")

// Keeper is a process that runs under a keeper.
type Keeper struct{}

// Files are the files of the process.
type Files struct {
	Stdin, Stdout, Stderr, Binary *os.File
}

// Start returns an error.
func Start([]string, *Launch, Files) (*Keeper, error) { return nil, errUnsupported }

// PID is never called.
func (*Keeper) PID() int { return 0 }

// KeeperPID is never called.
func (*Keeper) KeeperPID() int { return 0 }

// AwaitExit is never called.
func (*Keeper) AwaitExit() {}

// Collect is never called.
func (*Keeper) Collect() (Ending, error) { return Ending{}, errUnsupported }

// KillAt is never called.
func (*Keeper) KillAt(time.Time) {}

// Main returns the exit code of a program that does nothing.
func Main() int { return 1 }
