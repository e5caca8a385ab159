package api

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"slices"
)

// byteOrderMark is what some programs begin UTF-8 with. RFC 8259 lets whoever
// reads JSON pass over it.
var byteOrderMark = []byte("\ufeff")

// lines reads NDJSON. Blank lines, and a byte order mark at the beginning, are
// passed over.
type lines struct {
	input *bufio.Reader
	// most is the length of the longest line, its end left out.
	most int
	line int
	text []byte
	// share is charged with what the text takes; nil where the body is.
	share *share
}

func newLines(body io.Reader, most int64, share *share) *lines {
	return &lines{input: bufio.NewReaderSize(body, readAtOnce), most: int(most), share: share}
}

func (l *lines) next() (item, error) {
	for {
		text, length, err := l.read()
		if err != nil && !errors.Is(err, io.EOF) {
			// What has come of the line may look whole, such as half a number.
			return item{}, unread(err)
		}
		if l.line++; l.line == 1 {
			whole := len(text)
			text = bytes.TrimPrefix(text, byteOrderMark)
			length -= whole - len(text)
		}
		if text = bytes.TrimRight(text, " \t\r\n"); len(text) > 0 {
			tooLong := len(text) > l.most || length > l.most+lineEnd
			return item{text: text, start: spot{line: l.line, column: 1}, tooLong: tooLong}, nil
		}
		if err != nil {
			return item{}, io.EOF
		}
	}
}

// lineEnd is the most that can end a line: "\r\n".
const lineEnd = 2

// read returns the length of the next line and as much of it as may matter.
func (l *lines) read() (text []byte, length int, err error) {
	l.text = l.text[:0]
	for {
		piece, err := l.input.ReadSlice('\n')
		length += len(piece)
		if length == len(piece) && !errors.Is(err, bufio.ErrBufferFull) {
			return piece, length, err
		}
		kept := min(len(piece), l.most+lineEnd-len(l.text))
		room := cap(l.text)
		l.text = slices.Grow(l.text, kept)
		if err := l.share.hold(cap(l.text) - room); err != nil {
			return nil, 0, err
		}
		l.text = append(l.text, piece[:kept]...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return l.text, length, err
		}
	}
}
