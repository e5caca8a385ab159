package intake

import (
	"bytes"
	"context"
	"errors"
	"net/http"

	"golang.org/x/sync/semaphore"
)

// GroupLines is the most lines of a group.
const GroupLines = 500

// StreamBytes is what a share is charged for a stream before its first line: two
// buffers, and what the lines take besides their text.
const StreamBytes = 3 * readAtOnce

// ErrStopped says that the lines were no longer wanted.
var ErrStopped = errors.New("stopped")

// Ahead reads the lines of a body before the caller needs them: up to a group, and up
// to the text of the longest line.
type Ahead struct {
	body  *pacedBody
	share *Share
	lines chan Line // closed after the last line
	ended error     // why no more lines follow, once lines is closed
	// room is for the text of the lines that nobody has taken yet.
	room *semaphore.Weighted
	// taken is the length of the text of the group that the caller has.
	taken int
	stop  context.CancelFunc
}

// ReadAhead reads lines of up to most bytes until the body ends, or until Stop.
// The server's read timeout applies to each line separately.
func ReadAhead(r *http.Request, control *http.ResponseController, most int64, share *Share) *Ahead {
	wanted, stop := context.WithCancel(context.Background())
	a := &Ahead{
		body: newPacedBody(wanted, r, control), share: share, lines: make(chan Line, GroupLines),
		room: semaphore.NewWeighted(most), stop: stop,
	}
	go a.run(wanted, newLineReader(a.body, most, share))
	return a
}

func (a *Ahead) run(wanted context.Context, lines *lineReader) {
	defer close(a.lines)
	for {
		a.body.nextLine()
		line, err := lines.next()
		if err == nil {
			err = a.share.Hold(len(line.Text))
		}
		if err == nil {
			err = a.room.Acquire(wanted, int64(len(line.Text)))
		}
		if err != nil {
			a.ended = err
			return
		}
		line.Text = bytes.Clone(line.Text)
		a.lines <- line
	}
}

// Take returns the lines that have been read, as soon as there are any; the caller has
// no more use for those of the last call. The error says why no more follow: io.EOF,
// ErrStopped if stopping is closed, or an answer.
func (a *Ahead) Take(stopping <-chan struct{}) ([]Line, error) {
	a.share.Done(a.taken)
	a.taken = 0
	var group []Line
	select {
	case line, more := <-a.lines:
		if !more {
			return nil, a.ended
		}
		group = append(group, line)
	case <-stopping:
		return nil, ErrStopped
	}
	for len(a.lines) > 0 && len(group) < GroupLines {
		group = append(group, <-a.lines)
	}
	for _, line := range group {
		a.taken += len(line.Text)
	}
	a.room.Release(int64(a.taken))
	return group, nil
}

// Stop ends the reading, and returns when nothing reads the body any more. Do not call
// it after the last line was read: it makes the connection useless for further requests.
func (a *Ahead) Stop() {
	a.stop()
	a.body.end()
	for range a.lines {
	}
}
