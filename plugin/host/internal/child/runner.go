package child

import (
	"context"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

var (
	wholeHandshake = regexp.MustCompile(`^\d+\|\d+\|(unix|tcp)\|`)
	// gluedHandshake follows text that was printed without a line's end.
	gluedHandshake = regexp.MustCompile(`1\|\d+\|(unix|tcp)\|`)
)

func findHandshake(line []byte) (handshake, before []byte) {
	if wholeHandshake.Match(line) {
		return append([]byte(nil), line...), nil
	}
	if at := gluedHandshake.FindIndex(line); at != nil {
		return append([]byte(nil), line[at[0]:]...), line[:at[0]]
	}
	return nil, nil
}

// readStdout hands the handshake line to go-plugin and everything else to the
// log.
func (c *Process) readStdout(f *os.File) {
	defer func() { _ = f.Close() }()
	defer func() { _ = c.handshakeIn.Close() }()
	out := &Lines{emit: c.stdoutLine}
	_, _ = io.Copy(out, struct{ io.Reader }{f})
	out.Flush()
}

func (c *Process) stdoutLine(line []byte) {
	if !c.handshaken {
		if handshake, before := findHandshake(line); handshake != nil {
			c.handshaken = true
			c.out.print("stdout", before)
			_, _ = c.handshakeIn.Write(append(handshake, '\n'))
			_ = c.handshakeIn.Close()
			return
		}
	}
	c.out.print("stdout", line)
}

// Wait returns when the process is gone.
func (c *Process) Wait(context.Context) error {
	<-c.gone
	if c.death == (Death{}) {
		return nil
	}
	return c.death
}

// Kill ends the process and its group.
func (c *Process) Kill(context.Context) error {
	c.End()
	return nil
}

// Stdout carries the handshake line only.
func (c *Process) Stdout() io.ReadCloser { return c.handshakeOut }

// Stderr is empty: go-plugin's own reader panics on some input.
func (c *Process) Stderr() io.ReadCloser { return io.NopCloser(strings.NewReader("")) }

// Name is the plugin's.
func (c *Process) Name() string { return c.spec.Name }

// ID is the process id.
func (c *Process) ID() string {
	return strconv.Itoa(c.PID())
}

// Diagnose leaves it to the log.
func (c *Process) Diagnose(context.Context) string { return "" }

// PluginToHost changes nothing: both see the same files.
func (c *Process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin changes nothing.
func (c *Process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
