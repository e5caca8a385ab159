package connection

import (
	"errors"
	"fmt"
	"time"

	"github.com/holdfast-jobs/holdfast/plugin/host/internal/message"
	"github.com/holdfast-jobs/holdfast/plugin/internal/protocol"
)

// Settings are the same for all processes.
type Settings struct {
	// KillGrace is how long a process without work may take to exit.
	KillGrace time.Duration
	// ExitWindow is how far apart two signs of one death may be: the end of the
	// stream and the exit, or the exit and the last outcome in the socket.
	ExitWindow time.Duration
	// HealthPeriod is how often to check a process's health. A process is killed
	// if it takes longer than HealthTimeout to answer, or to read its stream.
	HealthPeriod  time.Duration
	HealthTimeout time.Duration
	// Caps bound what handlers report.
	Caps Caps
	// LinesPerSecond bounds how many lines of output are logged for each process.
	// The others are counted.
	LinesPerSecond int
}

// Validate returns an error for an invalid setting.
func (s Settings) Validate() error {
	switch {
	case min(s.KillGrace, s.ExitWindow, s.HealthPeriod, s.HealthTimeout) <= 0:
		return errors.New("kill grace, exit window, health period and health timeout must be above zero")
	case s.LinesPerSecond < 1:
		return errors.New("lines per second must be at least 1")
	}
	return s.Caps.Validate()
}

// Caps are the largest values that a handler may report, in bytes of JSON. Larger
// progress is dropped; a larger checkpoint or result fails the attempt permanently.
type Caps struct {
	Progress   int
	Checkpoint int
	Result     int
	// FollowUps is how many jobs an attempt may submit, and FollowUpBytes how many bytes
	// all of them may have together. More fail the attempt permanently.
	FollowUps     int
	FollowUpBytes int
}

// DefaultCaps returns the caps that apply unless an operator sets others.
func DefaultCaps() Caps {
	return Caps{
		Progress: protocol.DefaultMaxProgressBytes, Checkpoint: protocol.DefaultMaxCheckpointBytes, Result: protocol.DefaultMaxResultBytes,
		FollowUps: protocol.DefaultMaxFollowUps, FollowUpBytes: protocol.DefaultMaxFollowUpBytes,
	}
}

// MaxCap is the largest cap: payload and checkpoint must fit into one message.
const MaxCap = protocol.MaxMessageBytes / 2

// The largest caps for follow-ups: result and follow-ups must fit into one message.
const (
	MaxFollowUps     = message.MaxFollowUps
	MaxFollowUpBytes = protocol.MaxMessageBytes / 4
)

// Validate returns an error for a cap that cannot be enforced.
func (c Caps) Validate() error {
	for what, size := range map[string]int{"progress": c.Progress, "checkpoint": c.Checkpoint, "result": c.Result} {
		if size < 1 || size > MaxCap {
			return fmt.Errorf("the cap for a %s, %d bytes, is not from 1 to %d", what, size, MaxCap)
		}
	}
	if c.FollowUps < 1 || c.FollowUps > MaxFollowUps {
		return fmt.Errorf("the cap of %d follow-ups is not from 1 to %d", c.FollowUps, MaxFollowUps)
	}
	if c.FollowUpBytes < 1 || c.FollowUpBytes > MaxFollowUpBytes {
		return fmt.Errorf("the cap for follow-ups, %d bytes, is not from 1 to %d", c.FollowUpBytes, MaxFollowUpBytes)
	}
	return nil
}

// success are the caps of what comes with a success.
func (c Caps) success() message.SuccessCaps {
	return message.SuccessCaps{Result: c.Result, FollowUps: c.FollowUps, FollowUpBytes: c.FollowUpBytes}
}

// readAtLeast is larger than the log lines and error texts that are kept.
const readAtLeast = 64 << 10

// longest is how much of a value or text is read.
func (c Caps) longest() int {
	return max(c.Progress, c.Checkpoint, c.Result, c.FollowUpBytes, readAtLeast)
}
