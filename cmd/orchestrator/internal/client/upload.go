package client

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// Upload is a stream of submissions, one JSON object a line, on its way to the
// server. Blank lines count as lines, but not as items; the server sees it the
// same way. A byte order mark at the beginning is left out. Memory does not grow with the stream, nor with the length of a
// line.
type Upload struct {
	source *bufio.Reader
	// rest is what of the source has been looked at and goes out next.
	rest []byte
	// inLine says that the line goes on, inItem that it is not blank.
	inLine, inItem bool

	mu    sync.Mutex
	err   error
	lines int // of the source, the current one included
	items int // that have begun
	bytes int64
	// skips tell where the number of the line and that of the item drift
	// apart.
	skips []skip
}

// skip says that the items from the first on stand so many lines later than
// their index says.
type skip struct{ first, lines int }

const uploadBuffer = 64 << 10

// ByteOrderMark is what some programs begin UTF-8 with. It is no part of JSON.
const ByteOrderMark = "\ufeff"

// NewUpload returns the stream of the source's lines.
func NewUpload(source io.Reader) *Upload {
	return &Upload{source: bufio.NewReaderSize(source, uploadBuffer), skips: []skip{{}}}
}

// Sent is how many items and bytes have been handed over. It may be called
// while the upload is under way.
func (u *Upload) Sent() (items int, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.items, u.bytes
}

// Read is for the one who sends.
func (u *Upload) Read(p []byte) (int, error) {
	for len(u.rest) == 0 {
		if u.err != nil {
			return 0, u.err
		}
		u.fill()
	}
	n := copy(p, u.rest)
	u.rest = u.rest[n:]
	return n, nil
}

// fill takes the next line, or as much of it as there is room for.
func (u *Upload) fill() {
	fragment, err := u.source.ReadSlice('\n')
	u.rest = fragment
	u.mu.Lock()
	defer u.mu.Unlock()
	if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
		u.err = err
	}
	if u.bytes == 0 {
		u.rest = bytes.TrimPrefix(fragment, []byte(ByteOrderMark))
	}
	u.bytes += int64(len(fragment))
	if !u.inLine {
		u.lines++
		u.inItem = false
	}
	u.inLine = !bytes.HasSuffix(fragment, []byte{'\n'})
	if u.inItem || len(bytes.TrimSpace(u.rest)) == 0 {
		return
	}
	u.inItem = true
	if late := u.lines - 1 - u.items; late != u.skips[len(u.skips)-1].lines {
		u.skips = append(u.skips, skip{first: u.items, lines: late})
	}
	u.items++
}

// line is the number, from 1, of the line that the item is on.
func (u *Upload) line(index int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := len(u.skips) - 1; ; i-- {
		if i == 0 || u.skips[i].first <= index {
			return index + 1 + u.skips[i].lines
		}
	}
}

// settled says that nobody will ask for items before the index any more.
func (u *Upload) settled(index int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.skips) > 1 && u.skips[1].first <= index {
		u.skips = u.skips[1:]
	}
}

// failure is what kept the source from being read to its end; nil for nothing.
func (u *Upload) failure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil || errors.Is(u.err, io.EOF) {
		return nil
	}
	return u.err
}
