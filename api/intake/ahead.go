package intake

import (
	"errors"
	"net/http"
)

// GroupLines is the most lines of a group.
const GroupLines = 500

// Group is a number of lines in one text.
type Group struct {
	text  []byte
	lines []Line
	ends  []int
}

// Len is the number of lines.
func (g *Group) Len() int { return len(g.lines) }

// Line returns a line of the group, which is valid until the group is given back.
func (g *Group) Line(i int) Line {
	begin := 0
	if i > 0 {
		begin = g.ends[i-1]
	}
	line := g.lines[i]
	line.Text = g.text[begin:g.ends[i]]
	return line
}

func (g *Group) add(line Line) {
	g.text = append(g.text, line.Text...)
	g.lines = append(g.lines, line)
	g.ends = append(g.ends, len(g.text))
}

func (g *Group) full(most int) bool { return len(g.lines) >= GroupLines || len(g.text) >= most }

// Ahead reads the lines of a body before the caller needs them. It has two groups:
// while the caller uses one, Ahead fills the other.
type Ahead struct {
	body  *pacedBody
	most  int
	share *Share
	// ready holds the group that is being filled, as soon as that group has a line. It is
	// closed after the last line.
	ready, empty chan *Group
	stopped      chan struct{}
	done         chan struct{}
	ended        error
}

// StreamBytes is what a share is charged for a stream before its first line: two
// buffers and two groups.
const StreamBytes = 4 * readAtOnce

// ReadAhead reads lines of up to most bytes until the body ends, or until Stop.
// The server's read timeout applies to each line separately.
func ReadAhead(r *http.Request, control *http.ResponseController, most int64, share *Share) *Ahead {
	a := &Ahead{
		body: newPacedBody(r, control), most: int(most), share: share,
		ready: make(chan *Group, 1), empty: make(chan *Group, 2),
		stopped: make(chan struct{}), done: make(chan struct{}),
	}
	a.empty <- &Group{}
	a.empty <- &Group{}
	go a.run(newLineReader(a.body, most, share))
	return a
}

func (a *Ahead) run(lines *lineReader) {
	defer close(a.done)
	defer close(a.ready)
	for {
		a.body.nextLine()
		line, err := lines.next()
		if err == nil {
			err = a.share.Hold(len(line.Text))
		}
		if err != nil {
			a.ended = err
			return
		}
		group := a.room()
		if group == nil {
			a.ended = ErrStopped
			return
		}
		group.add(line)
		select {
		case a.ready <- group:
		case <-a.stopped:
			a.ended = ErrStopped
			return
		}
	}
}

// room returns a group to add a line to: the one that nobody has taken yet, or an
// empty one. It returns nil when the lines are no longer wanted.
func (a *Ahead) room() *Group {
	select {
	case group := <-a.ready:
		if !group.full(a.most) {
			return group
		}
		a.ready <- group // Only this goroutine sends, so there is room.
	default:
	}
	select {
	case group := <-a.empty:
		return group
	case <-a.stopped:
		return nil
	}
}

// ErrStopped says that the lines were no longer wanted.
var ErrStopped = errors.New("stopped")

// Take returns the lines that have been read, as soon as there are any. The error says
// why no more follow: io.EOF, ErrStopped if stop is closed, or an answer. Give the
// group back.
func (a *Ahead) Take(stop <-chan struct{}) (*Group, error) {
	select {
	case <-stop:
		return nil, ErrStopped
	default:
	}
	select {
	case group, more := <-a.ready:
		if !more {
			return nil, a.ended
		}
		return group, nil
	case <-stop:
		return nil, ErrStopped
	}
}

// Give takes a group back when its lines have been stored or refused.
func (a *Ahead) Give(group *Group) {
	a.share.Done(len(group.text))
	if cap(group.text) > readAtOnce { // Every stream is charged for this much.
		group.text = nil
	}
	group.text, group.lines, group.ends = group.text[:0], group.lines[:0], group.ends[:0]
	a.empty <- group
}

// Stop ends the reading. Do not call it after the last line was read: it makes the
// connection useless for further requests.
func (a *Ahead) Stop() {
	close(a.stopped)
	a.body.end()
}

// Wait returns when nothing reads the body any more.
func (a *Ahead) Wait() { <-a.done }
