package api

import (
	"errors"
	"sync"
)

// intake reads lines ahead of their use: at most groupJobs of them, or as
// many bytes as the largest submission may have, and then waits.
type intake struct {
	body  *pacedBody
	most  int
	share *share

	mu     sync.Mutex
	ahead  pile
	ended  error
	closed bool

	// Each is signalled when its name comes true.
	arrived, taken chan struct{}
	// done is closed when the body is no longer touched.
	done chan struct{}
}

// pile is a number of lines, all in one text.
type pile struct {
	text  []byte
	lines []item
	ends  []int
}

func (p *pile) add(line item) {
	p.text = append(p.text, line.text...)
	p.lines = append(p.lines, line)
	p.ends = append(p.ends, len(p.text))
}

func (p *pile) full(most int) bool { return len(p.lines) >= groupJobs || len(p.text) >= most }

// line returns a line of the pile, good until the pile is reset.
func (p *pile) line(i int) item {
	begin := 0
	if i > 0 {
		begin = p.ends[i-1]
	}
	line := p.lines[i]
	line.text = p.text[begin:p.ends[i]]
	return line
}

// reset empties the pile. What it has for the next lines is not more than every
// stream is charged for.
func (p *pile) reset() {
	if cap(p.text) > readAtOnce {
		p.text = nil
	}
	p.text, p.lines, p.ends = p.text[:0], p.lines[:0], p.ends[:0]
}

// startIntake reads the body until its end, or until stop.
func startIntake(body *pacedBody, most int64, share *share) *intake {
	in := &intake{
		body: body, most: int(most), share: share,
		arrived: make(chan struct{}, 1), taken: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go in.run(newLines(body, most, share))
	return in
}

func (in *intake) run(lines *lines) {
	defer close(in.done)
	for {
		in.body.nextLine()
		line, err := lines.next()
		if !in.awaitRoom() {
			return
		}
		if err == nil {
			err = in.share.hold(len(line.text))
		}
		in.mu.Lock()
		if err != nil {
			in.ended = err
		} else {
			in.ahead.add(line)
		}
		in.mu.Unlock()
		raise(in.arrived)
		if err != nil {
			return
		}
	}
}

// awaitRoom returns false when the lines are wanted no more.
func (in *intake) awaitRoom() bool {
	for {
		in.mu.Lock()
		full, closed := in.ahead.full(in.most), in.closed
		in.mu.Unlock()
		if closed || !full {
			return !closed
		}
		<-in.taken
	}
}

// take exchanges the lines that have been read for an empty pile, as soon as
// there are any or none can follow. The error says why none follow what it
// returns: io.EOF, or an answer.
func (in *intake) take(empty pile, stop <-chan struct{}) (pile, error) {
	for {
		select {
		case <-stop:
			return empty, errStopping
		default:
		}
		in.mu.Lock()
		if len(in.ahead.lines) > 0 || in.ended != nil {
			full, ended := in.ahead, in.ended
			in.ahead = empty
			in.mu.Unlock()
			raise(in.taken)
			return full, ended
		}
		in.mu.Unlock()
		select {
		case <-in.arrived:
		case <-stop:
		}
	}
}

var errStopping = errors.New("the server is stopping")

// stop ends the reading. It is not to be called when all was read, since the
// connection is then good for more.
func (in *intake) stop() {
	in.mu.Lock()
	in.closed = true
	in.mu.Unlock()
	raise(in.taken)
	in.body.end()
}

func raise(signal chan struct{}) {
	select {
	case signal <- struct{}{}:
	default:
	}
}
