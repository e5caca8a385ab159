package conformance

import (
	"bufio"
	"io"
	"strings"
	"sync"
)

const (
	// maxLine is how much of a line is kept, in bytes.
	maxLine = 16 << 10
	// lastLines is how many lines are kept to say why a process ended.
	lastLines = 6
)

// output reads everything a process prints, so that printing never blocks it.
type output struct {
	handshake chan string
	files     []io.Closer
	// ended is closed when the files are read to their end.
	ended chan struct{}
	// Only the goroutine that reads stdout uses shaken.
	shaken bool

	mu sync.Mutex
	// stdout and stderr count lines, without the handshake.
	stdout, stderr int
	last           []string
}

func newOutput() *output { return &output{handshake: make(chan string, 1), ended: make(chan struct{})} }

// read takes over both files.
func (o *output) read(stdout, stderr io.ReadCloser) {
	o.files = []io.Closer{stdout, stderr}
	go func() {
		defer close(o.ended)
		var pumps sync.WaitGroup
		pumps.Go(func() { pump(stdout, o.stdoutLine) })
		pumps.Go(func() { pump(stderr, func(line string) { o.keep(&o.stderr, line) }) })
		pumps.Wait()
	}()
}

func pump(from io.Reader, line func(string)) {
	reader := bufio.NewReaderSize(from, maxLine)
	for {
		text, isPrefix, err := reader.ReadLine()
		if err != nil {
			return
		}
		kept := string(text)
		for isPrefix && err == nil {
			_, isPrefix, err = reader.ReadLine()
		}
		line(kept)
	}
}

func (o *output) stdoutLine(line string) {
	if !o.shaken && looksLikeHandshake(line) {
		o.shaken = true
		o.handshake <- line
		return
	}
	o.keep(&o.stdout, line)
}

func (o *output) keep(count *int, line string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*count++
	if line = strings.TrimSpace(line); line == "" {
		return
	}
	o.last = append(o.last, line[:min(len(line), 200)])
	o.last = o.last[max(0, len(o.last)-lastLines):]
}

// counts are the lines printed so far.
func (o *output) counts() (stdout, stderr int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.stdout, o.stderr
}

// said is what was printed last, to append to a sentence; empty for nothing.
func (o *output) said() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.last) == 0 {
		return ""
	}
	return "; it printed: " + strings.Join(o.last, " / ")
}

// end stops reading, after pipeTail at the latest: another process can hold the pipes
// open.
func (o *output) end() {
	within(o.ended, pipeTail)
	for _, file := range o.files {
		_ = file.Close()
	}
	<-o.ended
}
