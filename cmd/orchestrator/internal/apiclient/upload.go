package apiclient

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"sync"
)

// Upload is a stream of submissions to the server, one JSON object a line. Blank
// lines count as lines but not as items, as on the server. A byte order mark at the
// beginning is skipped. Memory does not grow with the stream, nor with the length of
// a line.
type Upload struct {
	source *bufio.Reader
	// rest was read from the source and goes out next.
	rest []byte
	// inLine says that the line continues, inItem that it is not blank.
	inLine, inItem bool

	mu    sync.Mutex
	err   error
	lines int // including the current one
	items int // including the current one
	bytes int64
	// skips are the items at which the difference between the numbers of line and
	// item changes.
	skips []skip
}

// skip says that the items from the first on are so many lines after their index.
type skip struct{ first, lines int }

const uploadBuffer = 64 << 10

// ByteOrderMark is what some programs begin UTF-8 with. It is not part of JSON.
const ByteOrderMark = "\ufeff"

// NewUpload returns the stream of the source's lines.
func NewUpload(source io.Reader) *Upload {
	return &Upload{source: bufio.NewReaderSize(source, uploadBuffer), skips: []skip{{}}}
}

// Sent is how many items and bytes have been sent. It may be called during the
// upload.
func (u *Upload) Sent() (items int, bytes int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.items, u.bytes
}

// Read implements io.Reader for the request's body.
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

// fill reads the next line, or as much of it as fits.
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

// line is the number of the item's line, from 1.
func (u *Upload) line(index int) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	for i := len(u.skips) - 1; ; i-- {
		if i == 0 || u.skips[i].first <= index {
			return index + 1 + u.skips[i].lines
		}
	}
}

// settled forgets the lines of items before the index.
func (u *Upload) settled(index int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for len(u.skips) > 1 && u.skips[1].first <= index {
		u.skips = u.skips[1:]
	}
}

// failure is why the source could not be read to its end; nil if it could.
func (u *Upload) failure() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.err == nil || errors.Is(u.err, io.EOF) {
		return nil
	}
	return u.err
}
