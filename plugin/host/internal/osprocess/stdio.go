package osprocess

import (
	"context"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
)

// stdin is the pipe to the standard input of a process. Nothing is ever written to it.
// Its writing end stays open for as long as the process is needed.
type stdin struct {
	// read stays open here too, since the process may close its own copy. Its
	// descriptor must be lower than that of write, as os.Pipe makes it: the kernel
	// closes the descriptors of a killed process from the highest down.
	read, write *os.File
}

// close tells the process that it is no longer needed, and does not kill it.
func (s *stdin) close() {
	spareGroupAtHangup(s.read)
	closeAll(s.write, s.read)
}

// pipes are our ends of a command's standard files, and those of the command's ends
// that we must close once it runs.
type pipes struct {
	stdin          *stdin
	stdout, stderr *os.File
	theirs         []*os.File
}

func makePipes(cmd *exec.Cmd) (pipes, error) {
	var files [6]*os.File
	for i := 0; i < len(files); i += 2 {
		var err error
		if files[i], files[i+1], err = os.Pipe(); err != nil {
			closeAll(files[:i]...)
			return pipes{}, err
		}
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = files[0], files[3], files[5]
	return pipes{
		stdin:  &stdin{read: files[0], write: files[1]},
		stdout: files[2], stderr: files[4], theirs: []*os.File{files[3], files[5]},
	}, nil
}

func closeAll(files ...*os.File) {
	for _, file := range files {
		_ = file.Close()
	}
}

var (
	wholeHandshake = regexp.MustCompile(`^\d+\|\d+\|(unix|tcp)\|`)
	// joinedHandshake also matches after text that was printed without a newline.
	joinedHandshake = regexp.MustCompile(`1\|\d+\|(unix|tcp)\|`)
)

func findHandshake(line []byte) (handshake, before []byte) {
	if wholeHandshake.Match(line) {
		return append([]byte(nil), line...), nil
	}
	if at := joinedHandshake.FindIndex(line); at != nil {
		return append([]byte(nil), line[at[0]:]...), line[:at[0]]
	}
	return nil, nil
}

// readStdout passes the handshake line to go-plugin, and everything else to the log.
func (c *Process) readStdout(f *os.File) {
	defer func() { _ = c.handshakeIn.Close() }()
	readLines(f, &Lines{emit: c.stdoutLine})
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

func readLines(f *os.File, out *Lines) {
	defer func() { _ = f.Close() }()
	_, _ = io.Copy(out, struct{ io.Reader }{f})
	out.Flush()
}

// The other methods of a go-plugin runner.

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

// Name is the plugin's name.
func (c *Process) Name() string { return c.spec.Name }

// ID is the process id.
func (c *Process) ID() string { return strconv.Itoa(c.PID()) }

// Diagnose returns nothing, since the log has it.
func (c *Process) Diagnose(context.Context) string { return "" }

// PluginToHost changes nothing: both see the same files.
func (c *Process) PluginToHost(network, address string) (string, string, error) {
	return network, address, nil
}

// HostToPlugin changes nothing.
func (c *Process) HostToPlugin(network, address string) (string, string, error) {
	return network, address, nil
}
